import {
  type AssistantMessage,
  type ChatChoice,
  type ChatChunk,
  type ChatResponse,
  type CodecCall,
  type DialectContext,
  type FinishReason,
  isCount,
  isObject,
  type JsonObject,
  type NativeFinish,
  type ReasoningDetail,
  readObject,
  readString,
  StreamFailure,
  type UpstreamFailure,
  type Usage,
} from '../../../contract/index.ts';
import { readRelayDetails, textOfDetails } from '../kit/index.ts';
import { sealDetail } from '../sealed-reasoning.ts';
import { type ChoiceEnd, hasDelivered, unmappedEnd } from '../unmapped-end.ts';
import { classifyError } from './errors.ts';
import { FINISH_REASON, USUAL_ENDS } from './tables.ts';
import { readToolCalls } from './tool-calls.ts';
import type { Differences, ErrorRules, UsageRules } from './types.ts';

/** Fields of a response, a choice and a message that are read one by one; other useful fields pass unchanged. */
export const TOP = new Set('id object created model choices usage'.split(' '));
const CHOICE = new Set('index message finish_reason logprobs text delta finish'.split(' '));
export const MESSAGE = new Set(
  'role content refusal tool_calls reasoning_content reasoning reasoning_text reasoning_details'.split(' '),
);

/** Reads a complete response in OpenAI's exact shape. Throws {@link StreamFailure} for a failure with status 200. */
export function readResponse(body: unknown, call: CodecCall, differences: Differences): ChatResponse {
  const failure = failureIn(body, differences.errors);
  if (failure) throw new StreamFailure(failure);
  if (!isObject(body) || !Array.isArray(body['choices'])) {
    throw new StreamFailure({
      class: 'upstream_error',
      message: 'The provider returned a response without `choices`.',
    });
  }
  const choices: ChatChoice[] = [];
  const sent = body['choices'].filter(isObject);
  const isDelivered = (): boolean => sent.some(({ message }) => hasDelivered(readObject(message)));
  for (const choice of sent) choices.push(readChoice(choice, choices.length, call, differences, isDelivered));
  const read = readUsage(body['usage'], differences);
  const usage = body['service_tier'] === undefined ? read : withTier(read, body);
  const response: ChatResponse = {
    id: readString(body['id']) ?? call.id,
    object: 'chat.completion',
    created: unixSeconds(body['created']) ?? call.created,
    model: readString(body['model']) ?? call.model,
    choices,
  };
  return Object.assign(response, usage && { usage }, extrasOf(body, TOP));
}

function readChoice(
  choice: Readonly<Record<string, unknown>>,
  position: number,
  call: CodecCall,
  differences: Differences,
  isDelivered: () => boolean,
): ChatChoice {
  const said = readObject(choice['message']);
  const { reasoning_details: details, tool_calls: calls } = said;
  const { content, reasoning } = readContent(said);
  const message: JsonObject & { -readonly [Field in keyof AssistantMessage]: AssistantMessage[Field] } = {
    role: 'assistant',
    content: content ?? null,
    refusal: readString(said['refusal']) ?? null,
  };
  if (reasoning !== undefined) message.reasoning_content = reasoning;
  const readDetails = details ? readRelayDetails(details) : [];
  if (readDetails.length > 0) message.reasoning_details = readDetails;
  const readCalls = calls ? readToolCalls(calls, `${call.id}:${position}`) : undefined;
  if (readCalls) message.tool_calls = readCalls;
  Object.assign(message, extrasOf(said, MESSAGE));
  // The body is complete, so a missing reason is a vendor's omission, not an incomplete response.
  const reason = readString(choice['finish_reason']) ?? 'stop';
  const known = mapFinishReason(reason, readCalls !== undefined, differences);
  const end = known
    ? readFinish(choice, known)
    : unmappedEnd(
        reason,
        isDelivered(),
        readCalls?.map((each) => readString(readObject(each.function)['arguments']) ?? '') ?? [],
      );
  const read: ChatChoice = {
    index: count(choice['index']) ?? position,
    message,
    logprobs: choice['logprobs'] ? readLogprobs(choice['logprobs']) : null,
    finish_reason: end.finish_reason,
  };
  return Object.assign(read, end, extrasOf(choice, CHOICE));
}

/** Converts a vendor's `created`, including milliseconds or fractions, to Unix seconds; undefined for 0. */
export function unixSeconds(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return undefined;
  return Math.floor(value > 100_000_000_000 ? value / 1000 : value);
}

/** Fields in which vendors send the model's thinking; the first non-empty one counts, because some send it twice. */
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

