import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { sayScript } from '../support/gateways/ingress-rig.ts';
import { sendResponses } from '../support/vendors/responses-wire.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Usage of each call at the vendor, much of it output: a turn of an agent. */
const SAID = { pieces: [{ text: 'fine' }], usage: { prompt: 3000, completion: 1200 } };
const HELLO = [{ role: 'user', content: 'hi' }];
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } } };
const TOOL = { name: 'Read', description: 'Reads a file.', input_schema: SCHEMA };
const FUNCTION = { type: 'function', name: 'shell', description: 'Runs.', parameters: SCHEMA };

/** Requests of clients, reduced to limits and thinking; their bodies are in `docs/clients.md`. */
const SHAPES: readonly (readonly [client: string, path: string, body: object])[] = [
  ...[32_000, 64_000].flatMap((max_tokens) =>
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
      { thinking: { type: 'enabled', budget_tokens: max_tokens - 1 } },
      {},
    ].map(
      (more) =>
        [
          `Claude Code, ${max_tokens} tokens${'thinking' in more ? `, thinking ${more.thinking.type}` : ''}`,
          '/v1/messages',
          { max_tokens, stream: true, messages: HELLO, tools: [TOOL], metadata: { user_id: 'u' }, ...more },
        ] as const,
    ),
  ),
  [
    'Codex',
    '/v1/responses',
    {
      ...{ input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }], stream: true },
      ...{ store: false, include: ['reasoning.encrypted_content'], reasoning: { effort: 'high', summary: 'auto' } },
      ...{ tools: [FUNCTION], tool_choice: 'auto', parallel_tool_calls: true, prompt_cache_key: 'c' },
    },
  ],
  ['the AI SDK on Responses', '/v1/responses', { input: HELLO, stream: true }],
  [
    'the AI SDK on chat completions',
    '/v1/chat/completions',
    { messages: HELLO, stream: true, stream_options: { include_usage: true } },
  ],
  ['the AI SDK on Messages', '/v1/messages', { max_tokens: 128_000, stream: true, messages: HELLO }],
];

/** Expensive models, and the cost there of a call of {@link SAID} in US dollars. */
const DEAR = Object.freeze({
  'anthropic/claude-opus-5': (3000 * 5 + 1200 * 25) / 1e6,
  'openai/gpt-6-astra': (3000 * 10 + 1200 * 50) / 1e6,
});

describe('a budget of 1 USD a day for an expensive model', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  /** The vendor responds after this promise. */
  let gate: Promise<void> | undefined;
  const respond: Script = async (wire) => {
    if (gate) await gate;
    const { path } = wire.request;
    if (path.endsWith('/messages')) await sayScript('anthropic', SAID)(wire);
    else if (path.endsWith('/responses')) await sendResponses({ ...SAID, echo: { model: 'gpt-6-astra' } })(wire);
    else if (path.endsWith('/chat/completions')) await sayScript('openai', SAID)(wire);
    else await wire.send(respondWith(404));
  };
  before(async () => {
    vendor = await startScriptedUpstream(respond);
    gateway = await startGateway({
      providers: {
        anthropic: { baseUrl: vendor.url, apiKey: 'sk-ant-test-0123456789' },
        openai: { baseUrl: vendor.url, apiKey: 'sk-test-0123456789' },
      },
      plans: { small: { budgets: [{ amount_usd: 1, every: 'day' }] } },
      defaultPlan: 'small',
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });
  afterEach(() => {
    gate = undefined;
  });

  let users = 0;
  /** Caller with its own, unused budget. */
  const caller = async (path: string, body: object, model: string) => {
    users += 1;
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', `u${users}`);
    return async (more: object = {}) => {
      const response = await gateway.post(path, { model, ...body, ...more }, { authorization: `Bearer ${key}` });
      return { status: response.status, headers: response.headers, text: await response.text() };
    };
  };

  for (const [model, each] of Object.entries(DEAR))
    for (const [client, path, body] of SHAPES)
      it(`lets ${client} continue with ${model} until the money is really used, and then reports the affordable size (E9)`, async () => {
        const send = await caller(path, body, model);
        const seen = vendor.requests.length;
        let last = await send();
        for (let turn = 1; last.status === 200 && turn < 100; turn += 1) last = await send();
        const calls = vendor.requests.length - seen;
        expect(last.status, last.text).to.equal(402);
        expect(last.headers.get('x-should-retry')).to.equal('false');
        expect(last.text).to.match(/Ask for at most \d+ tokens|Send a shorter prompt/i);
        // Calls spend the budget except for a rest smaller than one call.
        expect(calls * each, `${calls} calls`).to.be.at.least(1 - each);
        expect((calls - 1) * each).to.be.below(1);
      });

  for (const [model] of Object.entries(DEAR))
    for (const [client, path, body] of SHAPES.slice(-4))
      it(`asks ${client} with ${model} to retry if only its other calls hold the rest (E9)`, async () => {
        const send = await caller(path, body, model);
        let open = (): void => {};
        gate = new Promise<void>((resolve) => {
          open = resolve;
        });
        const running: Promise<{ readonly status: number }>[] = [];
        let refused: Awaited<ReturnType<typeof send>> | undefined;
        for (let turn = 0; turn < 40 && !refused; turn += 1) {
          const seen = vendor.requests.length;
          const pending = send();
          const first = await Promise.race([vendor.request(seen).then(() => undefined), pending]);
          if (first) refused = first;
          else running.push(pending);
        }
        expect(running.length).to.be.at.least(2);
        expect(refused?.status, refused?.text).to.equal(429);
        expect(refused?.headers.get('x-should-retry')).to.equal('true');
        expect(Number(refused?.headers.get('retry-after'))).to.be.within(1, 60);
        open();
        for (const call of running) expect((await call).status).to.equal(200);
        expect((await send()).status, 'once they are done').to.equal(200);
      });
});
