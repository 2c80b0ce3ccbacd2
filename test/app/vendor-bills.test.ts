import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { partOf } from '../support/generated-cases.ts';
import { readChapter } from '../support/pages/read-blocks.ts';
import {
  CHAT,
  chatChunk,
  GEMINI,
  type Json,
  MESSAGES,
  RESPONSES,
  type Wire,
  WORDS,
} from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';
import { caseLines, priceLines, sourceLines } from './bill-table.ts';
import { anthropic, CASES, type Case, gemini, HELD, LOWERED, openai, SMALL_CALLS } from './vendor-bills.ts';

function eventStream(events: readonly (string | object)[], headers: Readonly<Record<string, string>> = {}): Buffer {
  const text = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
  return respondWith(200, text.join(''), { 'content-type': 'text/event-stream', ...headers });
}

/** Frames of a stream with several usage reports; the last one is lower, and the one before it is charged. */
const FALLING: readonly (readonly [title: string, wire: Wire, model: string, events: (string | object)[]])[] = [
  [
    'zeros in a last frame',
    CHAT,
    'priced/m',
    [
      { ...chatChunk({}, { content: WORDS }, null), usage: openai(1000, 100) },
      { ...chatChunk({}, {}, 'stop'), usage: openai(0, 0) },
      '[DONE]',
    ],
  ],
  [
    'fewer words than before',
    GEMINI,
    'falling/gemini-2.5-flash',
    [GEMINI.whole(gemini(1000, 100)), GEMINI.whole(gemini(1000, 1))],
  ],
  [
    'no prompt in a last event',
    MESSAGES,
    'claudes/claude-opus-5',
    MESSAGES.events({ usage: anthropic(0, 100) }).map((event) =>
      typeof event === 'object' && 'message' in event
        ? { ...event, message: { ...(event.message as object), usage: anthropic(1000, 1) } }
        : event,
    ),
  ],
];

/** Usage in the first and the last event of a stream with 100 output tokens, and the cost at 5 dollars per million input tokens. */
const SPLIT: readonly (readonly [title: string, first: Json, last: Json, usd: number])[] = [
  [
    'the last one, which reports a part of the same tokens as cached',
    { input_tokens: 65_288 },
    { input_tokens: 34_347, cache_read_input_tokens: 30_941 },
    0.1897055,
  ],
  [
    'the last one, which reports more tokens and fewer of them uncached',
    { input_tokens: 1000, cache_read_input_tokens: 0 },
    { input_tokens: 400, cache_read_input_tokens: 700 },
    0.00485,
  ],
  [
    'the last one, which reports fewer tokens written to the cache and the same sum',
    { input_tokens: 0, cache_creation_input_tokens: 1000, cache_creation: { ephemeral_1h_input_tokens: 1000 } },
    { input_tokens: 400, cache_creation_input_tokens: 600 },
    0.00825,
  ],
  [
    'the first one, if the last one reports fewer tokens',
    { input_tokens: 1000 },
    { input_tokens: 100, cache_read_input_tokens: 800 },
    0.0075,
  ],
  [
    'the first one, if the last one reports the same tokens without a split',
    { input_tokens: 10, cache_read_input_tokens: 990 },
    { input_tokens: 1000 },
    0.003045,
  ],
  [
    'both, if only the first one has the lifetime of the cache',
    { input_tokens: 10, cache_creation_input_tokens: 1000, cache_creation: { ephemeral_1h_input_tokens: 1000 } },
    { input_tokens: 10, cache_creation_input_tokens: 1000 },
    0.01255,
  ],
  ['both, if the last one has no count of the input', { input_tokens: 10 }, { cache_read_input_tokens: 990 }, 0.003045],
];

