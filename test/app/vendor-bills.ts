import { CHAT, GEMINI, type Json, MESSAGES, RESPONSES, type Wire } from '../support/vendors/bill-wires.ts';

/**
 * Usage in vendors' responses and the bill that follows: cases for each row of E3 to E10. `bill-table.ts` makes the
 * tables of docs/bills.md from them.
 */

export interface Case {
  readonly row: string;
  readonly title: string;
  readonly wire: Wire;
  readonly model: string;
  readonly request?: Json;
  readonly said: Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** US dollars; null if the cost is unknown. */
  readonly usd: number | null;
  readonly estimated?: boolean;
}

export const openai = (prompt: number, completion: number, more: Json = {}): Json => ({
  ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  ...more,
});
export const anthropic = (input: number, output: number, more: Json = {}): Json => ({
  ...{ input_tokens: input, output_tokens: output, ...more },
});
export const gemini = (prompt: number, candidates: number, more: Json = {}): Json => ({
  usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: candidates, ...more },
});
const iteration = (type: string, model: string | undefined, input: number, output: number): Json => ({
  ...{ type, ...(model !== undefined && { model }), input_tokens: input, output_tokens: output },
});

const GPT = { wire: CHAT, model: 'openai/gpt-5.5' };
const CLAUDE = { wire: MESSAGES, model: 'anthropic/claude-opus-5' };
const FLASH = { wire: GEMINI, model: 'gemini/gemini-2.5-flash' };
const RELAY = { wire: CHAT, model: 'relay/m' };
const USED = openai(1000, 100);

