import { once } from 'node:events';
import { expect } from 'chai';
import { connectTo } from '../support/clients/raw-socket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion, openAiVendor } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
const OK = respondWith(200, completion('x', { usage: USAGE }));
const LARGE = { messages: [{ role: 'user', content: 'x'.repeat(200_000) }] };
const REFUSED = respondWith(500, { error: { message: 'no' } });

interface RefusalCase {
  readonly title: string;
  /** Options of `keys create`. */
  readonly options: readonly string[];
  readonly model?: string;
  /** Calls admitted before the first refusal. */
  readonly admitted: number;
  readonly says: RegExp;
  readonly headers: Readonly<Record<string, RegExp>>;
}

const REQUESTS = (limit: number) => ({
  'x-ratelimit-limit-requests': new RegExp(`^${limit}$`),
  'x-ratelimit-remaining-requests': /^0$/,
  'x-ratelimit-reset-requests': /^\d+s$/,
});

const REFUSALS: readonly RefusalCase[] = [
  {
    title: 'requests a minute of a key',
    options: ['--rpm', '2'],
    admitted: 2,
    says: /limit of 2 requests a minute of this API key/,
    headers: REQUESTS(2),
  },
  {
    title: 'tokens a minute of a key',
    options: ['--tpm', '50'],
    admitted: 2,
    says: /limit of 50 tokens a minute of this API key/,
    headers: { 'x-ratelimit-limit-tokens': /^50$/, 'x-ratelimit-remaining-tokens': /^10$/ },
  },
  {
    title: 'requests a minute of a plan',
    options: ['--plan', 'three'],
    admitted: 3,
    says: /limit of 3 requests a minute of the plan "three"/,
    headers: REQUESTS(3),
  },
  {
    title: 'requests a minute of a provider in a plan',
    options: ['--plan', 'providers'],
    admitted: 1,
    says: /limit of 1 requests a minute of the plan "providers" at the provider "one"/,
    headers: REQUESTS(1),
  },
  {
    title: 'the lower of two limits',
    options: ['--plan', 'three', '--rpm', '1'],
    admitted: 1,
    says: /of this API key/,
    headers: REQUESTS(1),
  },
];

