/** Complete gateway in front of a scripted vendor, and rules that hold for any failure of the vendor or the caller. */
import http from 'node:http';
import { expect } from 'chai';
import type { ErrorCode } from '../../../contract/index.ts';
import { type Books, readBooks, settledBooks } from '../clients/books.ts';
import { completion, openAiVendor, tokenPrices } from '../vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../vendors/scripted-upstream.ts';
import { eventually } from '../wait.ts';
import type { FailureForm, Heard } from './failure-forms.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';

const PROMPT = 'a'.repeat(400);
/** Estimate of the gateway for PROMPT, in micro-dollars: 4 for the message, 400 bytes / 4. */
export const PROMPT_COST = 104;
/** Must not appear in any response or log. */
export const OPERATOR_KEY = 'sk-operator-canary-0123456789abcdef';
/** Cost of {@link completion}, at one micro-dollar per input token and two per output token. */
export const USAGE_COST = 70;

export interface FailureRig {
  readonly gateway: TestGateway;
  readonly vendor: ScriptedUpstream;
  /** Second vendor, the last target of the aliases. */
  readonly second: ScriptedUpstream;
  /** Sends a chat completion to `one/m` on a new connection. */
  send(request?: object, headers?: Record<string, string>): Promise<Heard>;
  /** Current balance and counts, to compare with {@link FailureRig.expectOrder}. */
  mark(): Promise<Mark>;
  /** Sends the same chat in a client format. */
  sendAs(form: FailureForm, model?: string, headers?: Record<string, string>, user?: string): Promise<Heard>;
  /** Rules (a) and (b) in a client format: its own error after the previous content, without internal details. */
  expectErrorAs(form: FailureForm, heard: Heard, code: ErrorCode, before?: string): { readonly message: string };
  /**
   * Rules (a) and (b): one error in the common format without internal details, or one such frame at the end of a
   * stream.
   */
  expectError(heard: Heard, code: string, status?: number): { readonly message: string; readonly param: string | null };
  /**
   * Rules (c) to (e): each call has one outcome, the total charge is `cost`, sockets are closed, and `rest` further
   * calls succeed.
   */
  expectOrder(since: Mark, calls: number, cost: number, rest?: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Mark {
  readonly books: Books;
  readonly outcomes: number;
}

/**
 * Providers: `one` (long timeouts), `hasty` (short timeouts) and `two` (ten times the price) are scripted, `dead`
 * refuses connections. `fresh` is the same as `one`, with separate health. Aliases: `both` is fresh, two; `rescued` is
 * dead, two.
 */
export async function startFailureRig(
  config: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
): Promise<FailureRig> {
  const [vendor, second] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
  const scripted = (vendor: { readonly url: string }, rest: object = {}) =>
    openAiVendor(vendor, { apiKey: OPERATOR_KEY, prices: tokenPrices(1, 2), ...rest });
  const soon = { connect: '300ms', firstByte: '300ms', idle: '300ms', total: '1s' };
  const { providers, models, ...more } = config as { providers?: object; models?: object };
  const gateway = await startGateway(
    {
      providers: {
        one: scripted(vendor),
        hasty: scripted(vendor, { timeouts: soon }),
        fresh: scripted(vendor),
        two: scripted(second, { prices: tokenPrices(10, 20) }),
        dead: scripted({ url: 'http://127.0.0.1:9/v1' }),
        ...providers,
      },
      models: { both: ['fresh/m', 'two/m'], rescued: ['dead/m', 'two/m'], ...models },
      ...more,
    },
    { level: 'debug', ...options },
  );
  const secrets = [
    OPERATOR_KEY,
    `:${vendor.port}`,
    `:${second.port}`,
    '127.0.0.1',
    'localhost',
    'node_modules',
    '.ts:',
    'ECONN',
    gateway.folder,
  ];

  const expectNoSecret = (heard: Heard): void => {
    const shown = heard.text + JSON.stringify(heard.headers);
    for (const secret of secrets) expect(shown).not.to.include(secret);
  };

  const rig: FailureRig = {
    gateway,
    vendor,
    second,
    sendAs(form, model = 'one/m', headers = {}, user = '') {
      const request = { model, max_tokens: 100, messages: [{ role: 'user', content: PROMPT }], ...(user && { user }) };
      return hear(gateway.url + form.path, gateway.key, headers, form.body(request));
    },
    expectErrorAs(form, heard, code, before = '') {
      expect(heard.whole, 'the answer has its end').to.equal(true);
      expectNoSecret(heard);
      return form.error(heard, code, before);
    },
    send: (request = {}, headers = {}) =>
      hear(`${gateway.url}/v1/chat/completions`, gateway.key, headers, {
        model: 'one/m',
        max_tokens: 100,
        messages: [{ role: 'user', content: PROMPT }],
        ...request,
      }),
    mark: async () => ({ books: await readBooks(gateway.url, gateway.key), outcomes: await countOutcomes(gateway) }),
    expectError(heard, code, status = 503) {
      const streamed = heard.headers['content-type']?.startsWith('text/event-stream') === true;
      expect(heard.whole, 'the answer has its end').to.equal(true);
      expect(heard.status, heard.text).to.equal(streamed ? 200 : status);
      if (streamed) {
        expect(heard.frames.filter((frame) => frame.startsWith('{"error"'))).to.have.lengthOf(1);
        expect(heard.frames.at(-1), 'the error is the last frame').to.match(/^\{"error"/);
      } else expect(heard.headers['content-type']).to.match(/^application\/json/);
      const { error } = JSON.parse(streamed ? (heard.frames.at(-1) ?? '') : heard.text) as {
        error: { message: string; code: string; param: string | null };
      };
      expect(error).to.have.all.keys('message', 'type', 'code', 'param', 'request_id');
      expect(error.code, error.message).to.equal(code);
      expectNoSecret(heard);
      return error;
    },
    async expectOrder(since, calls, cost, rest = 3) {
      const books = await settledBooks(gateway.url, gateway.key);
      expect(books.spent - since.books.spent, 'charged').to.equal(cost);
      await eventually(async () => expect((await countOutcomes(gateway)) - since.outcomes, 'outcomes').to.equal(calls));
      vendor.script(respondWith(200, completion()));
      for (let n = 0; n < rest; n++) {
        const heard = await rig.send();
        expect(heard.status, heard.text).to.equal(200);
      }
      await eventually(async () => {
        // Idle connections: one per concurrent call.
        expect(vendor.connections.open, 'connections to the vendor').to.be.at.most(3);
        expect(await countSockets(gateway), 'connections of callers').to.equal(0);
      });
      expect(gateway.logText()).not.to.include(OPERATOR_KEY);
    },
    async stop() {
      await gateway.stop();
      await Promise.all([vendor.close(), second.close()]);
    },
  };
  return rig;
}

/** Sends one POST on a new connection and reads to its end or its cut. */
function hear(url: string, key: string, headers: Record<string, string>, body: object): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const all = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers };
    const request = http.request(url, { method: 'POST', headers: all, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('error', () => {});
      response.on('close', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          frames: text.split('\n\n').flatMap((event) => (event.startsWith('data: ') ? [event.slice(6)] : [])),
          whole: response.complete,
        }),
      );
    });
    request.on('error', reject);
    request.end(JSON.stringify(body));
  });
}

async function countOutcomes(gateway: TestGateway): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`, { headers: { connection: 'close' } })).text();
  return [...text.matchAll(/^tollgate_calls_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Open connections of callers, except idle ones in the pool of `fetch`. */
function countSockets(gateway: TestGateway): Promise<number> {
  gateway.server.closeIdleConnections();
  return new Promise((resolve, reject) =>
    gateway.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}
