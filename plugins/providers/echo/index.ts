import { parseDuration } from '../../../core/index.ts';
import { drop, OPENAI_ONLY, openaiCompatible, refuse } from '../openai-compatible.ts';
import { echoTransport } from './transport.ts';

/** Answers with the last user message, without a network and without a key: for the quickstart and for tests. */
export default openaiCompatible({
  name: 'echo',
  baseUrl: 'http://echo.invalid/v1',
  keyRequired: false,
  models: [
    { id: 'echo', kind: 'chat', contextWindow: 1_000_000, maxOutput: 100_000, price: { input: 0, output: 0 } },
    { id: 'echo-embedding', kind: 'embeddings', contextWindow: 1_000_000, price: { input: 0, output: 0 } },
  ],
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop(),
    function_call: refuse('it calls no tools', 'auto', 'none'),
    functions: drop('it calls no tools'),
    logit_bias: drop(),
    logprobs: drop(undefined, false),
    parallel_tool_calls: drop(),
    presence_penalty: drop(),
    reasoning_effort: drop(),
    seed: drop('it always answers the same'),
    temperature: drop('it always answers the same'),
    tool_choice: refuse('it calls no tools', 'auto', 'none'),
    tools: drop('it calls no tools'),
    top_logprobs: drop(),
    top_p: drop('it always answers the same'),
    user: drop(),
  },
  unknown: 'dropped',
  lacks: {
    'cached tokens': 'it keeps nothing',
    errors: 'nothing is behind it that could fail',
    'log probabilities': 'it guesses nothing',
    'parallel tool calls': 'it calls no tools',
    'reasoning content': 'it does not think',
    'reasoning tokens': 'it does not think',
    'tool calls': 'it calls no tools',
  },
  embeddings: {},
  options: {
    delay: { type: 'string', format: 'duration', description: 'Waits this long before every word; `0ms` unless set.' },
  },
  configure: ({ delay }) => ({
    transport: echoTransport({ delayMs: typeof delay === 'string' ? parseDuration(delay) : 0 }),
  }),
});
