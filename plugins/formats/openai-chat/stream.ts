import {
  type ChatChunk,
  type ChatCodec,
  type ChatDelta,
  type ChunkChoice,
  type CodecCall,
  isObject,
  type JsonObject,
  laterUsage,
  parseJson,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type StreamProgress,
  type ToolCallDelta,
  type Usage,
} from '../../../contract/index.ts';
import { readRelayDetails } from '../kit/index.ts';
import { type ChoiceEnd, hasDelivered, unmappedEnd } from '../unmapped-end.ts';
import { contentOf, type FramePattern, patternOf } from './frame-pattern.ts';
import {
  count,
  extrasOf,
  failureIn,
  MESSAGE,
  mapFinishReason,
  readContent,
  readFinish,
  readLogprobs,
  readUsage,
  TOP,
  unixSeconds,
  withTier,
} from './response.ts';
import { isSameChunk, isSameUsage } from './same.ts';
import { type ToolCallTracker, trackToolCalls } from './tool-calls.ts';
import type { Differences, OwnWire } from './types.ts';

const CHOICE = new Set('index delta message finish_reason logprobs usage text seed finish'.split(' '));

const NONE: readonly never[] = Object.freeze([]);

interface ChoiceState {
  readonly tools: ToolCallTracker;
  /** True once the model has written output. */
  hasContent: boolean;
  finished: boolean;
  lastReasoning: string | undefined;
  /** Set once the vendor has sent details of its reasoning. */
  details: DetailTracker | undefined;
}

interface Head {
  readonly id: string;
  readonly model: string;
  readonly created: number;
}

/** Frame of the vendor with one text, which the next frames are expected to repeat with other texts. */
interface Repeated extends FramePattern {
  readonly sent: JsonObject;
  readonly chunk: ChatChunk;
  readonly choice: ChunkChoice;
  readonly state: ChoiceState;
  /** True if a caller of this format may get the frame; undefined before anyone asked. */
  isOriginal: boolean | undefined;
}

/** Frames without a repetition after which no pattern is looked for. */
const MAX_MISSES = 8;

/** Decodes a stream into OpenAI's exact chunks; usage comes last, in a separate chunk. */
export function decodeStream(call: CodecCall, differences: Differences): StreamDecoder {
  return new Decoder(call, differences);
}

/** The last frame and its chunk, for a caller who may get the frame itself. */
interface LastRead {
  readonly event: SseEvent;
  readonly sent: JsonObject;
  readonly chunk: ChatChunk | undefined;
}

class Decoder implements StreamDecoder {
  readonly #call: CodecCall;
  readonly #differences: Differences;
  readonly #choices = new Map<number, ChoiceState>();
  /** Head of the first chunk with data. */
  #head: Head | undefined;
  #usage: Usage | undefined;
  /** Frame with the usage. */
  #counted: LastRead | undefined;
  /** Azure's first chunk has no choice, so its data is added to the next one. */
  #promptFilter: JsonObject | undefined;
  #isDone = false;
  #last: LastRead | undefined;
  #repeated: Repeated | undefined;
  #repeatedEvent: SseEvent | undefined;
  #misses = 0;

  constructor(call: CodecCall, differences: Differences) {
    this.#call = call;
    this.#differences = differences;
  }

