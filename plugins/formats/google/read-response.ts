import {
  type ChatChoice,
  type ChatResponse,
  type CodecCall,
  isCount,
  isObject,
  type JsonObject,
  moveNumber,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
  type ToolCall,
  type Usage,
  withNumbersOf,
  writeJson,
} from '../../../contract/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { brokenOff, type ChoiceEnd, unmappedEnd } from '../unmapped-end.ts';
import { geminiFailure } from './errors.ts';
import { readGrounding } from './grounding.ts';
import { signatureField, signedCallId } from './signatures.ts';
import { FAILED_ENDS, isUsualOrder, readFinish } from './tables.ts';

/**
 * Converts the response of generateContent to a chat completion. Throws {@link StreamFailure} for a 200 without one.
 */
export function geminiResponse(body: unknown, call: CodecCall): ChatResponse {
  const response = unwrap(body);
  if (response['error']) throw new StreamFailure(geminiFailure(200, response, {}));
  const candidates = readArray(response['candidates']).map(readObject);
  if (candidates.length === 0 && !isBlocked(response)) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider returned no candidate.' });
  }
  const usage = geminiUsage(response);
  const isDelivered = (): boolean => candidates.some((candidate) => partsOf(candidate).some(isWritten));
  return {
    id: readString(response['responseId']) ?? call.id,
    object: 'chat.completion',
    created: call.created,
    model: readString(response['modelVersion']) ?? call.model,
    choices:
      candidates.length === 0 ? [blockedChoice()] : candidates.map((item, at) => toChoice(item, call, at, isDelivered)),
    ...(usage && { usage }),
  };
}

/** Errors and stream events are sometimes wrapped in an array. */
export function unwrap(body: unknown): JsonObject {
  return readObject(Array.isArray(body) ? body[0] : body);
}

function toChoice(candidate: JsonObject, call: CodecCall, position: number, isDelivered: () => boolean): ChatChoice {
  const index = readCount(candidate['index']) ?? position;
  const state = createCandidateState();
  const { text, reasoning, calls, images, signature, details, annotations, order } = readPieces(
    candidate,
    call,
    index,
    state,
  );
  return {
    index,
    message: {
      role: 'assistant',
      content: text === '' && (calls.length > 0 || images.length > 0) ? null : text,
      refusal: null,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(images.length > 0 && { images }),
      ...(annotations.length > 0 && { annotations }),
      ...signatureField(signature),
      ...(!isUsualOrder(order) && { order }),
    },
    ...readEnd(state.reason ?? 'STOP', state, isDelivered),
    logprobs: geminiLogprobs(candidate),
  };
}

function blockedChoice(): ChatChoice {
  return {
    index: 0,
    message: { role: 'assistant', content: '', refusal: null },
    finish_reason: 'content_filter',
    logprobs: null,
  };
}

/** Converts `logprobsResult` of a candidate to OpenAI's `logprobs`; null without one. */
export function geminiLogprobs(candidate: JsonObject): JsonObject | null {
  const result = candidate['logprobsResult'];
  if (!isObject(result)) return null;
  const alternatives = readArray(result['topCandidates']);
  const content = readArray(result['chosenCandidates']).map((chosen, index) => ({
    ...tokenLogprob(chosen),
    top_logprobs: readArray(readObject(alternatives[index])['candidates']).map(tokenLogprob),
  }));
  return { content, refusal: null };
}

function tokenLogprob(candidate: unknown): { token: string; logprob: number; bytes: number[] } {
  const { token, logProbability } = readObject(candidate);
  const text = typeof token === 'string' ? token : '';
  return {
    token: text,
    logprob: typeof logProbability === 'number' ? logProbability : -9999,
    bytes: [...Buffer.from(text, 'utf8')],
  };
}

/** Parts of one candidate by their OpenAI kind. */
export interface Pieces {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  readonly images: readonly JsonObject[];
  /** Signature of the text, for models that require it back. */
  readonly signature?: string;
  /** Signed thinking, one complete block each. Unsigned thinking is in `reasoning` alone. */
  readonly details: readonly ReasoningDetail[];
  /** Citations of the text. */
  readonly annotations: readonly JsonObject[];
  /** Kinds of blocks, in order of first appearance. */
  readonly order: readonly string[];
}

/** State of a candidate from earlier events of its stream. */
export interface CandidateState {
  /** Number of its calls so far, so that generated ids stay unique. */
  calls: number;
  /** End reason, once it has ended. */
  reason: string | undefined;
  /** True once the model has written output. */
  hasContent: boolean;
  /** True if the end cut off a call, which is then dropped. */
  isCut: boolean;
  /** Thinking since the last signature. */
  thinking: string;
  readonly partial: PartialCalls;
  /** Text so far, for positions of citations, and the citations already sent. */
  text: string;
  readonly cited: Set<string>;
}

