import {
  type ChatChunk,
  type ChunkChoice,
  type CodecCall,
  isObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type Usage,
} from '../../../core/index.ts';
import { readContent } from './content.ts';
import { copyExtras } from './extras.ts';
import { failureIn } from './failures.ts';
import { mapFinishReason } from './finish.ts';
import { readLogprobs } from './logprobs.ts';
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

type Head = Readonly<Record<'id' | 'model', string>> & { readonly created: number };

/** Decodes one stream into OpenAI's exact chunks; usage comes last, in a chunk of its own. */
export function decodeStream(call: CodecCall, differences: Differences): StreamDecoder {
  const choices = new Map<number, ChoiceState>();
  let head: Head = { id: '', model: '', created: 0 };
  let usage: Usage | undefined;
  let done = false;

  function push({ event, data }: SseEvent): readonly ChatChunk[] {
    const json = data.trim();
    // A comment that some relay sent on as data (": OPENROUTER PROCESSING") is a comment still.
    if (done || json === '' || json.startsWith(':')) return [];
    if (json === '[DONE]') {
      done = true;
      return lastChunks();
    }
    const chunk = parseChunk(json);
    const failure = failureIn(chunk, differences.errors, event === 'error');
    if (failure) throw new StreamFailure(failure);
    if (!isObject(chunk)) return [];
    usage = usageOf(chunk, differences) ?? usage;
    const sent = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject) : [];
    const read = sent.flatMap((choice) => readChoice(choice) ?? []);
    if (read.length === 0) return [];
    head = {
      id: head.id || (readString(chunk['id']) ?? call.id),
      model: head.model || (readString(chunk['model']) ?? call.model),
      created: head.created || (unixSeconds(chunk['created']) ?? call.created),
    };
    const canonical = newChunk(head, read);
    copyExtras(chunk, TOP, canonical);
    return [canonical as unknown as ChatChunk];
  }

  function readChoice(choice: Readonly<Record<string, unknown>>): ChunkChoice | undefined {
    const index = count(choice['index']) ?? 0;
    // Azure annotates with choices that have no delta; one vendor is said to send `message` for it.
    const sent = isObject(choice['delta']) ? choice['delta'] : isObject(choice['message']) ? choice['message'] : {};
    const known = choices.get(index);
    const state = known ?? { tools: trackToolCalls(`${call.id}:${index}`), finished: false, lastReasoning: undefined };
    const delta = readDelta(sent, state, !known && hasRole(sent), differences);
    const reason = state.finished ? undefined : readString(choice['finish_reason']);
    const meant = Object.keys(delta).length > 0 || reason !== undefined;
    if (!meant && (known || !hasRole(sent))) return undefined;
    choices.set(index, state);
    if (reason !== undefined) state.finished = true;
    const read: Record<string, unknown> = {
      index,
      delta: known ? delta : { role: 'assistant', ...delta },
      logprobs: readLogprobs(choice['logprobs'], delta['content']),
      finish_reason: reason === undefined ? null : mapFinishReason(reason, state.tools.used(), differences),
    };
    copyExtras(choice, CHOICE, read);
    return read as unknown as ChunkChoice;
  }

  /** The usage chunk, once. */
  function lastChunks(): readonly ChatChunk[] {
    if (!usage) return [];
    const last = { ...newChunk(completeHead(head, call), []), usage };
    usage = undefined;
    return [last as unknown as ChatChunk];
  }

  return {
    push,
    end: () => ({
      chunks: lastChunks(),
      complete: choices.size > 0 && [...choices.values()].every(({ finished }) => finished),
    }),
  };
}

function readDelta(
  sent: Readonly<Record<string, unknown>>,
  state: ChoiceState,
  opening: boolean,
  differences: Differences,
): Record<string, unknown> {
  const delta: Record<string, unknown> = {};
  const { content, reasoning } = readContent(sent);
  const repeated = differences.repeatsReasoning && reasoning === state.lastReasoning;
  if (reasoning !== undefined && !repeated) delta['reasoning_content'] = reasoning;
  state.lastReasoning = reasoning;
  const toolCalls = state.tools.push(sent['tool_calls']);
  if (typeof content === 'string' && (content !== '' || opening)) delta['content'] = content;
  else if (content === null && toolCalls && opening) delta['content'] = null;
  if (readString(sent['refusal'])) delta['refusal'] = sent['refusal'];
  if (toolCalls) delta['tool_calls'] = toolCalls;
  copyExtras(sent, DELTA, delta);
  return delta;
}

function hasRole(sent: Readonly<Record<string, unknown>>): boolean {
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
function usageOf(chunk: Readonly<Record<string, unknown>>, { reasoningTokens }: Differences): Usage | undefined {
  const top = readUsage(chunk['usage'], reasoningTokens);
  if (top) return top;
  const { x_groq: groq, choices } = chunk;
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return (
    (isObject(groq) ? readUsage(groq['usage'], reasoningTokens) : undefined) ??
    (isObject(first) ? readUsage(first['usage'], reasoningTokens) : undefined)
  );
}

function newChunk(head: Head, choices: readonly ChunkChoice[]): Record<string, unknown> {
  return { id: head.id, object: 'chat.completion.chunk', created: head.created, model: head.model, choices };
}

function completeHead(head: Head, call: CodecCall): Head {
  return { id: head.id || call.id, model: head.model || call.model, created: head.created || call.created };
}
