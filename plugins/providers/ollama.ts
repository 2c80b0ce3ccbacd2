import { type ChatMessage, type ChatRequest, GatewayError } from '../../contract/index.ts';
import { TEMPLATE_ORDER } from './kit/index.ts';
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

/** Source: ollama/ollama `openai/openai.go` and `docs/api` (2026-08). */
export default openaiCompatible({
  name: 'ollama',
  baseUrl: 'http://127.0.0.1:11434/v1',
  apiKeyEnv: 'OLLAMA_API_KEY',
  keyRequired: false,
  anyModel: true,
  unlimited: true,
  thinkTags: true,
  // The first call of a model may wait until the model is loaded from disk.
  timeouts: { firstByteMs: 300_000 },
  fields: {
    ...OPENAI_ONLY,
    logit_bias: refuse('no token biases'),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    reasoning_effort: pass('`low`, `medium`, `high`, `max`, `none`', (effort) =>
      nearestEffort(effort, ['max', 'high', 'medium', 'low', 'none']),
    ),
    temperature: pass('1.0 if missing, even if the model file has another value'),
    tool_choice: emulate(
      '`none` drops the tools, a named tool drops the others; `required` is not enforced',
      chooseTools,
    ),
    top_p: pass('1.0 if missing, even if the model file has another value'),
    user: drop(),
  },
  extras: ['reasoning'],
  effects: {
    model: [{ does: 'residency', values: /[:-]cloud$/, note: 'models that run on Ollama’s own servers' }],
  },
  roles: { developer: 'system' },
  // Most models use Ollama's own renderers, not chat templates, so adjacent turns of one role may stay.
  turnOrder: () => TEMPLATE_ORDER,
  replay: 'reasoning',
  remoteMedia: 'refuse',
  messages: checkImages,
  lacks: { 'cached tokens': 'its usage has three counts only', 'reasoning tokens': 'its usage has three counts only' },
  embeddings: { fields: { user: drop() } },
});

function chooseTools(choice: unknown, { tools = [] }: ChatRequest) {
  if (choice === 'auto') return {};
  if (choice === 'none') return { body: { tools: undefined } };
  const name = (choice as { readonly function?: { readonly name?: string } }).function?.name;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers may send other kinds
  const named = tools.filter((tool) => tool.function?.name === name);
  return { body: named.length > 0 ? { tools: named } : {}, dropped: true };
}

/** Images are accepted only as data; the gateway fetches no URL of a caller. */
function checkImages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  messages.forEach(({ content }, at) => {
    if (!Array.isArray(content)) return;
    const remote = content.findIndex(
      (part) => part.type === 'image_url' && !/^data:/i.test(String(part['image_url']?.url)),
    );
    if (remote < 0) return;
    throw new GatewayError('invalid_request', 'This provider accepts images only as `data:` URLs.', {
      param: `messages[${at}].content[${remote}].image_url.url`,
    });
  });
  return messages;
}
