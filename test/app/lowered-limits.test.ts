import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { wholeBody } from '../support/vendors/vendor-wires.ts';

const MODEL = 'anthropic/claude-opus-5';
/** US dollars per output token. */
const DOLLARS = 25 / 1_000_000;
const HELLO = [{ role: 'user', content: 'hi' }];

/** Requests of clients without a limit, and of clients whose format requires one. */
const CLIENTS: readonly (readonly [client: string, path: string, body: object])[] = [
  ['the AI SDK on chat completions', '/v1/chat/completions', { model: MODEL, messages: HELLO }],
  ['Codex', '/v1/responses', { model: MODEL, input: 'hi', reasoning: { effort: 'high' } }],
  [
    'Claude Code',
    '/v1/messages',
    { model: MODEL, max_tokens: 64_000, thinking: { type: 'adaptive' }, messages: HELLO },
  ],
  [
    'a client of Messages with a budget of thinking',
    '/v1/messages',
    {
      model: 'anthropic/claude-opus-4-5',
      max_tokens: 64_000,
      thinking: { type: 'enabled', budget_tokens: 60_000 },
      messages: HELLO,
    },
  ],
];

interface Sent {
  readonly max_tokens: number;
  readonly thinking?: { readonly type: string; readonly budget_tokens?: number };
}

describe('a call without an output limit', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway | undefined;
  const DONE = respondWith(200, wholeBody('anthropic', { pieces: [{ text: 'fine' }] }));
  before(async () => {
    vendor = await startScriptedUpstream(DONE);
  });
  after(() => vendor.close());
  beforeEach(() => vendor.script(DONE));
  afterEach(() => gateway?.stop());

  const start = async (dollars: number, config: object = {}): Promise<TestGateway> => {
    gateway = await startGateway({
      providers: { anthropic: { baseUrl: vendor.url, apiKey: 'sk-ant-test-0123456789' } },
      budgets: [{ name: 'daily', amount_usd: dollars, every: 'day' }],
      ...config,
    });
    return gateway;
  };
  const chat = ({ post }: TestGateway, rest: object = {}): Promise<Response> =>
    post('/v1/chat/completions', { model: MODEL, messages: HELLO, ...rest });
  const lastSent = (): Sent => vendor.requests.at(-1)?.json() as Sent;
  const errorOf = async (response: Response) =>
    ((await response.json()) as { error: { code: string; message: string } }).error;

  /** Tokens that the rest of the budget covers, read from a refusal. */
  const affordable = async (target: TestGateway): Promise<number> => {
    const { message } = await errorOf(await chat(target, { max_tokens: 127_000 }));
    return Number(/sk for at most (\d+) tokens/.exec(message)?.[1]);
  };

  for (const [client, path, body] of CLIENTS)
    it(`succeeds for ${client} on a budget of 1 USD a day with an expensive model: the limit is lowered to the budget and reported (E9)`, async () => {
      const { post } = await start(1);
      for (let turn = 0; turn < 3; turn += 1) {
        const response = await post(path, body);
        expect(response.status, await response.text()).to.equal(200);
        const { max_tokens: limit, thinking } = lastSent();
        expect(response.headers.get('x-tollgate-max-tokens')).to.equal(String(limit));
        expect(limit * DOLLARS)
          .to.be.above(0.3)
          .and.below(1);
        expect(thinking?.budget_tokens ?? 0).to.be.below(limit);
      }
    });

  it('is admitted ten times concurrently on 20 USD, and all together reserve no more than that (E9)', async () => {
    const target = await start(20, { budgets: [], billing: 'enforce' });
    await target.command('accounts', 'credit', 'local', '20');
    const seen = vendor.requests.length;
    vendor.script(async (wire) => {
      await vendor.request(seen + 9);
      await wire.send(DONE);
    });
    const all = await Promise.all(Array.from({ length: 10 }, () => chat(target)));
    expect(all.map(({ status }) => status)).to.deep.equal(Array.from({ length: 10 }, () => 200));
    const limits = vendor.requests.slice(seen).map((request) => (request.json() as Sent).max_tokens);
    expect(Math.min(...limits)).to.be.at.least(256);
    expect(limits.reduce((sum, limit) => sum + limit, 0) * DOLLARS).to.be.at.most(20);
  });

  it('is sent unchanged if the budget covers the model’s maximum output', async () => {
    const response = await chat(await start(10));
    expect([response.status, response.headers.get('x-tollgate-max-tokens')]).to.deep.equal([200, null]);
    expect(lastSent().max_tokens).to.equal(128_000);
  });

  it('is refused (402) if the rest covers fewer tokens than the minimum, which is configurable (E9)', async () => {
    const refused = await chat(await start(0.005));
    expect(refused.status).to.equal(402);
    const { message } = await errorOf(refused);
    expect(message).to.match(/0\.005 USD are left, .*Ask for at most 1\d\d tokens with "max_tokens"/);
    await gateway?.stop();
    const lower = await chat(await start(0.005, { policies: { accounts: { leastOutput: 100 } } }));
    expect(lower.status).to.equal(200);
    expect(lastSent().max_tokens).to.be.within(100, 200);
  });

  it('but an explicit limit is never lowered: a budget that does not cover it refuses, with the covered number (E9)', async () => {
    const target = await start(0.5);
    const refused = await chat(target, { max_tokens: 50_000 });
    expect([refused.status, refused.headers.get('x-should-retry')]).to.deep.equal([402, 'false']);
    const { code, message } = await errorOf(refused);
    expect(code).to.equal('insufficient_balance');
    const most = Number(/Ask for at most (\d+) tokens/.exec(message)?.[1]);
    expect(most * DOLLARS).to.be.within(0.3, 0.5);
    const taken = await chat(target, { max_tokens: most });
    expect(taken.status, await taken.text()).to.equal(200);
    expect(lastSent().max_tokens).to.equal(most);
  });

  for (const [whose, config] of [
    ['a budget', {}],
    ['a balance', { budgets: [], billing: 'enforce' }],
  ] as const)
    it(`is asked to retry soon (429) if only other calls hold the rest of ${whose}, and succeeds then (E9)`, async () => {
      const target = await start(1, config);
      if (whose === 'a balance') await target.command('accounts', 'credit', 'local', '1');
      let release = (): void => {};
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const seen = vendor.requests.length;
      vendor.script(async (wire) => {
        await released;
        await wire.send(DONE);
      });
      const running = chat(target, { max_tokens: await affordable(target) });
      await vendor.request(seen);
      for (const rest of [{}, { max_tokens: 30_000 }]) {
        const waiting = await chat(target, rest);
        expect(waiting.status).to.equal(429);
        expect(waiting.headers.get('x-should-retry')).to.equal('true');
        expect(Number(waiting.headers.get('retry-after'))).to.be.within(1, 60);
        expect((await errorOf(waiting)).code).to.equal('rate_limited');
      }
      release();
      expect((await running).status).to.equal(200);
      expect((await chat(target)).status).to.equal(200);
    });
});