interface Content {
  /** Undefined if the vendor sent none; null if it sent null. */
  readonly content: string | null | undefined;
  readonly reasoning: string | undefined;
}

/** Text and thinking of a message or delta; content as a list of parts (Mistral) is flattened. */
export function readContent(message: JsonObject): Content {
  const { content, reasoning_details: details } = message;
  let reasoning: string | undefined;
  for (const name of REASONING) reasoning ??= readString(message[name]);
  if (typeof content === 'string' || content === null || content === undefined)
    return { content, reasoning: reasoning ?? (details ? textOfDetails(details) : undefined) };
  const parts = Array.isArray(content) ? content : [content];
  reasoning ??= readString(parts.map(thinkingText).join(''));
  return { content: parts.map(plainText).join(''), reasoning };
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

/**
 * Maps a vendor's finish reason to OpenAI's; undefined for an unknown one. A reason that means a failure throws
 * {@link StreamFailure}. A turn that called tools ends with `tool_calls`, even if the vendor sends `stop`.
 */
export function mapFinishReason(
  reason: string,
  calledTools: boolean,
  { finishReasons, keepsStop = false }: Pick<Differences, 'finishReasons' | 'keepsStop'>,
): FinishReason | undefined {
  const key = reason.toLowerCase();
  const own = finishReasons && Object.hasOwn(finishReasons, key) ? finishReasons[key] : undefined;
  const meaning = own ?? (Object.hasOwn(FINISH_REASON, key) ? FINISH_REASON[key] : undefined);
  if (typeof meaning === 'object') {
    const message = `The model stopped before the end of its response (${key.slice(0, 40)}).`;
    throw new StreamFailure({ class: meaning.failure, message });
  }
  return meaning === 'stop' && calledTools && !keepsStop ? 'tool_calls' : meaning;
}

/**
 * Finish reason with the vendor's own word, unless it is only another spelling of OpenAI's, and with the stop
 * sequence as vLLM sends it.
 */
export function readFinish(choice: JsonObject, finishReason: FinishReason): ChoiceEnd {
  const native = readString(choice['native_finish_reason']) ?? readString(choice['finish_reason']);
  const sequence = finishReason === 'stop' ? readString(choice['stop_reason']) : undefined;
  const isSaid = native === undefined || USUAL_ENDS.has(native.toLowerCase());
  if (isSaid && sequence === undefined) return { finish_reason: finishReason };
  const finish: NativeFinish = {
    ...(!isSaid && { native }),
    ...(sequence !== undefined && { stop_sequence: sequence }),
  };
  return { finish_reason: finishReason, finish };
}

/** Lists of log probabilities; the last is DeepSeek's, for thinking tokens. */
const LISTS = ['content', 'refusal', 'reasoning_content'] as const;

/**
 * Log probabilities in OpenAI's form: `content` and `refusal`, lists or null. Together's parallel lists are
 * transposed; the single number in its streams belongs to the chunk's text. Anything else becomes null.
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

/** Vendor additions without meaning for callers, or redundant ones. */
const NOISE = new Set('obfuscation x_groq native_finish_reason warnings prompt token_id token_ids error'.split(' '));

const TIERS = new Set<unknown>(['auto', 'default', 'flex', 'scale', 'priority', 'fast']);
const isText = (value: unknown): boolean => typeof value === 'string';

/** Checks for OpenAI's optional fields: a vendor's field with another meaning is dropped. */
export const CHECKS = new Map<string, (value: unknown) => boolean>([
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

/** Unknown fields of an object: OpenAI's newer fields and useful vendor fields; nulls and noise are dropped. */
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

/** Fields with a vendor's count of cached tokens, in order; the second name is the enclosing object. */
const CACHED: readonly (readonly [field: string, within?: string])[] = Object.freeze([
  ['cached_tokens', 'prompt_tokens_details'],
  ['cached_tokens', 'prompt_token_details'], // Mistral, misspelt
  ['prompt_cache_hit_tokens'], // DeepSeek
  ['cached_tokens'], // Moonshot
  ['num_cached_tokens'], // Mistral
]);

/** Fields that are rewritten, or redundant. */
const REWRITTEN = new Set([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_tokens_details',
  'completion_tokens_details',
  'prompt_token_details',
  'num_cached_tokens',
  'cached_tokens',
]);

/**
 * Converts usage to OpenAI's arithmetic: prompt includes cached, completion includes reasoning, total is their sum.
 * Undefined for anything but usage (garbage is not billed), and for invalid counts. `reasoningTokens: 'outside'` adds
 * reasoning tokens to the completion's.
 */
export function readUsage(value: unknown, rules: UsageRules = {}): Usage | undefined {
  if (!isObject(value)) return undefined;
  const promptReported = count(value['prompt_tokens']);
  const completionReported = count(value['completion_tokens']);
  const totalReported = count(value['total_tokens']);
  if (promptReported === undefined && isReported(value['prompt_tokens'])) return undefined;
  if (completionReported === undefined && isReported(value['completion_tokens'])) return undefined;
  if (promptReported === undefined && completionReported === undefined && totalReported === undefined) return undefined;
  let cached: number | undefined;
  for (const [field, within] of CACHED) {
    const holder = within === undefined ? value : value[within];
    if (cached === undefined && isObject(holder) && field in holder) cached = count(holder[field]);
  }
  const reasoning = count(readObject(value['completion_tokens_details'])['reasoning_tokens']);
  let prompt = promptReported ?? Math.max((totalReported ?? 0) - (completionReported ?? 0), 0);
  let completion = completionReported ?? Math.max((totalReported ?? 0) - prompt, 0);
  if (cached !== undefined && cached > prompt) prompt += cached; // xAI: the prompt then excludes cached ones
  const outside = rules.reasoningTokens === 'outside';
  if (reasoning && (outside || isOutside(reasoning, prompt, completion, totalReported))) completion += reasoning;
  const promptDetails = countsIn(value['prompt_tokens_details'], cached);
  const completionDetails = countsIn(value['completion_tokens_details'], undefined);
  const cost = reportedCostOf(value, rules);
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } & JsonObject = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  if (promptDetails) usage.prompt_tokens_details = promptDetails;
  if (completionDetails) usage.completion_tokens_details = completionDetails;
  for (const key of Object.keys(value))
    if (!REWRITTEN.has(key) && value[key] !== null && key !== '__proto__') usage[key] = value[key];
  if (cost !== undefined) usage.cost = cost;
  // Vendor fields with these names have another meaning than the fields used for prices.
  delete usage.by_model;
  delete usage.units;
  const units = rules.usageUnits ? rules.usageUnits(value) : value['server_tool_use'] ? toolUse(value) : undefined;
  if (units) usage.units = units;
  return usage;
}

/** Adds the service tier to a usage, if OpenAI has no such tier. The call is charged by it; clients do not get it. */
export function withTier(usage: Usage | undefined, { service_tier: tier }: JsonObject): Usage | undefined {
  if (!usage || typeof tier !== 'string' || tier === '' || TIERS.has(tier)) return usage;
  return { ...usage, service_tier: tier };
}

/** Uses of vendor tools as reported by relays. */
function toolUse({ server_tool_use: used }: JsonObject): Usage['units'] {
  const units = Object.entries(readObject(used)).filter((each): each is [string, number] => Number(each[1]) !== 0);
  return units.length > 0 ? Object.fromEntries(units) : undefined;
}

/** Cost of the call in US dollars, from a vendor's usage. Perplexity reports it in parts, with their total. */
export function reportedCostOf(usage: JsonObject, { usageCost }: UsageRules): number | undefined {
  if (usageCost) return usageCost(usage);
  const total = isObject(usage['cost']) ? usage['cost']['total_cost'] : usage['cost'];
  return typeof total === 'number' ? total : undefined;
}

/** Returns true if the vendor's total shows that completion tokens exclude reasoning. */
function isOutside(reasoning: number, prompt: number, completion: number, total: number | undefined): boolean {
  return reasoning > completion || total === prompt + completion + reasoning;
}

/** Token count; undefined for an invalid value, such as a fraction. */
export function count(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

function isReported(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Counts in a usage's details, plus the cached tokens from any field of the vendor. */
function countsIn(value: unknown, cached: number | undefined): Record<string, number> | undefined {
  let all: Record<string, number> | undefined;
  if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const tokens = count(value[key]);
      if (tokens === undefined) continue;
      all ??= {};
      all[key] = tokens;
    }
  }
  return cached === undefined ? all : { ...all, cached_tokens: cached };
}

/**
 * Returns the failure in a response with a success status, or in a stream event; undefined without one. Vendors put
 * it at the top level or in a choice, or send an error body in place of a response.
 */
export function failureIn(
  body: unknown,
  rules: ErrorRules | undefined,
  isErrorEvent = false,
): UpstreamFailure | undefined {
  if (!isObject(body)) {
    if (Array.isArray(body) && isObject(body[0]) && body[0]['error']) return classifyError(200, body, {}, rules);
    return isErrorEvent ? classifyError(200, body, {}, rules) : undefined;
  }
  const { error, x_groq: groq, choices } = body;
  if (isErrorEvent || (error && isError(error)) || body['object'] === 'error')
    return classifyError(200, body, {}, rules);
  if (isObject(groq) && isError(groq['error'])) return classifyError(200, groq, {}, rules);
  if (!Array.isArray(choices)) {
    const isResponse = readString(body['message']) === undefined && body['detail'] === undefined;
    return isResponse ? undefined : classifyError(200, body, {}, rules);
  }
  for (const choice of choices)
    if (isObject(choice) && choice['error'] && isError(choice['error'])) return classifyError(200, choice, {}, rules);
  return undefined;
}

function isError(value: unknown): boolean {
  return isObject(value) || readString(value) !== undefined;
}

type Writing = Pick<DialectContext, 'seal' | 'omit'>;

/** Fields of a message or delta that clients of this format do not get unchanged. */
interface Spoken {
  readonly reasoning_content?: string | null;
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly annotations?: readonly unknown[];
  readonly order?: readonly string[];
  readonly opaque?: unknown;
  readonly dialect_fields?: unknown;
}

/** Converts a response for clients of this format; returns the same one if nothing changes. */
export function writeChatResponse(response: ChatResponse, context: Writing): ChatResponse {
  let isSame = !('dialect_fields' in response);
  for (const { message } of response.choices) isSame &&= isPlain(message);
  if (isSame) return response;
  const { dialect_fields: _fields, choices, ...rest } = response;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, message: writeSpoken(choice.message, context) })),
  };
}

