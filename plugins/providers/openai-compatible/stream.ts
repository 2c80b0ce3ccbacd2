import {
  type ChatChunk,
  type ChatDelta,
  type ChunkChoice,
  type CodecCall,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type Usage,
} from '../../../core/index.ts';
import { extrasOf, mapFinishReason, readContent, readLogprobs } from './choice.ts';
import { failureIn } from './errors.ts';
import { unixSeconds } from './response.ts';
import type { Differences } from './spec.ts';
import { type ToolCallTracker, trackToolCalls } from './tool-calls.ts';
import { count, readUsage } from './usage.ts';

const TOP = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);
const CHOICE = new Set(['index', 'delta', 'message', 'finish_reason', 'logprobs', 'usage', 'text', 'seed']);
const DELTA = new Set(['role', 'content', 'refusal', 'tool_calls', 'reasoning_content', 'reasoning', 'reasoning_text']);

interface ChoiceState {
  readonly tools: ToolCallTracker;
  finished: boolean;
  lastReasoning: string | undefined;
}

interface Head {
  readonly id: string;
  readonly model: string;
  readonly created: number;
}

/** Decodes one stream into OpenAI's exact chunks; usage comes last, in a chunk of its own. */
export function decodeStream(call: CodecCall, differences: Differences): StreamDecoder {
  const choices = new Map<number, ChoiceState>();
  /** Of the first chunk that says something. */
  let head: Head | undefined;
  let usage: Usage | undefined;
  /** Azure's first chunk has no choice to stand beside: what it says goes out with the next one. */
  let promptFilter: JsonObject | undefined;
  let done = false;

  function read(chunk: JsonObject): readonly ChatChunk[] {
    usage = usageOf(chunk, differences) ?? usage;
    const found: ChunkChoice[] = [];
    for (const sent of readArray(chunk['choices'])) {
      const choice = isObject(sent) ? readChoice(sent, choices, call, differences) : undefined;
      if (choice) found.push(choice);
    }
    if (found.length === 0) {
      const { prompt_filter_results } = chunk;
      if (Array.isArray(prompt_filter_results)) promptFilter = { prompt_filter_results };
      return [];
    }
    head ??= {
      id: readString(chunk['id']) ?? call.id,
      model: readString(chunk['model']) ?? call.model,
      created: unixSeconds(chunk['created']) ?? call.created,
    };
    const told = Object.assign(newChunk(head, found), promptFilter, extrasOf(chunk, TOP));
    promptFilter = undefined;
    return [told];
  }

  /** The usage chunk, once. */
  function lastChunks(): readonly ChatChunk[] {
    if (!usage) return [];
    const last = { ...newChunk(head ?? call, []), usage };
    usage = undefined;
    return [last];
  }

  return {
    push({ event, data }: SseEvent) {
      const json = data.trim();
      // A comment that some relay sent on as data (": OPENROUTER PROCESSING") is a comment still.
      if (done || json === '' || json.startsWith(':')) return [];
      done = json === '[DONE]';
      if (done) return lastChunks();
      const chunk = parseChunk(json);
      const failure = failureIn(chunk, differences.errors, event === 'error');
      if (failure) throw new StreamFailure(failure);
      return isObject(chunk) ? read(chunk) : [];
    },
    end: () => ({
      chunks: lastChunks(),
      complete: choices.size > 0 && [...choices.values()].every(({ finished }) => finished),
    }),
  };
}

/** One choice of a chunk; undefined when it says nothing. */
function readChoice(
  choice: JsonObject,
  choices: Map<number, ChoiceState>,
  call: CodecCall,
  differences: Differences,
): ChunkChoice | undefined {
  const index = count(choice['index']) ?? 0;
  // Azure annotates with choices that have no delta; one vendor is said to send `message` for it.
  const sent = isObject(choice['delta']) ? choice['delta'] : readObject(choice['message']);
  const known = choices.get(index);
  const state = known ?? { tools: trackToolCalls(`${call.id}:${index}`), finished: false, lastReasoning: undefined };
  const delta = readDelta(sent, state, !known && hasRole(sent), differences);
  const reason = state.finished ? undefined : readString(choice['finish_reason']);
  const extras = extrasOf(choice, CHOICE);
  const meant = Object.keys(delta).length > 0 || reason !== undefined || 'content_filter_results' in extras;
  if (!meant && (known || !hasRole(sent))) return undefined;
  choices.set(index, state);
  if (reason !== undefined) state.finished = true;
  const read: ChunkChoice = {
    index,
    delta: known ? delta : { role: 'assistant', ...delta },
    logprobs: readLogprobs(choice['logprobs'], delta.content),
    finish_reason: reason === undefined ? null : mapFinishReason(reason, state.tools.used(), differences),
  };
  return Object.assign(read, extras);
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
  return Object.assign(delta, extrasOf(sent, DELTA));
}

function hasRole(sent: JsonObject): boolean {
  return sent['role'] !== undefined && sent['role'] !== null;
}

function parseChunk(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent a stream event that is not JSON.' });
  }
}

/** Usage stands at the top, under `x_groq` (Groq) or in the choice (Moonshot). */
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