export function createCandidateState(): CandidateState {
  return {
    calls: 0,
    reason: undefined,
    hasContent: false,
    isCut: false,
    thinking: '',
    partial: createPartialCalls(),
    text: '',
    cited: new Set(),
  };
}

function partsOf(candidate: JsonObject): readonly unknown[] {
  return readArray(readObject(candidate['content'])['parts']);
}

/** Returns true if a part holds model output of any kind. */
function isWritten(part: unknown): boolean {
  return Object.entries(readObject(part)).some(
    ([name, value]) => value !== '' && name !== 'thought' && name !== 'thoughtSignature',
  );
}

/**
 * Reads the parts of one candidate, and records its calls and its end. Throws {@link StreamFailure} for an incomplete
 * call.
 */
export function readPieces(candidate: JsonObject, call: CodecCall, index: number, state: CandidateState): Pieces {
  const pieces: Gathered = { text: '', reasoning: '', calls: [], images: [], details: [], order: [] };
  const add = (complete: CompleteCall | undefined): void => {
    if (complete) addCall(pieces, complete, `call_${call.id}_${index}_${state.calls + pieces.calls.length}`);
  };
  for (const part of partsOf(candidate)) {
    if (!isObject(part)) continue;
    state.hasContent ||= isWritten(part);
    const called = part['functionCall'];
    if (isObject(called)) add(state.partial.read(called, readString(part['thoughtSignature'])));
    else addPart(pieces, part, state);
  }
  state.reason = readString(candidate['finishReason']) ?? state.reason;
  if (state.reason !== undefined && readFinish(state.reason, false)) add(state.partial.end());
  else if (state.reason !== undefined) state.isCut ||= state.partial.isOpen();
  state.calls += pieces.calls.length;
  const { formed, ...rest } = pieces;
  // A formatted response replaces all content: other text would break the format.
  const text = formed ?? rest.text;
  state.text += text;
  return { ...rest, text, annotations: readGrounding(candidate, state.text, state.cited) };
}

/** Pieces read so far; `formed` is a response in the requested format. */
interface Gathered {
  text: string;
  reasoning: string;
  readonly calls: ToolCall[];
  readonly images: JsonObject[];
  readonly details: ReasoningDetail[];
  readonly order: string[];
  signature?: string;
  formed?: string;
}

function addPart(pieces: Gathered, part: JsonObject, state: CandidateState): void {
  const { text } = part;
  if (part['thought'] === true) {
    addThought(pieces, part, state);
    return;
  }
  if (typeof text === 'string' && text !== '') recordBlock(pieces, 'content');
  if (typeof text === 'string') pieces.text += text;
  const signed = readString(part['thoughtSignature']);
  if (signed) pieces.signature = signed;
  const image = readImage(part['inlineData']);
  if (image) pieces.images.push(image);
}

/** Signed thinking is kept as a separate block, because its vendor requires it back byte for byte. */
function addThought(pieces: Gathered, part: JsonObject, state: CandidateState): void {
  const text = readString(part['text']) ?? '';
  const signature = readString(part['thoughtSignature']);
  pieces.reasoning += text;
  state.thinking += text;
  recordBlock(pieces, 'reasoning');
  if (signature === undefined) return;
  pieces.details.push({ kind: 'text', text: state.thinking, signature, format: 'gemini' });
  state.thinking = '';
}

function recordBlock({ order }: Gathered, kind: string): void {
  const name = `${kind}:0`;
  if (!order.includes(name)) order.push(name);
}

function addCall(pieces: Gathered, { called, signature }: CompleteCall, fallbackId: string): void {
  if (called['name'] === ANSWER_TOOL) pieces.formed = writeJson(called['args'] ?? {});
  else {
    pieces.order.push(`tool:${pieces.calls.length}`);
    pieces.calls.push(toolCall(called, signature, fallbackId));
  }
}

function toolCall(called: JsonObject, signature: string | undefined, fallbackId: string): ToolCall {
  return {
    id: signedCallId(readString(called['id']) ?? fallbackId, signature),
    type: 'function',
    function: { name: String(called['name']), arguments: writeJson(called['args'] ?? {}) },
    ...signatureField(signature),
  };
}

/** Image that the model made, in OpenRouter's shape: OpenAI's has none. */
function readImage(inline: unknown): JsonObject | undefined {
  const { mimeType, data } = readObject(inline);
  if (typeof mimeType !== 'string' || !mimeType.startsWith('image/') || typeof data !== 'string') return undefined;
  return { type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } };
}