export const CASES: readonly Case[] = [
  {
    row: 'E3',
    title: 'priority asked, default served',
    ...GPT,
    request: { service_tier: 'priority' },
    said: { service_tier: 'default', usage: USED },
    usd: 0.008,
  },
  {
    row: 'E3',
    title: 'a project’s default priority',
    ...GPT,
    said: { service_tier: 'priority', usage: USED },
    usd: 0.02,
  },
  {
    row: 'E3',
    title: 'priority by its new name',
    wire: RESPONSES,
    model: 'openai/gpt-6.1-sol',
    request: { service_tier: 'priority' },
    said: { service_tier: 'fast', usage: anthropic(1000, 100) },
    usd: 0.006,
  },
  {
    row: 'E3',
    title: 'flex of a long prompt',
    ...GPT,
    request: { service_tier: 'flex' },
    said: { service_tier: 'flex', usage: openai(300_000, 100) },
    usd: 1.50225,
  },
  {
    row: 'E3',
    title: 'flex requested, no tier reported',
    ...GPT,
    request: { service_tier: 'flex' },
    said: { usage: USED },
    usd: 0.004,
  },
  {
    row: 'E3',
    title: 'flex asked, default served, on Responses',
    wire: RESPONSES,
    model: 'openai/gpt-5.5',
    request: { service_tier: 'flex' },
    said: { service_tier: 'default', usage: anthropic(1000, 100) },
    usd: 0.008,
  },
  { row: 'E3', title: 'a tier that has no price', ...GPT, said: { service_tier: 'turbo', usage: USED }, usd: null },
  {
    row: 'E3',
    title: 'a region that costs a tenth more',
    ...CLAUDE,
    said: { usage: anthropic(1000, 100, { inference_geo: 'us' }) },
    usd: 0.00825,
  },
  {
    row: 'E3',
    title: 'any region',
    ...CLAUDE,
    said: { usage: anthropic(1000, 100, { inference_geo: 'global' }) },
    usd: 0.0075,
  },
  {
    row: 'E3',
    title: 'a region that has no price',
    ...CLAUDE,
    said: { usage: anthropic(1000, 100, { inference_geo: 'mars' }) },
    usd: null,
  },
  {
    row: 'E3',
    title: 'capacity bought before, at the list price',
    ...CLAUDE,
    said: { usage: anthropic(1000, 100, { service_tier: 'priority' }) },
    usd: 0.0075,
  },
  {
    row: 'E3',
    title: 'a faster mode that has no price',
    ...CLAUDE,
    said: { usage: anthropic(1000, 100, { speed: 'fast' }) },
    usd: null,
  },
  {
    row: 'E3',
    title: 'the tier of a response’s header',
    wire: GEMINI,
    model: 'tiered/gemini-2.5-flash',
    said: gemini(1000, 100),
    headers: { 'x-gemini-service-tier': 'priority' },
    usd: 0.002,
  },
  {
    row: 'E3',
    title: 'the list price by a header',
    wire: GEMINI,
    model: 'tiered/gemini-2.5-flash',
    said: gemini(1000, 100),
    headers: { 'x-gemini-service-tier': 'standard' },
    usd: 0.001,
  },
  {
    row: 'E3',
    title: 'the tier of the traffic',
    wire: GEMINI,
    model: 'tiered/gemini-2.5-flash',
    said: gemini(1000, 100, { trafficType: 'ON_DEMAND_PRIORITY' }),
    usd: 0.002,
  },
  {
    row: 'E4',
    title: 'five searches',
    wire: MESSAGES,
    model: 'anthropic/claude-sonnet-5',
    said: { usage: anthropic(250, 100, { server_tool_use: { web_search_requests: 5, web_fetch_requests: 2 } }) },
    usd: 0.0515,
  },
  {
    row: 'E4',
    title: 'a search, and opening what it found',
    wire: RESPONSES,
    model: 'openai/gpt-5.5',
    said: {
      usage: anthropic(150, 50),
      output: [
        { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
        {
          type: 'web_search_call',
          id: 'ws_2',
          status: 'completed',
          action: { type: 'open_page', url: 'https://x.example' },
        },
      ],
    },
    usd: 0.01225,
  },
  {
    row: 'E4',
    title: 'a search of files',
    wire: RESPONSES,
    model: 'openai/gpt-5.5',
    said: {
      usage: anthropic(150, 50),
      output: [{ type: 'file_search_call', id: 'fs_1', status: 'completed', queries: [], results: null }],
    },
    usd: 0.00475,
  },
  {
    row: 'E4',
    title: 'code that ran, which has no price',
    wire: RESPONSES,
    model: 'openai/gpt-5.5',
    said: {
      usage: anthropic(150, 50),
      output: [
        { type: 'code_interpreter_call', id: 'ci_1', status: 'completed', code: '1', container_id: 'c', outputs: null },
      ],
    },
    usd: null,
  },
  {
    row: 'E4',
    title: 'a grounded response of an older model, whatever it looked for',
    ...FLASH,
    said: { ...gemini(1000, 100), grounding: { webSearchQueries: ['a', 'b'] } },
    usd: 0.03555,
  },
  {
    row: 'E4',
    title: 'each query of a newer model',
    wire: GEMINI,
    model: 'gemini/gemini-3.5-flash',
    said: { ...gemini(1000, 100), grounding: { webSearchQueries: ['a', 'b'] } },
    usd: 0.0304,
  },
  {
    row: 'E4',
    title: 'a map, which has no price',
    ...FLASH,
    said: { ...gemini(1000, 100), grounding: { groundingChunks: [{ maps: { uri: 'x' } }] } },
    usd: null,
  },
  {
    row: 'E4',
    title: 'a search that a relay tells, without a price',
    wire: CHAT,
    model: 'priced/m',
    said: { usage: openai(1000, 100, { server_tool_use: { web_search_requests: 1 } }) },
    usd: null,
  },
  {
    row: 'E4',
    title: 'the operator’s own fees, for each request and each search',
    wire: CHAT,
    model: 'fees/m',
    said: { usage: openai(1000, 100, { server_tool_use: { web_search_requests: 2 } }) },
    usd: 0.0261,
  },
  {
    row: 'E4',
    title: 'two searches of xAI, which tells its own sum, in ticks',
    wire: CHAT,
    model: 'xai/grok-4.3',
    said: { usage: openai(1000, 100, { num_sources_used: 2, cost_in_usd_ticks: 115_000_000 }) },
    usd: 0.0115,
  },
  {
    row: 'E4',
    title: 'a search of OpenRouter, which tells its own sum',
    wire: CHAT,
    model: 'openrouter/openai/gpt-5.5',
    said: { usage: openai(1000, 100, { cost: 0.028, server_tool_use: { web_search_requests: 1 } }) },
    usd: 0.028,
  },
  {
    row: 'E5',
    title: 'sound at its own price',
    ...FLASH,
    said: gemini(100_000, 10_000, { promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 100_000 }] }),
    usd: 0.125,
  },
  {
    row: 'E5',
    title: 'sound next to text, some of both cached',
    ...FLASH,
    said: gemini(2000, 100, {
      cachedContentTokenCount: 1000,
      promptTokensDetails: [
        { modality: 'AUDIO', tokenCount: 1000 },
        { modality: 'TEXT', tokenCount: 1000 },
      ],
      cacheTokensDetails: [
        { modality: 'AUDIO', tokenCount: 500 },
        { modality: 'TEXT', tokenCount: 500 },
      ],
    }),
    usd: 0.000965,
  },
  {
    row: 'E5',
    title: 'an image that was made',
    wire: GEMINI,
    model: 'gemini/gemini-2.5-flash-image',
    said: gemini(10, 1290, { candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1290 }] }),
    usd: 0.038703,
  },
  {
    row: 'E5',
    title: 'sound both ways',
    wire: CHAT,
    model: 'openai/gpt-audio',
    said: {
      usage: openai(1000, 500, {
        prompt_tokens_details: { audio_tokens: 900 },
        completion_tokens_details: { audio_tokens: 400 },
      }),
    },
    usd: 0.05565,
  },
  {
    row: 'E5',
    title: 'sound of a model that has no price for it',
    ...GPT,
    said: { usage: openai(1000, 100, { prompt_tokens_details: { audio_tokens: 900 } }) },
    usd: null,
  },
  {
    row: 'E5',
    title: 'seconds of sound',
    wire: CHAT,
    model: 'mistral/voxtral-small-latest',
    said: { usage: openai(1000, 100, { prompt_audio_seconds: 60 }) },
    usd: 0.0042,
  },
  {
    row: 'E5',
    title: 'the vendor’s own sum of its cost',
    ...RELAY,
    said: { usage: openai(7, 1, { cost: { input_tokens_cost: 0.000007, request_cost: 0.005, total_cost: 0.006 } }) },
    usd: 0.006,
  },
  {
    row: 'E6',
    title: 'the model that served',
    wire: MESSAGES,
    model: 'anthropic/claude-haiku-4-5',
    said: { model: 'claude-opus-5', usage: anthropic(1000, 100) },
    usd: 0.0075,
  },
  {
    row: 'E6',
    title: 'a fallback before anything was written',
    wire: MESSAGES,
    model: 'anthropic/claude-fable-5',
    said: {
      model: 'claude-opus-4-8',
      usage: anthropic(412, 264, {
        iterations: [
          iteration('message', 'claude-fable-5', 408, 0),
          iteration('fallback_message', 'claude-opus-4-8', 412, 264),
        ],
      }),
    },
    usd: 0.00866,
  },
  {
    row: 'E6',
    title: 'a fallback in the middle',
    wire: MESSAGES,
    model: 'anthropic/claude-fable-5',
    said: {
      model: 'claude-opus-4-8',
      usage: anthropic(412, 264, {
        iterations: [
          iteration('message', 'claude-fable-5', 408, 100),
          iteration('fallback_message', 'claude-opus-4-8', 412, 264),
        ],
      }),
    },
    usd: 0.01774,
  },
  {
    ...{ row: 'E6', title: 'a refusal before anything was written, which is free', ...CLAUDE, usd: 0 },
    said: { content: [], stop_reason: 'refusal', usage: anthropic(1000, 0) },
  },
  {
    row: 'E6',
    title: 'another model’s advice',
    wire: MESSAGES,
    model: 'anthropic/claude-sonnet-5',
    said: {
      model: 'claude-sonnet-5',
      usage: anthropic(1000, 10, {
        iterations: [
          iteration('message', undefined, 1000, 10),
          iteration('advisor_message', 'claude-opus-5', 2000, 100),
        ],
      }),
    },
    usd: 0.0146,
  },
  {
    row: 'E6',
    title: 'a model of no known price',
    wire: MESSAGES,
    model: 'anthropic/claude-sonnet-5',
    said: {
      usage: anthropic(1000, 10, {
        iterations: [
          iteration('message', undefined, 1000, 10),
          iteration('advisor_message', 'claude-missing-9', 2000, 100),
        ],
      }),
    },
    usd: null,
  },
  {
    row: 'E6',
    title: 'the operator’s price, whatever a server calls its model',
    wire: CHAT,
    model: 'priced/m',
    said: { model: 'gpt-4', usage: USED },
    usd: 0.0011,
  },
  // 300 words are 1,499 bytes; the prompt is about 7 tokens.
  ...[
    ['zeros', openai(0, 0)],
    ['negative', openai(-5, 100)],
    ['fractional', openai(10.5, 100)],
    ['a text', { prompt_tokens: '10', completion_tokens: '100' }],
    ['absurd', openai(10, 1e15)],
    ['nothing', undefined],
  ].map(
    ([what, usage]): Case => ({
      row: 'E7',
      title: `usage that is ${what as string}`,
      wire: CHAT,
      model: 'output/m',
      said: { usage },
      usd: 0.000375,
      estimated: true,
    }),
  ),
  ...[
    { what: 'zeros', wire: MESSAGES, model: 'claude/claude-opus-5', said: { usage: anthropic(0, 0) } },
    { what: 'a fraction', wire: MESSAGES, model: 'claude/claude-opus-5', said: { usage: anthropic(10, 2.5) } },
    { what: 'zeros', wire: GEMINI, model: 'gem/gemini-2.5-flash', said: gemini(0, 0) },
    { what: 'less than nothing', wire: GEMINI, model: 'gem/gemini-2.5-flash', said: gemini(10, -1) },
    { what: 'zeros', wire: RESPONSES, model: 'own/gpt-5.5', said: { usage: anthropic(0, 0) } },
    { what: 'too much', wire: RESPONSES, model: 'own/gpt-5.5', said: { usage: anthropic(10, 1e10) } },
  ].map(
    ({ what, ...each }): Case => ({
      ...{ row: 'E7', title: `${what} of ${each.model}`, ...each, usd: 0.000375, estimated: true },
    }),
  ),
  {
    row: 'E7',
    title: 'a prompt without words that were written',
    wire: CHAT,
    model: 'output/m',
    said: { usage: openai(10, 0) },
    usd: 0.000375,
    estimated: true,
  },
  {
    row: 'E7',
    title: 'words without a prompt',
    wire: CHAT,
    model: 'output/m',
    said: { usage: openai(0, 100) },
    usd: 0.0001,
    estimated: true,
  },
  {
    row: 'E10',
    title: 'three units of 0.4 nano-dollars, rounded up once',
    wire: CHAT,
    model: 'thin/m',
    said: { usage: openai(2, 1, { prompt_tokens_details: { cached_tokens: 1 } }) },
    usd: 0.000_000_002,
  },
  {
    row: 'E10',
    title: 'less than a nano-dollar is one',
    wire: CHAT,
    model: 'least/m',
    said: { usage: openai(1, 1) },
    usd: 0.000_000_001,
  },
  {
    row: 'E10',
    title: 'a hundred million tokens but one, at a price of six decimals',
    wire: CHAT,
    model: 'third/m',
    said: { usage: openai(99_999_999, 1) },
    usd: 8.333_299_917,
  },
];