  push(event: SseEvent): readonly ChatChunk[] {
    this.#last = undefined;
    this.#repeatedEvent = undefined;
    if (this.#repeated && !this.#isDone) {
      const chunk = this.#readRepeated(event, this.#repeated);
      if (chunk) return [chunk];
    }
    const json = event.data.trim();
    // Some relays forward a comment as data (": OPENROUTER PROCESSING"); it is still ignored as a comment.
    if (this.#isDone || json === '' || json.startsWith(':')) return NONE;
    this.#isDone = json === '[DONE]';
    if (this.#isDone) return this.#lastChunks();
    const sent = parseChunk(json);
    const failure = failureIn(sent, this.#differences.errors, event.event === 'error');
    if (failure) throw new StreamFailure(failure);
    return isObject(sent) ? this.#read(sent, event) : NONE;
  }

  end(): ReturnType<StreamDecoder['end']> {
    this.#last = undefined;
    this.#repeatedEvent = undefined;
    const chunks = this.#lastChunks();
    return { chunks, complete: this.#choices.size > 0 && this.#isFinished() };
  }

  progress(): StreamProgress {
    if (this.#isDone) return 'complete';
    // Some vendors begin one choice after the end of another.
    if (this.#choices.size === 0 || this.#choices.size < (this.#call.request?.n ?? 1)) return 'open';
    return this.#isFinished() ? 'finished' : 'open';
  }

  original(): SseEvent | undefined {
    const repeated = this.#repeatedEvent && this.#repeated;
    if (repeated) {
      repeated.isOriginal ??= !repeated.before.includes('\n') && isSameChunk(repeated.sent, repeated.chunk);
      return repeated.isOriginal ? this.#repeatedEvent : undefined;
    }
    const last = this.#last;
    // Named events, and data of several lines, have no place in this format.
    if (!last || last.event.event !== undefined || last.event.data.includes('\n')) return undefined;
    return this.#isSame(last) ? last.event : undefined;
  }

  #isSame({ sent, chunk }: LastRead): boolean {
    if (!chunk) return this.#addsNothing(sent);
    return chunk.usage ? isSameUsage(sent, chunk) : isSameChunk(sent, chunk);
  }

  /** Returns true for a frame about choices that have begun, without a chunk because it adds nothing to them. */
  #addsNothing(sent: JsonObject): boolean {
    const choices: ChunkChoice[] = [];
    for (const choice of readArray(sent['choices'])) {
      const index = isObject(choice) ? count(choice['index']) : undefined;
      if (index === undefined || !this.#choices.has(index)) return false;
      choices.push({ index, delta: {}, logprobs: null, finish_reason: null });
    }
    return choices.length > 0 && this.#head !== undefined && isSameChunk(sent, newChunk(this.#head, choices));
  }

  #isFinished(): boolean {
    for (const { finished } of this.#choices.values()) if (!finished) return false;
    return true;
  }

  #read(sent: JsonObject, event: SseEvent): readonly ChatChunk[] {
    const counted = withTier(usageOf(sent, this.#differences), sent);
    if (counted) this.#usage = laterUsage(this.#usage, counted);
    const found: ChunkChoice[] = [];
    const choices = readArray(sent['choices']);
    for (const choice of choices) {
      const read = isObject(choice) ? readChoice(choice, this.#choices, this.#call, this.#differences) : undefined;
      if (read) found.push(read);
    }
    if (found.length === 0) {
      const { prompt_filter_results } = sent;
      if (Array.isArray(prompt_filter_results)) this.#promptFilter = { prompt_filter_results };
      if (counted && choices.length === 0) this.#counted = { event, sent, chunk: undefined };
      else if (!counted) this.#last = { event, sent, chunk: undefined };
      return NONE;
    }
    this.#head ??= {
      id: readString(sent['id']) ?? this.#call.id,
      model: readString(sent['model']) ?? this.#call.model,
      created: unixSeconds(sent['created']) ?? this.#call.created,
    };
    const isPlain = !counted && this.#promptFilter === undefined;
    const chunk = Object.assign(newChunk(this.#head, found), this.#promptFilter, extrasOf(sent, TOP));
    this.#promptFilter = undefined;
    // Callers get usage at the end alone.
    this.#last = counted ? undefined : { event, sent, chunk };
    if (isPlain) this.#expect(event, sent, chunk);
    return [chunk];
  }

  /** Usage chunk, emitted once. */
  #lastChunks(): readonly ChatChunk[] {
    if (!this.#usage) return NONE;
    const { id, object, created, model, choices } = newChunk(this.#head ?? this.#call, []);
    const chunk = { id, object, created, model, choices, usage: this.#usage };
    this.#usage = undefined;
    if (this.#counted) this.#last = { ...this.#counted, chunk };
    return [chunk];
  }

  /** Expects more frames like this one if its chunk is a text of one choice and nothing else. */
  #expect({ data }: SseEvent, sent: JsonObject, chunk: ChatChunk): void {
    if (this.#misses >= MAX_MISSES) return;
    const [choice, ...others] = chunk.choices;
    if (!choice || others.length > 0 || choice.finish_reason !== null || choice.logprobs !== null) return;
    const state = this.#choices.get(choice.index);
    const { content, ...delta } = choice.delta;
    if (!state || !content || Object.keys(delta).length > 0) return;
    this.#misses += 1;
    const pattern = patternOf(data);
    if (!pattern) return;
    const { before, after, end } = pattern;
    this.#repeated = { before, after, end, sent, chunk, choice, state, isOriginal: undefined };
  }

  /** Reads a frame like an earlier one; undefined for any other frame. */
  #readRepeated(event: SseEvent, repeated: Repeated): ChatChunk | undefined {
    const { state } = repeated;
    if (event.event !== undefined || state.details || state.finished) return undefined;
    const content = contentOf(event.data, repeated);
    if (content === undefined) return undefined;
    this.#misses = 0;
    state.lastReasoning = undefined;
    this.#repeatedEvent = event;
    return { ...repeated.chunk, choices: [{ ...repeated.choice, delta: { content } }] };
  }
}

/** One choice of a chunk; undefined if it is empty. */
function readChoice(
  choice: JsonObject,
  choices: Map<number, ChoiceState>,
  call: CodecCall,
  differences: Differences,
): ChunkChoice | undefined {
  const index = count(choice['index']) ?? 0;
  // Azure annotates with choices that have no delta; one vendor reportedly sends `message` instead.
  const sent = isObject(choice['delta']) ? choice['delta'] : readObject(choice['message']);
  const known = choices.get(index);
  const state: ChoiceState = known ?? {
    tools: trackToolCalls(`${call.id}:${index}`),
    hasContent: false,
    finished: false,
    lastReasoning: undefined,
    details: undefined,
  };
  const reason = state.finished ? undefined : readString(choice['finish_reason']);
  const spoken = readDelta(sent, state, !known && hasRole(sent), differences);
  const details = readDetails(sent, state, hasBegun(spoken) || reason !== undefined);
  const missing = reason === undefined ? NONE : state.tools.finish();
  const delta = details.length + missing.length === 0 ? spoken : withEndings(spoken, details, missing);
  const extras = extrasOf(choice, CHOICE);
  const meant = Object.keys(delta).length > 0 || reason !== undefined || 'content_filter_results' in extras;
  if (!meant && (known || !(hasRole(sent) || state.details))) return undefined;
  choices.set(index, state);
  state.hasContent ||= hasDelivered(delta);
  if (reason !== undefined) state.finished = true;
  const end = reason === undefined ? undefined : readEnd(choice, reason, state, choices, differences);
  const read: ChunkChoice = {
    index,
    delta: known ? delta : { role: 'assistant', ...delta },
    logprobs: readLogprobs(choice['logprobs'], delta.content),
    finish_reason: null,
  };
  return Object.assign(read, end, extras);
}

function readEnd(
  choice: JsonObject,
  reason: string,
  { tools }: ChoiceState,
  choices: ReadonlyMap<number, ChoiceState>,
  differences: Differences,
): ChoiceEnd {
  const known = mapFinishReason(reason, tools.used(), differences);
  if (known !== undefined) return readFinish(choice, known);
  const isDelivered = [...choices.values()].some(({ hasContent }) => hasContent);
  return unmappedEnd(reason, isDelivered, tools.written());
}

function withEndings(
  spoken: ChatDelta,
  details: readonly ReasoningDetail[],
  missing: readonly ToolCallDelta[],
): ChatDelta {
  return {
    ...(details.length > 0 && { reasoning_details: details }),
    ...spoken,
    ...(missing.length > 0 && { tool_calls: [...(spoken.tool_calls ?? []), ...missing] }),
  };
}

/** Returns true if a delta contains more than reasoning, so that the reasoning before it is complete. */
function hasBegun({ content, refusal, tool_calls: calls }: ChatDelta): boolean {
  return (typeof content === 'string' && content !== '') || refusal !== undefined || calls !== undefined;
}

function readDetails(sent: JsonObject, state: ChoiceState, isOver: boolean): readonly ReasoningDetail[] {
  const { reasoning_details: pieces } = sent;
  if (Array.isArray(pieces) && pieces.length > 0) state.details ??= trackDetails();
  return state.details ? state.details.push(pieces, isOver) : NONE;
}

function readDelta(sent: JsonObject, state: ChoiceState, opening: boolean, differences: Differences): ChatDelta {
  const { content, reasoning } = readContent(sent);
  const repeated = differences.repeatsReasoning && reasoning === state.lastReasoning;
  state.lastReasoning = reasoning;
  const toolCalls = state.tools.push(sent['tool_calls']);
  const refusal = readString(sent['refusal']);
  const hasText = typeof content === 'string' && (content !== '' || opening);
  const delta: { -readonly [Field in keyof ChatDelta]: ChatDelta[Field] } = {};
  if (reasoning !== undefined && !repeated) delta.reasoning_content = reasoning;
  if (hasText || (content === null && toolCalls && opening)) delta.content = content;
  if (refusal) delta.refusal = refusal;
  if (toolCalls) delta.tool_calls = toolCalls;
  return Object.assign(delta, extrasOf(sent, MESSAGE));
}

function hasRole(sent: JsonObject): boolean {
  return sent['role'] !== undefined && sent['role'] !== null;
}

function parseChunk(json: string): unknown {
  const chunk = parseJson(json);
  if (chunk !== undefined) return chunk;
  throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent a stream event that is not JSON.' });
}

/** Usage at the top level, under `x_groq` (Groq) or in the choice (Moonshot). */
function usageOf(chunk: JsonObject, differences: Differences): Usage | undefined {
  const top = readUsage(chunk['usage'], differences);
  if (top) return top;
  const [first] = readArray(chunk['choices']);
  return (
    readUsage(readObject(chunk['x_groq'])['usage'], differences) ?? readUsage(readObject(first)['usage'], differences)
  );
}

function newChunk({ id, created, model }: Head, choices: readonly ChunkChoice[]): ChatChunk {
  return { id, object: 'chat.completion.chunk', created, model, choices };
}

/** Maximum length of reasoning; the rest is dropped. */
const MAX_LENGTH = 8 * 1024 * 1024;

interface DetailTracker {
  /** Returns the blocks that a delta completes: open blocks end once other content begins. */
  push(value: unknown, isOver: boolean): readonly ReasoningDetail[];
}

/** Joins the pieces of a relay's streamed `reasoning_details`; a block is emitted once it is complete. */
function trackDetails(): DetailTracker {
  let open: JsonObject | undefined;
  let length = 0;

  function close(): readonly ReasoningDetail[] {
    const whole = open;
    open = undefined;
    length = 0;
    return whole ? readRelayDetails([whole]) : [];
  }

  function add(piece: JsonObject): readonly ReasoningDetail[] {
    if (open && isSame(open, piece)) {
      const next = joined(open, piece);
      length += JSON.stringify(piece).length;
      if (length <= MAX_LENGTH) open = next;
      return [];
    }
    const ended = close();
    open = piece;
    return ended;
  }

  return {
    push(value, isOver) {
      const ended = readArray(value).flatMap((piece) => (isObject(piece) ? add(piece) : []));
      return isOver ? [...ended, ...close()] : ended;
    },
  };
}

/** Returns true if a piece continues a block: pieces of one block have its type and index. */
function isSame(open: JsonObject, piece: JsonObject): boolean {
  const isEncrypted = open['type'] === 'reasoning.encrypted';
  return !isEncrypted && open['type'] === piece['type'] && (open['index'] ?? 0) === (piece['index'] ?? 0);
}

function joined(open: JsonObject, piece: JsonObject): JsonObject {
  const textOf = (field: string): object => {
    const text = (readString(open[field]) ?? '') + (readString(piece[field]) ?? '');
    return text === '' ? {} : { [field]: text };
  };
  const said = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
  return { ...open, ...Object.fromEntries(said), ...textOf('text'), ...textOf('summary') };
}

/** Wraps a codec so that it reads the converted output of a vendor's own wire. */
export function withOwnWire(codec: ChatCodec, { response = (body) => body, events, isEnd }: OwnWire): ChatCodec {
  return {
    ...codec,
    response: (body, call) => codec.response(isObject(body) ? response(body) : body, call),
    stream(call) {
      const decoder = codec.stream(call);
      const chunkOf = events?.();
      if (!chunkOf) return decoder;
      let isOver = false;
      return {
        push(event) {
          const data = parseJson(event.data);
          if (!isObject(data)) return decoder.push(event);
          const chunk = chunkOf(data);
          isOver ||= isEnd?.(data) === true;
          return chunk ? decoder.push({ ...event, data: JSON.stringify(chunk) }) : [];
        },
        end: () => decoder.end(),
        progress: () => (isOver ? 'complete' : (decoder.progress?.() ?? 'open')),
      };
    },
  };
}