/**
 * Maps the end of a candidate to OpenAI's finish reason, with Google's own if it is more exact. Throws {@link
 * StreamFailure} if the model failed, or ended for an unmapped reason without any output. Another attempt may then
 * succeed.
 */
export function readEnd(
  reason: string,
  { calls, isCut }: Pick<CandidateState, 'calls' | 'isCut'>,
  isDelivered: () => boolean,
): ChoiceEnd {
  const finish = readFinish(reason, calls > 0);
  if (FAILED_ENDS.has(reason)) throw brokenOff(reason);
  // Google's calls are complete, except for a cut one.
  if (finish === undefined) return unmappedEnd(reason, isDelivered(), calls === 0 ? [] : isCut ? ['{}', ''] : ['{}']);
  return { finish_reason: finish, ...(reason !== 'STOP' && reason !== 'MAX_TOKENS' && { finish: { native: reason } }) };
}

/** Returns true if the prompt itself was blocked: a 200 without candidates. */
export function isBlocked(response: JsonObject): boolean {
  const reason = readString(readObject(response['promptFeedback'])['blockReason']);
  return reason !== undefined && !/^BLOCK(ED)?_REASON_UNSPECIFIED$/.test(reason);
}

/**
 * Reads the usage of a response. Google counts thinking apart from the candidates' tokens, OpenAI within them.
 * Undefined for missing or invalid counts.
 */
export function geminiUsage({ usageMetadata: metadata, candidates }: JsonObject): Usage | undefined {
  if (!isObject(metadata)) return undefined;
  const counts = COUNTS.map((name) => metadata[name] ?? 0);
  if (!counts.every(isCount)) return undefined;
  const [input = 0, ofTools = 0, output = 0, thoughts = 0, cached = 0] = counts;
  const prompt = input + ofTools;
  const completion = output + thoughts;
  if (prompt + completion === 0) return undefined;
  const cachedAudio = tokensOf('AUDIO', metadata['cacheTokensDetails']);
  const images = tokensOf('IMAGE', metadata['candidatesTokensDetails']);
  const units = unitsOf(readArray(candidates));
  const tier = tierOf(metadata);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: Math.min(cached, prompt),
      audio_tokens: tokensOf('AUDIO', metadata['promptTokensDetails']),
      ...(cachedAudio > 0 && { cached_audio_tokens: cachedAudio }),
    },
    completion_tokens_details: {
      reasoning_tokens: thoughts,
      audio_tokens: tokensOf('AUDIO', metadata['candidatesTokensDetails']),
      ...(images > 0 && { image_tokens: images }),
    },
    ...(units && { units }),
    ...(tier !== undefined && { service_tier: tier }),
  };
}

const COUNTS = Object.freeze([
  ...['promptTokenCount', 'toolUsePromptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount'],
  'cachedContentTokenCount',
]);

function tokensOf(kind: string, details: unknown): number {
  return readArray(details).reduce<number>((sum, detail) => {
    const { modality, tokenCount } = readObject(detail);
    return modality === kind && isCount(tokenCount) ? sum + tokenCount : sum;
  }, 0);
}

/**
 * Searches that ground a response. Older models are billed by response, newer ones by query. Source:
 * https://ai.google.dev/gemini-api/docs/pricing
 */
function unitsOf(candidates: readonly unknown[]): Usage['units'] {
  const grounds = candidates.map((candidate) => readObject(readObject(candidate)['groundingMetadata']));
  const queries = grounds.reduce((sum, ground) => sum + readArray(ground['webSearchQueries']).length, 0);
  const hasMaps = grounds.some((ground) =>
    readArray(ground['groundingChunks']).some((each) => readObject(each)['maps']),
  );
  if (queries === 0 && !hasMaps) return undefined;
  return {
    ...(queries > 0 && { web_search_requests: queries, grounded_requests: 1 }),
    ...(hasMaps && { maps_requests: 1 }),
  };
}

/** Service tier of the response, by its name in requests; undefined for the list price, and if unknown. */
function tierOf({ serviceTier: tier, trafficType: traffic }: JsonObject): string | undefined {
  const [, name] = /^(?:SERVICE_TIER_|ON_DEMAND_)(\w+)$/i.exec(readString(tier) ?? readString(traffic) ?? '') ?? [];
  return (name ?? readString(tier))?.toLowerCase();
}

/**
 * Calls whose arguments arrive in pieces. `partialArgs` have a path (`$.city`, `$.stops[0].name`) and a value; a text
 * may continue in the next piece. Source:
 * https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
 */
