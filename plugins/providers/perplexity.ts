import { isObject, readObject } from '../../contract/index.ts';
import { drop, nearestEffort, OPENAI_ONLY, openaiCompatible, pass, refuse, rename } from './openai-compatible.ts';

/**
 * Sources: docs.perplexity.ai/api-reference/sonar-post (2026-10), perplexityai/api-docs. Each call searches the web
 * and reports its cost.
 */
export default openaiCompatible({
  name: 'perplexity',
  baseUrl: 'https://api.perplexity.ai',
  apiKeyEnv: 'PERPLEXITY_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: pass(),
    function_call: refuse('no tools', 'none', 'auto'),
    functions: refuse('no tools', []),
    logit_bias: refuse('no token biases'),
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(),
    presence_penalty: pass(),
    reasoning_effort: pass('`minimal`, `low`, `medium`, `high`; higher values become `high`', (effort) =>
      effort === 'none' ? undefined : nearestEffort(effort, ['high', 'medium', 'low', 'minimal']),
    ),
    response_format: pass('a JSON Schema; `json_object` becomes a schema that allows any object', (format) =>
      readObject(format)['type'] === 'json_object' ? ANY_OBJECT : format,
    ),
    seed: drop(),
    tool_choice: refuse('no tools', 'none', 'auto'),
    tools: refuse('no tools', []),
    top_logprobs: drop(),
    user: drop(),
    web_search_options: pass('`search_context_size`, `search_type` and `user_location`; search is always on'),
  },
  extras: [
    ...['disable_search', 'enable_search_classifier', 'image_domain_filter', 'image_format_filter'],
    ...['language_preference', 'last_updated_after_filter', 'last_updated_before_filter', 'media_response'],
    ...['return_images', 'return_related_questions', 'search_after_date_filter', 'search_before_date_filter'],
    ...['search_domain_filter', 'search_language_filter', 'search_mode', 'search_recency_filter', 'top_k'],
  ],
  effects: { model: [{ does: 'tool', name: 'web_search', note: 'every model searches the web' }] },
  roles: { developer: 'system' },
  thinkTags: true,
  streamUsage: 'always',
  // Only its own figure includes the extent of a call's searches.
  usageCost: ({ cost }) => {
    const total = isObject(cost) ? cost['total_cost'] : cost;
    return typeof total === 'number' ? total : undefined;
  },
  usageUnits: ({ num_search_queries: searches }) =>
    typeof searches === 'number' && searches > 0 ? { web_search_requests: searches } : undefined,
  listsSources: true,
  listsModels: false,
  lacks: {
    'cached tokens': 'its usage does not count them',
    'log probabilities': 'not in its documentation',
    'parallel tool calls': 'it has no tools',
    'tool calls': 'it has no tools',
  },
});

const ANY_OBJECT = Object.freeze({ type: 'json_schema', json_schema: { schema: { type: 'object' } } });