describe('usage in a vendor’s response is charged', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream();
    const at = { baseUrl: upstream.url, apiKey: 'k' };
    const any = { ...at, plugin: 'openai-compatible', models: ['*'] };
    const gratis = { '*': { input: 0, output: 1 } };
    const tiers = { priority: { input: 1, output: 10 } };
    gateway = await startGateway({
      billing: 'track',
      providers: {
        openai: at,
        anthropic: at,
        gemini: at,
        xai: at,
        openrouter: at,
        mistral: { ...at, prices: { voxtral: { input: 1, output: 2, fees: { seconds: 0.000_05 } } } },
        tiered: { ...at, plugin: 'gemini', prices: { gemini: { input: 0.5, output: 5, service_tiers: tiers } } },
        relay: any,
        priced: { ...any, prices: { m: { input: 1, output: 1 } } },
        fees: { ...any, prices: { m: { input: 1, output: 1, fees: { requests: 0.005, web_search_requests: 0.01 } } } },
        output: { ...any, prices: gratis },
        claude: { ...at, plugin: 'anthropic', prices: gratis },
        gem: { ...at, plugin: 'gemini', prices: gratis },
        falling: { ...at, plugin: 'gemini', prices: { '*': { input: 1, output: 1 } } },
        claudes: { ...at, plugin: 'anthropic', prices: { '*': { input: 1, output: 1 } } },
        own: { ...at, plugin: 'openai', prices: gratis },
        thin: { ...any, prices: { m: { input: 0.0004, cached_input: 0.0004, output: 0.0004 } } },
        least: { ...any, prices: { m: { input: 0.0003, output: 0 } } },
        third: { ...any, prices: { m: { input: 0.083333, output: 0 } } },
        small: { ...any, prices: { m: { input: SMALL_CALLS.price, output: 0 } } },
        feed: { ...at, plugin: 'anthropic', prices: { claude: { fees: { other_requests: 0.01 } } } },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  /** Sends a request; returns the cost in the record of the call. */
  const charge = async (
    script: Buffer,
    { wire, model, request }: Pick<Case, 'wire' | 'model' | 'request'>,
    stream: boolean,
  ) => {
    upstream.script(script);
    const response = await gateway.post(wire.path, { ...wire.request, model, ...request, stream });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return eventually(async () => {
      const id = response.headers.get('x-request-id');
      const { data } = (await (await gateway.get(`/api/core/calls?request=${id}`)).json()) as {
        readonly data: readonly Json[];
      };
      expect(data).to.have.length(1);
      const { cost_usd: cost, estimated, priced } = data[0] as Json;
      return { usd: priced === true ? Number(cost) : null, estimated };
    });
  };

  for (const [at, { row, title, said, headers = {}, usd, estimated = false, ...rest }] of CASES.entries())
    for (const stream of partOf([false, true], at))
      it(`${title}${stream ? ', streamed' : ''} (${row})`, async () => {
        const { whole, events } = rest.wire;
        const script = stream ? eventStream(events(said), headers) : respondWith(200, whole(said), headers);
        expect(await charge(script, rest, stream)).to.deep.equal({ usd, estimated });
      });

  it('zeros of embeddings are estimated (E7)', async () => {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5] }];
    upstream.script(
      respondWith(200, { object: 'list', data, model: 'm', usage: { prompt_tokens: 0, total_tokens: 0 } }),
    );
    const response = await gateway.post('/v1/embeddings', { model: 'priced/m', input: 'word '.repeat(100) });
    expect([response.status, response.headers.get('x-tollgate-cost-usd')]).to.deep.equal([200, '0.000125']);
  });

  it('many small calls cost exactly their sum (E10) @slow', async () => {
    const { calls, tokens, usd } = SMALL_CALLS;
    const data = [{ object: 'embedding', index: 0, embedding: [0.5] }];
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    upstream.script(respondWith(200, { object: 'list', data, model: 'm', usage }));
    const token = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'small')).api_key;
    const headers = { authorization: `Bearer ${token}` };
    for (let sent = 0; sent < calls; sent += 20)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const response = await gateway.post('/v1/embeddings', { model: 'small/m', input: 'word' }, headers);
          expect(response.status, await response.text()).to.equal(200);
        }),
      );
    await eventually(async () => {
      const { totals } = (await (await gateway.get('/api/core/usage', headers)).json()) as { readonly totals: Json };
      expect([totals['requests'], Number(totals['cost_usd'])]).to.deep.equal([calls, usd]);
    });
  });

  it('fees alone do not change the price of the serving model (E6)', async () => {
    const said = { model: 'claude-opus-5', usage: anthropic(1000, 100, { server_tool_use: { other_requests: 1 } }) };
    const call = { wire: MESSAGES, model: 'feed/claude-haiku-4-5' };
    expect(await charge(respondWith(200, MESSAGES.whole(said)), call, false)).to.deep.equal({
      usd: 0.0175,
      estimated: false,
    });
  });

  for (const [title, first, last, usd] of SPLIT)
    it(`G12: of the first and the last usage of a stream: ${title}`, async () => {
      const events = MESSAGES.events({ usage: { ...last, output_tokens: 100 } }).map((event) =>
        typeof event === 'object' && 'message' in event
          ? { ...event, message: { ...(event.message as object), usage: { ...first, output_tokens: 1 } } }
          : event,
      );
      const call = { wire: MESSAGES, model: 'anthropic/claude-opus-5' };
      expect(await charge(eventStream(events), call, true)).to.deep.equal({ usd, estimated: false });
    });

  for (const [title, wire, model, events] of FALLING)
    it(`usage of a stream never falls: ${title} (E7)`, async () => {
      expect(await charge(eventStream(events), { wire, model }, true)).to.deep.equal({ usd: 0.0011, estimated: false });
    });
});