/** Converts a chunk for clients of this format; returns the same one if nothing changes. */
export function writeChatChunk(chunk: ChatChunk, context: Writing): ChatChunk {
  let isSame = !('dialect_fields' in chunk);
  for (const { delta } of chunk.choices) isSame &&= isPlain(delta);
  if (isSame) return chunk;
  const { dialect_fields: _fields, choices, ...rest } = chunk;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, delta: writeSpoken(choice.delta, context) })),
  };
}

function isPlain(spoken: Spoken): boolean {
  const isOurs = 'reasoning_details' in spoken || 'opaque' in spoken || 'dialect_fields' in spoken;
  return !isOurs && !spoken.reasoning_content && !spoken.annotations?.length;
}

/**
 * Converts a message or delta. The text of reasoning has both names that clients read. Encrypted and signed reasoning is
 * sealed, and Anthropic's is added as `thinking_blocks`. Blocks that only another format knows are dropped: they could not be taken back from a client of
 * this one.
 */
function writeSpoken<T extends Spoken>(spoken: T, context: Writing): T {
  const {
    opaque: _opaque,
    dialect_fields: _inner,
    reasoning_details: details = [],
    annotations,
    order,
    ...rest
  } = spoken;
  const cited = annotations?.flatMap((annotation) => writeAnnotation(annotation, context)) ?? [];
  const written = details.flatMap((detail) => sealed(detail, context));
  const blocks = writeThinkingBlocks(written);
  return {
    ...(rest as T),
    ...(rest.reasoning_content && { reasoning: rest.reasoning_content }),
    ...(order && { order: order.filter((entry) => !entry.startsWith('opaque:')) }),
    ...((cited.length > 0 || annotations?.length === 0) && { annotations: cited }),
    ...(written.length > 0 && { reasoning_details: written }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
  };
}

/**
 * Converts a page citation to OpenAI's form; clients of this format get no other canonical kind. Citations of this
 * format's vendors pass unchanged, including an empty list.
 */
function writeAnnotation(annotation: unknown, { omit }: Writing): readonly unknown[] {
  const { type, url_citation: page } = readObject(annotation);
  if (type === 'url_citation') return [{ type, url_citation: page }];
  if (type !== 'opaque' && type !== 'file_citation') return [annotation];
  omit?.('annotations');
  return [];
}

/** Seals a detail, or drops it if sealing is not possible now. */
function sealed(detail: ReasoningDetail, { seal }: Writing): readonly ReasoningDetail[] {
  try {
    return [sealDetail(detail, seal)];
  } catch {
    return [];
  }
}

/** Details of Anthropic's format as `thinking_blocks`. */
function writeThinkingBlocks(details: readonly ReasoningDetail[]): readonly JsonObject[] {
  return details.flatMap(({ kind, text = '', data, signature, format }): readonly JsonObject[] => {
    if (format !== 'anthropic') return [];
    if (kind === 'encrypted') return data === undefined ? [] : [{ type: 'redacted_thinking', data }];
    return signature === undefined ? [] : [{ type: 'thinking', thinking: text, signature }];
  });
}