export interface PartialCalls {
  /** Returns the call that a `functionCall` contains or completes; undefined while it is incomplete. */
  read(called: JsonObject, signature: string | undefined): CompleteCall | undefined;
  /** Returns a complete call that was not closed by the end of a candidate. Throws for an incomplete one. */
  end(): CompleteCall | undefined;
  /** Returns true if a call was started and not closed. */
  isOpen(): boolean;
}

export interface CompleteCall {
  readonly called: JsonObject;
  readonly signature: string | undefined;
}

interface OpenCall {
  readonly head: JsonObject;
  signature: string | undefined;
  readonly args: JsonObject;
  /** True if the last piece was a text that continues. */
  isBroken: boolean;
}

/** Tracks the calls of one candidate. */
export function createPartialCalls(): PartialCalls {
  let open: OpenCall | undefined;

  const close = (): CompleteCall | undefined => {
    if (!open) return undefined;
    const { head, signature, args, isBroken } = open;
    open = undefined;
    if (isBroken) throw broken('ended a function call in the middle of its arguments');
    return { called: { ...head, args }, signature };
  };

  return {
    read(called, signature) {
      const goesOn = called['willContinue'] === true;
      const pieces = called['partialArgs'];
      if (!open && !goesOn && pieces === undefined)
        return readString(called['name']) ? { called, signature } : undefined;
      if (open && readString(called['name']) && called['name'] !== open.head['name'])
        throw broken('started a function call inside another');
      open ??= { head: called, signature: undefined, args: argsOf(called), isBroken: false };
      open.signature = signature ?? open.signature;
      for (const piece of readArray(pieces)) open.isBroken = addPiece(open.args, piece);
      return goesOn ? undefined : close();
    },
    end: close,
    isOpen: () => open !== undefined,
  };
}

/** Returns a copy of the arguments that a call begins with. */
function argsOf({ args }: JsonObject): JsonObject {
  return isObject(args) ? withNumbersOf({ ...args }, args) : {};
}

/** Adds one piece to the arguments; returns true if its text continues. */
function addPiece(args: JsonObject, piece: unknown): boolean {
  const path = isObject(piece) ? readPath(readString(piece['jsonPath'])) : undefined;
  if (!isObject(piece) || !path) throw broken('sent invalid partial arguments of a function call');
  const { stringValue, numberValue, boolValue, willContinue } = piece;
  const value = stringValue ?? numberValue ?? boolValue ?? ('nullValue' in piece ? null : '');
  const { holder, step } = putAt(args, path, value);
  moveNumber(piece, 'numberValue', holder, step);
  return willContinue === true;
}

type Step = string | number;

/** Steps of a path such as `$.stops[0]['full name']`; undefined for an invalid one. */
function readPath(text: string | undefined): readonly Step[] | undefined {
  if (!text?.startsWith('$')) return undefined;
  const rest = text.slice(1);
  const steps: Step[] = [];
  let read = 0;
  for (const [step, name, index, quoted] of rest.matchAll(/\.([^.[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]/g)) {
    read += step.length;
    steps.push(index === undefined ? (name ?? quoted ?? '') : Number(index));
  }
  const isWhole = read === rest.length && steps.length > 0 && typeof steps[0] === 'string';
  return isWhole && !steps.includes('__proto__') ? steps : undefined;
}

/**
 * Sets a value at a path, creating missing containers. A text is appended to an existing text. Returns the container of the
 * value, and its step there.
 */
function putAt(
  root: JsonObject,
  [first = '', ...rest]: readonly Step[],
  value: unknown,
): { readonly holder: object; readonly step: Step } {
  let holder: JsonObject | unknown[] = root;
  let step = first;
  for (const next of rest) {
    const known: unknown = readAt(holder, step);
    const child: JsonObject | unknown[] = isHolder(known) ? known : typeof next === 'number' ? [] : {};
    writeAt(holder, step, child);
    holder = child;
    step = next;
  }
  const before = readAt(holder, step);
  writeAt(holder, step, typeof before === 'string' && typeof value === 'string' ? before + value : value);
  return { holder, step };
}

function isHolder(value: unknown): value is JsonObject | unknown[] {
  return typeof value === 'object' && value !== null;
}

function readAt(holder: JsonObject | unknown[], step: Step | undefined): unknown {
  if (Array.isArray(holder)) return typeof step === 'number' ? holder[step] : undefined;
  return step !== undefined && Object.hasOwn(holder, step) ? holder[step] : undefined;
}

function writeAt(holder: JsonObject | unknown[], step: Step | undefined, value: unknown): void {
  if (Array.isArray(holder) && typeof step === 'number') holder[step] = value;
  else if (!Array.isArray(holder) && typeof step === 'string') holder[step] = value;
  else throw broken('sent invalid partial arguments of a function call');
}

function broken(what: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${what}.` });
}
