import { drop, nearestEffort, OPENAI_ONLY, openaiCompatible, pass, refuse, rename } from './openai-compatible.ts';

const NOT_YET = 'not yet supported by any of its models';

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
    n: refuse('one choice an answer', 1),
    presence_penalty: drop(NOT_YET, 0),
    reasoning_effort: pass('`low`, `medium`, `high`', (effort) => nearestEffort(effort, ['low', 'medium', 'high'])),
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
      fields: { response_format: refuse('not together with tools') },
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
  roles: { developer: 'system' },
  replay: 'reasoning',
  lacks: { 'log probabilities': NOT_YET },
  errors: { codes: { capacity_exceeded: 'rate_limit' } },
});

function tier(value: unknown): unknown {
  const own = value === 'default' ? 'on_demand' : value;
  return ['auto', 'on_demand', 'flex', 'performance'].includes(String(own)) ? own : undefined;
}
