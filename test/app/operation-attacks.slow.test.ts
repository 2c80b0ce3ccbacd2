import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { loadOperations, type WayIn, waysInto } from '../support/plugins/operations.ts';
import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

/** Operations with a protocol of their own, which `protocol-attacks.test.ts` attacks. */
const OTHERS: readonly string[] = ['batches', 'realtime', 'speech'];

const OPERATIONS = await loadOperations();
const WAYS = OPERATIONS.flatMap(waysInto);
/** A new operation of the built-in ones is attacked by its declaration alone. */
const DECLARED = [...new Set(WAYS.map(({ operation }) => operation.name as string))];

/** Provider of all declared operations: their requests go out as they are, and the vendor's response comes back. */
const EVERYTHING = `
import { definePlugin } from 'tollgate';
export default definePlugin({
  name: 'everything', kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', properties: { baseUrl: { type: 'string', format: 'url' } } },
  setup(api, { baseUrl }) {
    const price = { input: 10, output: 10, image_input: 10, image_output: 10, audio_input: 10 };
    for (const operation of ${JSON.stringify(DECLARED)})
      api.offer(operation, {
        specVersion: 1, vendor: 'everything', baseUrl, models: [{ id: 'm', price }],
        error: (status, body) => ({ class: status < 500 ? 'invalid_request' : 'upstream_error', message: JSON.stringify(body) }),
        codec: {
          request: (input) => ({ method: 'POST', path: '/call', body: JSON.parse(JSON.stringify(input)) }),
          response: (body) => body,
        },
      });
  },
});`;

/** Every name by which vendors report usage, with the same value. */
function usageOf(value: unknown): JsonObject {
  const names = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'input_tokens', 'output_tokens', 'seconds'];
  const usage = Object.fromEntries([...names, 'prompt_audio_seconds'].map((name) => [name, value]));
  const details = { cached_tokens: value, audio_tokens: value, image_tokens: value, text_tokens: value };
  return {
    usage: { ...usage, prompt_tokens_details: details, input_tokens_details: details, output_tokens_details: details },
    meta: { billed_units: { search_units: value } },
    duration: value,
  };
}

const ABSURD: readonly unknown[] = [-1, 1e30, '5000', null, {}, 0, 1.5];

const CANARY = 'canary-my-diagnosis-is-private';