/**
 * Maximum cost of a request, which is reserved before it is sent: one US dollar per million output tokens, input free.
 */
export const HELD: readonly {
  readonly row: string;
  readonly title: string;
  readonly request: Json;
  readonly usd: number;
}[] = [
  { row: 'E8', title: '`best_of`: 5', request: { max_tokens: 1000, best_of: 5 }, usd: 0.005 },
  { row: 'E8', title: '`n`: 3', request: { max_tokens: 100, n: 3 }, usd: 0.0003 },
  {
    row: 'E8',
    title: '`options.num_predict`: 3,000',
    request: { max_tokens: 100, options: { num_predict: 3000 } },
    usd: 0.003,
  },
  { row: 'E8', title: '`max_new_tokens`: 5,000', request: { max_tokens: 100, max_new_tokens: 5000 }, usd: 0.005 },
  { row: 'E8', title: '`min_tokens`: 900', request: { max_tokens: 10, min_tokens: 900 }, usd: 0.0009 },
  {
    row: 'E8',
    title: '`reasoning.max_tokens`: 2,000',
    request: { max_tokens: 100, reasoning: { max_tokens: 2000 } },
    usd: 0.0021,
  },
  {
    row: 'E8',
    title: '`thinking.budget_tokens`: 2,000',
    request: { max_tokens: 100, thinking: { type: 'enabled', budget_tokens: 2000 } },
    usd: 0.0021,
  },
  {
    row: 'E8',
    title: '`extra_body.best_of`: 2',
    request: { max_tokens: 100, extra_body: { best_of: 2 } },
    usd: 0.0002,
  },
];

/**
 * Results for a caller without an output limit, by balance. The price is the same; the model writes up to 128,000
 * tokens. The response has 100.
 */
export const LOWERED: readonly {
  readonly row: string;
  readonly balance: string;
  readonly tokens: number | null;
  readonly usd: number;
}[] = [
  { row: 'E9', balance: '1', tokens: null, usd: 0.0001 },
  { row: 'E9', balance: '0.1', tokens: 50_000, usd: 0.0001 },
  { row: 'E9', balance: '0.006', tokens: 4096, usd: 0.0001 },
  { row: 'E9', balance: '0.001', tokens: 1000, usd: 0.0001 },
  { row: 'E9', balance: '0.0002', tokens: 0, usd: 0 },
];

/** Many small calls are charged exactly: embeddings of five tokens at 0.02 US dollars per million. */
export const SMALL_CALLS = { row: 'E10', calls: 300, tokens: 5, price: 0.02, usd: 0.000_03 };
