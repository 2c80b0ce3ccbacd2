import {
  type FailureClass,
  type FinishReason,
  isObject,
  type JsonObject,
  type NativeFinish,
  readString,
  StreamFailure,
} from '../../../core/index.ts';
import { textOfDetails } from '../kit/index.ts';
import type { Differences } from './spec.ts';

/** Names under which vendors send the model's thinking; the first that is not empty is taken, some send it twice. */
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

interface Content {
  /** Undefined when the vendor sent none; null where it said so. */
  readonly content: string | null | undefined;
  readonly reasoning: string | undefined;
}

/** Text and thinking of a message or delta; content that comes as a list of parts (Mistral) is flattened. */
export function readContent(message: Readonly<Record<string, unknown>>): Content {
  const { content } = message;
  const named = readReasoning(message);
  if (typeof content === 'string' || content === null || content === undefined) {
    return { content, reasoning: named ?? textOfDetails(message['reasoning_details']) };
  }
  const parts = Array.isArray(content) ? content : [content];
  const reasoning = parts.map(thinkingText).join('');
  return { content: parts.map(plainText).join(''), reasoning: named ?? readString(reasoning) };
}

function readReasoning(message: Readonly<Record<string, unknown>>): string | undefined {
  for (const name of REASONING) {
    const text = readString(message[name]);
    if (text !== undefined) return text;
  }
  return undefined;
}

function plainText(part: unknown): string {
  if (typeof part === 'string') return part;
  return isObject(part) && (part['type'] === 'text' || part['type'] === 'output_text')
    ? (readString(part['text']) ?? '')
    : '';
}

/** Mistral: `{ type: "thinking", thinking: [{ type: "text", text }] }`, or thinking as a plain string. */
function thinkingText(part: unknown): string {
  if (!isObject(part) || part['type'] !== 'thinking') return '';
  const { thinking } = part;
  return Array.isArray(thinking) ? thinking.map(plainText).join('') : (readString(thinking) ?? '');
}

type Meaning = FinishReason | { readonly failure: FailureClass };

/** Every finish reason that was seen on this wire, in lower case. What is not here ends a choice with `stop`. */
const FINISH_REASON = Object.freeze<Record<string, Meaning>>({
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'function_call',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  safety: 'content_filter',
  refusal: 'content_filter',
  error: { failure: 'upstream_error' },
  abort: { failure: 'upstream_error' },
  cancelled: { failure: 'upstream_error' },
  timeout: { failure: 'timeout' },
  insufficient_system_resource: { failure: 'overloaded' },
});

/**
 * A vendor's finish reason as OpenAI's. A reason that stands for a failure throws it as {@link StreamFailure}; a turn
 * that called tools ends with `tool_calls`, also where the vendor says `stop`.
 */
export function mapFinishReason(
  reason: string,
  calledTools: boolean,
  { finishReasons, keepsStop = false }: Pick<Differences, 'finishReasons' | 'keepsStop'>,
): FinishReason {
  const key = reason.toLowerCase();
  const own = finishReasons && Object.hasOwn(finishReasons, key) ? finishReasons[key] : undefined;
  const meaning = own ?? (Object.hasOwn(FINISH_REASON, key) ? FINISH_REASON[key] : undefined) ?? 'stop';
  if (typeof meaning === 'object') {
    throw new StreamFailure({
      class: meaning.failure,
      message: `The provider ended the answer with "${key.slice(0, 40)}".`,
    });
  }
  return meaning === 'stop' && calledTools && !keepsStop ? 'tool_calls' : meaning;
}

/** Why the model stopped in its vendor's words, where these are no other spelling of OpenAI's; the stop sequence as vLLM tells it. */
export function readFinish(choice: JsonObject, finishReason: FinishReason): { readonly finish?: NativeFinish } {
  const native = readString(choice['native_finish_reason']) ?? readString(choice['finish_reason']);
  const sequence = finishReason === 'stop' ? readString(choice['stop_reason']) : undefined;
  const isSaid = native === undefined || Object.hasOwn(FINISH_REASON, native.toLowerCase());
  if (isSaid && sequence === undefined) return {};
  return { finish: { ...(!isSaid && { native }), ...(sequence !== undefined && { stop_sequence: sequence }) } };
}

/** Lists of log probabilities; the last is DeepSeek's, of the tokens the model thought. */
const LISTS = ['content', 'refusal', 'reasoning_content'] as const;

/**
 * Log probabilities as OpenAI sends them: `content` and `refusal`, lists or null. Together's parallel lists are turned,
 * and its streams' one number is that of the chunk's text; anything else is null.
 */
export function readLogprobs(value: unknown, text?: unknown): unknown {
  if (typeof value === 'number' && typeof text === 'string' && text !== '') {
    return { content: [tokenLogprob(text, value)], refusal: null };
  }
  if (!isObject(value)) return null;
  const { tokens, token_logprobs: logprobs } = value;
  if (Array.isArray(tokens) && Array.isArray(logprobs)) {
    return { content: tokens.map((token, at) => tokenLogprob(token, logprobs[at])), refusal: null };
  }
  if (!LISTS.some((name) => Array.isArray(value[name]))) return null;
  return { ...value, content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}

function tokenLogprob(token: unknown, logprob: unknown): object {
  const word = typeof token === 'string' ? token : '';
  return {
    token: word,
    logprob: typeof logprob === 'number' ? logprob : -9999,
    bytes: [...Buffer.from(word)],
    top_logprobs: [],
  };
}

/** Vendors' additions that mean nothing to a caller, or repeat what stands elsewhere. */
const NOISE = new Set([
  'obfuscation',
  'x_groq',
  'native_finish_reason',
  'warnings',
  'prompt',
  'token_id',
  'token_ids',
  'error',
]);

const TIERS = new Set<unknown>(['auto', 'default', 'flex', 'scale', 'priority', 'fast']);
const isText = (value: unknown): boolean => typeof value === 'string';

/** OpenAI's optional fields: a vendor that means something else by the name does not get through. */
const CHECKS = new Map<string, (value: unknown) => boolean>([
  ['annotations', Array.isArray],
  ['audio', isObject],
  ['content_filter_results', isObject],
  ['prompt_filter_results', Array.isArray],
  ['function_call', (value) => isObject(value) && isText(value['arguments'])],
  ['metadata', (value) => isObject(value) && Object.values(value).every(isText)],
  ['moderation', isObject],
  ['service_tier', (value) => TIERS.has(value)],
  ['system_fingerprint', isText],
]);

/** What is not known of an object: OpenAI's newer fields and a vendor's useful ones stay, nulls and noise go. */
export function extrasOf(source: JsonObject, known: ReadonlySet<string>): JsonObject {
  const extras: JsonObject = {};
  for (const key in source) {
    if (known.has(key) || NOISE.has(key) || key === '__proto__') continue;
    const value = source[key];
    if (value === null || value === undefined || CHECKS.get(key)?.(value) === false) continue;
    extras[key] = value;
  }
  return extras;
}