describe('attacks on every operation by every way in', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let respond: (wire: Wire) => unknown = () => undefined;

  before(async () => {
    vendor = await startScriptedUpstream((wire) => respond(wire));
    gateway = await startGateway(
      {
        billing: 'track',
        providers: { everything: { plugin: './everything.ts', baseUrl: vendor.url } },
        policies: { 'access-log': {}, metrics: { auth: 'none' } },
      },
      { files: { 'everything.ts': EVERYTHING }, level: 'debug' },
    );
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  let users = 0;
  /** Creates a key of a new user, whose account thus has no other calls. */
  const createKey = async (...options: readonly string[]): Promise<string> => {
    users += 1;
    const words = ['keys', 'create', '--user', `user-${users}`, ...options];
    return (await gateway.command<{ api_key: string }>(...words)).api_key;
  };

  /** Revokes a key by the gateway itself, which takes effect at once. */
  const revoke = async (key: string): Promise<void> => {
    const { api_key: admin } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'op', '--admin');
    const id = encodeURIComponent(key);
    const response = await gateway.post(`/api/core/admin/keys/${id}/revoke`, {}, { authorization: `Bearer ${admin}` });
    expect(response.status, await response.text()).to.equal(200);
  };

  const send = (way: WayIn, key: string, fields: JsonObject = {}, count = 1): Promise<Response> => {
    const isPath = way.path.includes('{provider}');
    const all = { ...way.request, model: isPath ? 'm' : 'everything/m', ...fields };
    const url = gateway.url + way.path.replace('{provider}', 'everything');
    const authorization = `Bearer ${key}`;
    if (!way.isForm)
      return fetch(url, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(all),
      });
    const form = new FormData();
    for (const [name, value] of Object.entries(all)) form.append(name, String(value));
    for (const field of way.files)
      for (let at = 0; at < count; at += 1) form.append(field, new Blob([Buffer.alloc(4000, 7)]), `${at}.png`);
    return fetch(url, { method: 'POST', headers: { authorization }, body: form });
  };

  const says =
    (way: WayIn, more: JsonObject = {}) =>
    ({ send: write }: Wire) =>
      write(respondWith(200, { ...way.response, ...more }));
  /** Response without usage, which costs the maximum. */
  const unreported = (way: WayIn) => says(way, usageOf(null));
  const costOf = (response: Response): string | null => response.headers.get('x-tollgate-cost-usd');

  /** Cost of a call whose vendor reports nothing: the maximum. */
  const maxCostOf = async (way: WayIn): Promise<number> => {
    respond = says(way, usageOf(null));
    const response = await send(way, await createKey());
    expect(response.status, await response.clone().text()).to.equal(200);
    const cost = Number(costOf(response));
    expect(cost).to.be.greaterThan(0);
    return cost;
  };

  it('have a way in for every operation, or a protocol of its own', () => {
    const names = OPERATIONS.map(({ name }) => name as string);
    expect(names.filter((name) => !DECLARED.includes(name) && !OTHERS.includes(name))).to.deep.equal([]);
    expect(DECLARED.toSorted()).to.deep.equal(['embeddings', 'images', 'moderations', 'rerank', 'transcription']);
  });

  for (const way of WAYS)
    describe(`${way.operation.name} by ${way.isForm ? 'form' : 'JSON'} at ${way.path}`, () => {
      it('is charged the maximum, and no more, for absurd usage', async () => {
        const most = await maxCostOf(way);
        for (const value of ABSURD) {
          respond = says(way, usageOf(value));
          const response = await send(way, await createKey());
          expect(response.status, await response.clone().text()).to.equal(200);
          expect(Number(costOf(response)), `usage of ${JSON.stringify(value)}`).to.equal(most);
        }
      });

      it('reaches the vendor three times of 100 at once with a budget for three and a half, while others are served', async () => {
        const most = await maxCostOf(way);
        const key = await createKey('--budget', (most * 3.5).toFixed(9));
        let sent = 0;
        respond = async (wire) => {
          sent += 1;
          await unreported(way)(wire);
        };
        const other = await createKey();
        const flood = Array.from({ length: 100 }, () => send(way, key));
        expect((await send(way, other)).status, 'another caller').to.equal(200);
        const responses = await Promise.all(flood);
        const statuses = responses.map(({ status }) => status);
        expect(statuses.filter((status) => status === 200)).to.have.length(3);
        expect(statuses.filter((status) => status !== 200 && status !== 402 && status !== 429)).to.deep.equal([]);
        expect(sent, 'with the other caller').to.equal(4);
      });

      it('is charged once for a key that is revoked midway, which then reaches no vendor', async () => {
        const most = await maxCostOf(way);
        const key = await createKey();
        let sent = 0;
        respond = async (wire) => {
          sent += 1;
          await revoke(key);
          await unreported(way)(wire);
        };
        const response = await send(way, key);
        expect([response.status, Number(costOf(response))]).to.deep.equal([200, most]);
        const after = await send(way, key);
        expect([after.status, sent]).to.deep.equal([401, 1]);
      });

      it('is refused once the money is spent midway, and holds nothing', async () => {
        const most = await maxCostOf(way);
        const key = await createKey('--budget', (most * 1.5).toFixed(9));
        let second: Promise<Response> | undefined;
        let sent = 0;
        respond = async (wire) => {
          sent += 1;
          // The first call holds the budget while the second one arrives.
          second ??= send(way, key);
          const { status } = await second;
          expect(status).to.be.oneOf([402, 429]);
          await unreported(way)(wire);
        };
        expect((await send(way, key)).status).to.equal(200);
        expect((await send(way, key)).status).to.be.oneOf([402, 429]);
        expect(sent).to.equal(1);
        const { spent } = await settledBooks(gateway.url, key);
        expect(spent).to.be.closeTo(most * 1e6, 1);
      });

      it('leaves no text of the caller in the log or the metrics, whether the vendor responds or fails', async () => {
        const key = await createKey();
        const texts = Object.fromEntries(
          Object.entries(way.request).flatMap(([name, value]): readonly (readonly [string, unknown])[] => {
            if (name === 'model' || name === 'size' || name === 'language') return [];
            if (Array.isArray(value)) return [[name, [CANARY]]];
            return typeof value === 'string' ? [[name, CANARY]] : [];
          }),
        );
        for (const status of [200, 400, 500]) {
          respond = (wire) =>
            wire.send(
              respondWith(status, status === 200 ? { ...way.response, echo: CANARY } : { error: { message: 'no' } }),
            );
          await (await send(way, key, texts)).text();
        }
        await (await send(way, key, { ...texts, model: 'everything/none' })).text();
        expect(gateway.logText()).not.to.include(CANARY);
        expect(await (await gateway.get('/metrics')).text()).not.to.include(CANARY);
      });

      if (way.isForm)
        it('refuses 900 files before anything is sent', async () => {
          let sent = 0;
          respond = async (wire) => {
            sent += 1;
            await says(way)(wire);
          };
          const response = await send(way, await createKey(), {}, 900);
          expect([response.status, sent]).to.deep.equal([413, 0]);
        });
    });
});