describe('the maximum cost is reserved before a request is sent', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream();
    const at = { baseUrl: upstream.url, apiKey: 'k' };
    const gratis = { '*': { input: 0, output: 1 } };
    gateway = await startGateway({
      billing: 'enforce',
      plans: { searching: { serverTools: ['web_search', 'code_interpreter'] } },
      defaultPlan: 'searching',
      providers: {
        openai: at,
        anthropic: at,
        output: { ...at, plugin: 'openai-compatible', models: ['*'], prices: gratis },
        own: { ...at, plugin: 'openai', prices: gratis },
      },
    });
    await gateway.command('accounts', 'credit', 'local', '0.09');
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  const search = { type: 'web_search_20250305', name: 'web_search' };
  const sound = { type: 'input_audio', input_audio: { data: 'aaaa', format: 'wav' } };
  const HOLDS: readonly (readonly [row: string, title: string, Wire, model: string, Json, status: number])[] = [
    // 2,000 tokens at 30 dollars per million, and at the 75 of the priority tier.
    ['E3', 'a tier that was not requested', CHAT, 'openai/gpt-5.5', { max_tokens: 2000 }, 402],
    [
      'E3',
      'not one that the request excludes',
      CHAT,
      'openai/gpt-5.5',
      { max_tokens: 2000, service_tier: 'default' },
      200,
    ],
    ['E4', 'ten searches', MESSAGES, 'anthropic/claude-opus-5', { max_tokens: 100, tools: [search] }, 402],
    ['E4', 'no search without the tool', MESSAGES, 'anthropic/claude-opus-5', { max_tokens: 100 }, 200],
    [
      'E4',
      'a tool without a price',
      RESPONSES,
      'openai/gpt-5.5',
      { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }], max_output_tokens: 100 },
      403,
    ],
    [
      'E5',
      'sound without a price',
      CHAT,
      'openai/gpt-5.5',
      { messages: [{ role: 'user', content: [sound] }], max_tokens: 100 },
      403,
    ],
  ];
  for (const [row, title, wire, model, request, status] of HOLDS)
    it(`${title}: ${status} (${row})`, async () => {
      const usage = wire === CHAT ? openai(10, 10) : anthropic(10, 10);
      upstream.script(respondWith(200, wire.whole({ usage })));
      const response = await gateway.post(wire.path, { ...wire.request, ...request, model });
      expect(response.status, await response.text()).to.equal(status);
    });

  const newCaller = async (user: string): Promise<{ readonly authorization: string }> => {
    const { api_key: token } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', user);
    return { authorization: `Bearer ${token}` };
  };

  for (const { row, title, request, usd } of HELD)
    it(`with ${title}: ${usd} US dollars (${row})`, async () => {
      const poor = await newCaller('poor');
      const response = await gateway.post(CHAT.path, { ...CHAT.request, ...request, model: 'output/m' }, poor);
      const [, held] = /may cost ([\d.]+) USD/.exec(await response.text()) ?? [];
      expect([response.status, Number(held)]).to.deep.equal([402, usd]);
    });

  for (const { row, balance, tokens, usd } of LOWERED)
    it(`a caller without a limit, and with ${balance} US dollars, gets ${tokens ?? 'all'} tokens (${row})`, async () => {
      upstream.script(respondWith(200, CHAT.whole({ usage: openai(10, 100) })));
      const user = `user${balance}`;
      const caller = await newCaller(user);
      await gateway.command('accounts', 'credit', user, balance);
      const response = await gateway.post(CHAT.path, { ...CHAT.request, model: 'own/gpt-5.5' }, caller);
      await response.text();
      const limit = response.headers.get('x-tollgate-max-tokens');
      expect([response.status, limit]).to.deep.equal(tokens === 0 ? [402, null] : [200, tokens && String(tokens)]);
      if (tokens === 0) return;
      expect(Number(response.headers.get('x-tollgate-cost-usd'))).to.equal(usd);
      const sent = upstream.requests.at(-1)?.json() as Json;
      if (tokens !== null) expect(sent).to.include({ max_completion_tokens: tokens });
    });
});

describe('the bills of docs/bills.md', () => {
  const chapter = readChapter('docs/bills.md', '# Bills, case by case').split('\n');
  const rows = chapter.filter((line) => line.startsWith('| '));

  it('contain all cases, at least three for each row of E3 to E10, and the prices with their sources', () => {
    expect(rows, 'write them with: npm run bills').to.deep.equal([...caseLines(), ...priceLines(), ...sourceLines()]);
    const counts = ['E3', 'E4', 'E5', 'E6', 'E7', 'E8', 'E9', 'E10'].map(
      (row) => rows.filter((line) => line.startsWith(`| ${row} `)).length,
    );
    expect(Math.min(...counts)).to.be.at.least(3);
  });
});
