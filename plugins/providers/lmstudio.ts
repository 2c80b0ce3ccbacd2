import { templateOrder } from './kit/index.ts';
import {
  drop,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  refuse,
  rename,
} from './openai-compatible.ts';

/** Self-hosted server. Source: lmstudio-ai/docs `1_developer/3_openai-compat` (2026-10). */
export default openaiCompatible({
  name: 'lmstudio',
  baseUrl: 'http://127.0.0.1:1234/v1',
  apiKeyEnv: 'LMSTUDIO_API_KEY',
  keyRequired: false,
  anyModel: true,
  unlimited: true,
  thinkTags: true,
  // The first call of a model may wait until the model is loaded from disk.
  timeouts: { firstByteMs: 300_000 },
  fields: {
    ...OPENAI_ONLY,
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    reasoning_effort: pass('`none`, `low`, `medium`, `high`, `xhigh`', (effort) =>
      nearestEffort(effort, ['xhigh', 'high', 'medium', 'low', 'none']),
    ),
    response_format: emulate('`json_object` becomes a schema that allows any object', anyObject),
    top_logprobs: drop(),
    user: drop(),
  },
  extras: ['min_p', 'repeat_penalty', 'top_k', 'ttl'],
  roles: { developer: 'system' },
  turnOrder: templateOrder,
  replay: 'reasoning_content',
  remoteMedia: 'refuse',
  lacks: {
    'cached tokens': 'its usage has three counts only',
    'log probabilities': 'not in its documentation',
    'reasoning tokens': 'its usage has three counts only',
  },
  embeddings: { fields: { user: drop() } },
});

/** The server rejects `json_object`: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189 */
function anyObject(value: unknown) {
  const isObject = typeof value === 'object' && value !== null && 'type' in value && value.type === 'json_object';
  const schema = { type: 'json_schema', json_schema: { name: 'object', schema: { type: 'object' } } };
  return { body: { response_format: isObject ? schema : value } };
}