describe('a gateway with rate limits', () => {
  let one: ScriptedUpstream;
  let two: ScriptedUpstream;
  let gateway: TestGateway;
  let users = 0;

  before(async () => {
    [one, two] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    gateway = await startGateway({
      providers: { one: openAiVendor(one), two: openAiVendor(two) },
      models: { both: ['one/m', 'two/m'] },
      plans: {
        three: { rpm: 3 },
        providers: { rpm: 100, providers: { one: { rpm: 1 }, two: { rpm: 2 } } },
        fallback: { providers: { two: { rpm: 2 } } },
        single: { rpm: 1 },
        slots: { concurrency: 2 },
        tokens: { tpm: 1000 },
      },
    });
  });
  after(() => Promise.all([gateway?.stop(), one?.close(), two?.close()]));
  beforeEach(() => {
    one.script(OK);
    two.script(OK);
  });

  const createKey = async (...options: readonly string[]): Promise<string> =>
    (await gateway.command<{ api_key: string }>('keys', 'create', '--user', `user-${users++}`, ...options)).api_key;
  const send = (key: string, rest: object = {}, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'one/m', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }], ...rest }),
      ...(signal && { signal }),
    });
  /** Sends a call and reads its whole response. */
  const statusOf = async (key: string, rest: object = {}): Promise<number> => {
    const response = await send(key, rest);
    await response.text();
    return response.status;
  };

  for (const { title, options, model = 'one/m', admitted, says, headers } of REFUSALS) {
    it(`reports a refusal by ${title} with the time of the next retry`, async () => {
      const key = await createKey(...options);
      for (let n = 0; n < admitted; n++) expect(await statusOf(key, { model })).to.equal(200);
      const seen = one.requests.length;
      const response = await send(key, { model });
      const { error } = (await response.json()) as { error: { code: string; type: string; message: string } };
      expect(response.status).to.equal(429);
      expect(error).to.include({ code: 'rate_limited', type: 'rate_limit_error' });
      expect(error.message).to.match(says);
      expect(Number(response.headers.get('retry-after'))).to.be.within(1, 60);
      expect(Number(response.headers.get('retry-after-ms'))).to.be.within(1, 60_000);
      for (const [name, value] of Object.entries(headers)) expect(response.headers.get(name), name).to.match(value);
      expect(one.requests.length, 'the provider is not asked').to.equal(seen);
    });
  }

  /** Head of the response to a large body of which hardly a byte was sent. */
  const sendWithoutBody = async (key: string): Promise<string> => {
    const socket = await connectTo(gateway.url);
    const head = ['POST /v1/chat/completions HTTP/1.1', 'host: gateway', `authorization: Bearer ${key}`];
    socket.write([...head, 'content-type: application/json', 'content-length: 1000000', '', '{"mo'].join('\r\n'));
    const [bytes] = (await once(socket, 'data', { signal: AbortSignal.timeout(60_000) })) as [Buffer];
    socket.destroy();
    return String(bytes).split('\r\n\r\n', 1)[0] ?? '';
  };

  for (const [title, options] of [
    ['a key', ['--rpm', '1']],
    ['a plan', ['--plan', 'single']],
  ] as const)
    it(`refuses a large body before it arrives if the requests a minute of ${title} are used up (E30)`, async () => {
      const key = await createKey(...options);
      expect(await statusOf(key, LARGE)).to.equal(200);
      expect(await statusOf(key)).to.equal(429);
      const head = await sendWithoutBody(key);
      expect(head).to.match(/^HTTP\/1\.1 429 /);
      expect(head)
        .to.match(/\nretry-after: \d+/)
        .and.match(/\nx-ratelimit-remaining-requests: 0/);
    });

  it('refuses a large body before it arrives while all concurrent calls are in use, and accepts it afterwards (E30)', async () => {
    const key = await createKey('--plan', 'slots');
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seen = one.requests.length;
    one.script(async (wire) => {
      await released;
      await wire.send(OK);
    });
    const running = [statusOf(key), statusOf(key)];
    await one.request(seen + 1);
    expect(await sendWithoutBody(key)).to.match(/^HTTP\/1\.1 429 /);
    release();
    expect(await Promise.all(running)).to.deep.equal([200, 200]);
    expect(await statusOf(key, LARGE)).to.equal(200);
  });

  it('admits exactly the limit when fifty arrive concurrently, also for a new key', async () => {
    const key = await createKey('--rpm', '10');
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusOf(key)));
    expect(statuses.filter((status) => status === 200)).to.have.lengthOf(10);
    expect(statuses.filter((status) => status === 429)).to.have.lengthOf(40);
  });

  it('counts keys of one user together in their plan, and users separately', async () => {
    const user = `user-${users++}`;
    const create = async (who: string) =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', who, '--plan', 'three')).api_key;
    const [first, second, other] = [await create(user), await create(user), await create(`user-${users++}`)];
    const statuses = [];
    for (const key of [first, second, first, second, other]) statuses.push(await statusOf(key));
    expect(statuses).to.deep.equal([200, 200, 200, 429, 200]);
  });

  it('counts a fallback at its own provider', async () => {
    const key = await createKey('--plan', 'fallback');
    one.script(REFUSED);
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push(await statusOf(key, { model: 'both' }));
    expect(statuses).to.deep.equal([200, 200, 429]);
    one.script(OK);
    expect(await statusOf(key, { model: 'one/m' }), 'the first provider has no such limit').to.equal(200);
  });

  it('counts estimated tokens and corrects them to the used ones', async () => {
    const key = await createKey('--plan', 'tokens');
    // 5 tokens for the prompt and 900 for the output are reserved; 20 were used.
    expect(await statusOf(key, { max_tokens: 900 })).to.equal(200);
    await eventually(async () => expect(await statusOf(key, { max_tokens: 900 })).to.equal(200));
  });

  it('releases the tokens of a call that the provider refused', async () => {
    const key = await createKey('--plan', 'tokens');
    one.script(REFUSED);
    for (let n = 0; n < 3; n++) {
      await eventually(async () => expect(await statusOf(key, { max_tokens: 990 })).to.equal(503));
    }
  });

  describe('on concurrent calls', () => {
    let key: string;
    let stops: AbortController[];
    let pending: Promise<unknown>[];

    /** Starts calls whose responses wait until the test releases them. */
    const occupy = async (count: number): Promise<void> => {
      one.script((wire) => wire.hang());
      for (let n = 0; n < count; n++) {
        const seen = one.requests.length;
        const stop = new AbortController();
        stops.push(stop);
        pending.push(send(key, {}, stop.signal).catch(() => undefined));
        await one.request(seen);
      }
      one.script(OK);
    };
    beforeEach(async () => {
      key = await createKey('--plan', 'slots');
      stops = [];
      pending = [];
    });
    afterEach(async () => {
      for (const stop of stops) stop.abort();
      await Promise.all(pending);
    });

    it('refuses a call over the limit with the reason', async () => {
      await occupy(2);
      const response = await send(key);
      const { error } = (await response.json()) as { error: { message: string } };
      expect(response.status).to.equal(429);
      expect(error.message).to.match(/limit of 2 calls at once of the plan "slots"/);
      expect(response.headers.get('retry-after')).to.equal('1');
      expect(response.headers.get('x-ratelimit-limit-concurrency')).to.equal('2');
    });

    it('frees the slot of a caller who disconnects', async () => {
      await occupy(2);
      stops[0]?.abort();
      await eventually(async () => expect(await statusOf(key)).to.equal(200));
    });

    it('frees the slot of a failed call', async () => {
      await occupy(1);
      one.script(REFUSED);
      for (let n = 0; n < 3; n++)
        await eventually(async () => expect(await statusOf(key), 'the provider failed').to.equal(503));
    });

    it('admits sequential calls of one caller without end', async () => {
      await occupy(1);
      const statuses = [];
      for (let n = 0; n < 10; n++) statuses.push(await statusOf(key));
      expect(statuses).to.deep.equal(Array.from({ length: 10 }, () => 200));
    });
  });
});
