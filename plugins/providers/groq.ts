import type { ChatRequest } from '../../contract/index.ts';
import {
  drop,
  type Emulation,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  refuse,
  rename,
} from './openai-compatible.ts';

const NOT_YET = 'not supported by its models';

/** Sources: groq-sdk 1.6, console.groq.com/docs (2026), vercel/ai `packages/groq`. */
export default openaiCompatible({
  name: 'groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  apiKeyEnv: 'GROQ_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop(NOT_YET, 0),
    logit_bias: refuse(NOT_YET),
    logprobs: drop(NOT_YET, false),
    max_tokens: rename('max_completion_tokens'),
    n: refuse('one choice per response', 1),
    presence_penalty: drop(NOT_YET, 0),
    reasoning_effort: emulate('`low`, `medium`, `high` for `gpt-oss`; other models reject it', effortOfOss),
    service_tier: pass('`auto`, `on_demand`, `flex`, `performance`; `default` is `on_demand`', tier),
    top_logprobs: drop(NOT_YET),
  },
  variants: [
    {
      when: 'tools together with a JSON `response_format`',
      applies: ({ tools, response_format: format }) => (tools?.length ?? 0) > 0 && (format?.type ?? 'text') !== 'text',
      example: {
        model: 'llama-3.3-70b-versatile',
        tools: [{ type: 'function', function: { name: 'now' } }],
        response_format: { type: 'json_object' },
      },
      fields: { response_format: refuse('not with tools') },
    },
    {
      when: '`qwen/qwen3` before 3.8',
      models: /^qwen\/qwen3(?!\.8)/,
      example: { model: 'qwen/qwen3.6-27b' },
      fields: {
        reasoning_effort: pass('`none` or `default`', (effort) =>
          effort === 'none' || effort === 'minimal' ? 'none' : 'default',
        ),
      },
    },
    {
      when: '`qwen/qwen3.8`',
      models: /^qwen\/qwen3\.8/,
      example: { model: 'qwen/qwen3.8-27b' },
      fields: {
        reasoning_effort: pass(undefined, (effort) => nearestEffort(effort, ['high', 'medium', 'low', 'none'])),
      },
    },
  ],
  operations: ['transcription'],
  // https://console.groq.com/docs/speech-to-text
  transcription: { fields: ['language', 'prompt', 'temperature'], streams: false, leastSeconds: 10 },
  extras: [
    ...['citation_options', 'compound_custom', 'disable_tool_validation', 'documents', 'exclude_domains'],
    ...['include_domains', 'include_reasoning', 'reasoning_format', 'search_settings'],
  ],
  // https://console.groq.com/docs/compound, `CompletionCreateParams` of groq-sdk
  effects: {
    model: [{ does: 'tool', name: 'compound', values: /(?:^|\/)compound/, note: 'searches the web and runs code' }],
    compound_custom: [{ does: 'tool', name: 'compound' }],
    exclude_domains: [{ does: 'tool', name: 'web_search' }],
    include_domains: [{ does: 'tool', name: 'web_search' }],
    search_settings: [{ does: 'tool', name: 'web_search' }],
  },
  roles: { developer: 'system' },
  replay: 'reasoning',
  lacks: { 'log probabilities': NOT_YET },
  errors: { codes: { capacity_exceeded: 'rate_limit' } },
});

function effortOfOss(value: unknown, { model }: ChatRequest): Emulation {
  const takesIt = model.includes('gpt-oss');
  return takesIt
    ? { body: { reasoning_effort: nearestEffort(value, ['low', 'medium', 'high']) } }
    : { dropped: value !== 'none' };
}

function tier(value: unknown): unknown {
  const own = value === 'default' ? 'on_demand' : value;
  return ['auto', 'on_demand', 'flex', 'performance'].includes(String(own)) ? own : undefined;
}
