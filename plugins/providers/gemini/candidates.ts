import {
  type CodecCall,
  type FinishReason,
  isObject,
  type JsonObject,
  type NativeFinish,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
  type ToolCall,
  type Usage,
} from '../../../core/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { createPartialCalls, type PartialCalls, type WholeCall } from './partial-args.ts';
import { signatureField, signedCallId } from './signatures.ts';

/** `STOP` is looked at apart: Gemini says it for tool calls too. */
const FINISH_REASON: Readonly<Record<string, FinishReason>> = Object.freeze({
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // The answer may be continued with a token that OpenAI's shape has no place for: to the caller it is cut.
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  LANGUAGE: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
});

/** The model failed to form an answer; another attempt may succeed. */
const FAILED: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
]);

/** One candidate's parts, sorted by what OpenAI calls them. */
export interface Pieces {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  readonly images: readonly JsonObject[];
  /** The signature of the text, for models that want it back. */
  readonly signature?: string;
  /** Thinking that is signed, each block whole; the rest of it is `reasoning` alone. */
  readonly details: readonly ReasoningDetail[];
  /** The kinds of blocks, each where the first of them stood. */
  readonly order: readonly string[];
}

/** What is known of a candidate from earlier events of its stream. */
export interface CandidateState {
  /** How many calls it made, so that made-up ids stay unique. */
  calls: number;
  /** Why it ended, if it has. */
  reason: string | undefined;
  /** The thinking since the last signature. */
  thinking: string;
  readonly partial: PartialCalls;
}

export function createCandidateState(): CandidateState {
  return { calls: 0, reason: undefined, thinking: '', partial: createPartialCalls() };
}

/** Reads the parts of one candidate, and notes its calls and its end. Throws {@link StreamFailure} when the model failed. */
export function readPieces(candidate: JsonObject, call: CodecCall, index: number, state: CandidateState): Pieces {
  const pieces: Gathered = { text: '', reasoning: '', calls: [], images: [], details: [], order: [] };
  const add = (whole: WholeCall | undefined): void => {
    if (whole) addCall(pieces, whole, `call_${call.id}_${index}_${state.calls + pieces.calls.length}`);
  };
  for (const part of readArray(readObject(candidate['content'])['parts'])) {
    if (!isObject(part)) continue;
    const called = part['functionCall'];
    if (isObject(called)) add(state.partial.read(called, readString(part['thoughtSignature'])));
    else addPart(pieces, part, state);
  }
  state.reason = readEnd(candidate) ?? state.reason;
  if (state.reason !== undefined) add(state.partial.end());
  state.calls += pieces.calls.length;
  const { formed, ...rest } = pieces;
  // A formed answer is the whole content: words beside it would break its form.
  return { ...rest, text: formed ?? rest.text };
}

/** Pieces that are being gathered; `formed` is an answer in the format that was wanted. */
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
  if (typeof text === 'string' && text !== '') noteBlock(pieces, 'content');
  if (typeof text === 'string') pieces.text += text;
  const signed = readString(part['thoughtSignature']);
  if (signed) pieces.signature = signed;
  const image = readImage(part['inlineData']);
  if (image) pieces.images.push(image);
}

/** Signed thinking is kept as a block of its own: its maker wants it back byte for byte. */
function addThought(pieces: Gathered, part: JsonObject, state: CandidateState): void {
  const text = readString(part['text']) ?? '';
  const signature = readString(part['thoughtSignature']);
  pieces.reasoning += text;
  state.thinking += text;
  noteBlock(pieces, 'reasoning');
  if (signature === undefined) return;
  pieces.details.push({ kind: 'text', text: state.thinking, signature, format: 'gemini' });
  state.thinking = '';
}

function noteBlock({ order }: Gathered, kind: string): void {
  const name = `${kind}:0`;
  if (!order.includes(name)) order.push(name);
}

function addCall(pieces: Gathered, { called, signature }: WholeCall, fallbackId: string): void {
  if (called['name'] === ANSWER_TOOL) pieces.formed = JSON.stringify(called['args'] ?? {});
  else {
    pieces.order.push(`tool:${pieces.calls.length}`);
    pieces.calls.push(toolCall(called, signature, fallbackId));
  }
}

function toolCall(called: JsonObject, signature: string | undefined, fallbackId: string): ToolCall {
  return {
    id: signedCallId(readString(called['id']) ?? fallbackId, signature),
    type: 'function',
    function: { name: String(called['name']), arguments: JSON.stringify(called['args'] ?? {}) },
    ...signatureField(signature),
  };
}

/** An image the model made, as OpenRouter shows it: OpenAI's shape has none. */
function readImage(inline: unknown): JsonObject | undefined {
  const { mimeType, data } = readObject(inline);
  if (typeof mimeType !== 'string' || !mimeType.startsWith('image/') || typeof data !== 'string') return undefined;
  return { type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } };
}

/** Why a candidate ended, if it has. Throws {@link StreamFailure} when it ended because the model failed. */
function readEnd(candidate: JsonObject): string | undefined {
  const reason = readString(candidate['finishReason']);
  if (reason === undefined || !FAILED.has(reason)) return reason;
  throw new StreamFailure({ class: 'upstream_error', message: `The model broke off its answer (${reason}).` });
}

/** The vendor's own word where OpenAI's says less. */
export function nativeFinish(reason: string): { readonly finish?: NativeFinish } {
  return reason === 'STOP' || reason === 'MAX_TOKENS' ? {} : { finish: { native: reason } };
}

/** The vendor's reason in OpenAI's words; one that nobody knows is an ordinary end. */
export function finishReason(reason: string, called: boolean): FinishReason {
  const known = Object.hasOwn(FINISH_REASON, reason) ? FINISH_REASON[reason] : undefined;
  return called && (known === undefined || known === 'stop') ? 'tool_calls' : (known ?? 'stop');
}

/** Whether the prompt itself was blocked: then there are no candidates, at status 200. */
export function isBlocked(response: JsonObject): boolean {
  const reason = readString(readObject(response['promptFeedback'])['blockReason']);
  return reason !== undefined && !/^BLOCK(ED)?_REASON_UNSPECIFIED$/.test(reason);
}

/** Token counts: thinking is beside the candidates' tokens in Gemini's arithmetic, inside them in OpenAI's. */
export function geminiUsage(metadata: unknown): Usage | undefined {
  if (!isObject(metadata)) return undefined;
  const count = (name: string): number => readCount(metadata[name]) ?? 0;
  const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
  const completion = count('candidatesTokenCount') + count('thoughtsTokenCount');
  if (prompt + completion === 0) return undefined;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: Math.min(count('cachedContentTokenCount'), prompt),
      audio_tokens: audioTokens(metadata['promptTokensDetails']),
    },
    completion_tokens_details: {
      reasoning_tokens: count('thoughtsTokenCount'),
      audio_tokens: audioTokens(metadata['candidatesTokensDetails']),
    },
  };
}

function audioTokens(details: unknown): number {
  return readArray(details).reduce<number>((sum, detail) => {
    const { modality, tokenCount } = readObject(detail);
    return modality === 'AUDIO' ? sum + (readCount(tokenCount) ?? 0) : sum;
  }, 0);
}
