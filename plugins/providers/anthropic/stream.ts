import {
  type ChatChunk,
  type ChatDelta,
  type ChunkHead,
  type CodecCall,
  chunkHead,
  deltaChunk,
  type FinishReason,
  isObject,
  type JsonObject,
  parseJson,
  readArray,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  usageChunk,
} from '../../../core/index.ts';
import { type BlockReader, createBlockReader } from './block-reader.ts';
import { anthropicFailure } from './errors.ts';
import { finishReason, nativeFinish, refusalText } from './response.ts';
import { anthropicUsage } from './usage.ts';

/** What is known of a stream so far. */
interface StreamState {
  readonly call: CodecCall;
  readonly blocks: BlockReader;
  head: ChunkHead;
  /** The id of the message that has begun. */
  started: string | undefined;
  usage: JsonObject;
  finish: FinishReason | undefined;
  stopped: boolean;
}

/** Decodes the Messages API's events, told apart by the `type` in their data. */
export function anthropicStream(call: CodecCall): StreamDecoder {
  const state: StreamState = {
    call,
    blocks: createBlockReader(call.id),
    head: chunkHead(call),
    started: undefined,
    usage: {},
    finish: undefined,
    stopped: false,
  };
  return {
    push(event: SseEvent) {
      if (state.stopped || event.data.trim() === '') return [];
      const data = parseJson(event.data);
      if (!isObject(data)) throw failure('The provider sent an event that is not JSON.');
      return readEvent(state, readString(data['type']) ?? event.event ?? '', data);
    },
    end() {
      const counted = state.started === undefined ? undefined : anthropicUsage(state.usage);
      return { chunks: counted ? [usageChunk(state.head, counted)] : [], complete: state.finish !== undefined };
    },
  };
}

function readEvent(state: StreamState, type: string, data: JsonObject): readonly ChatChunk[] {
  const { blocks } = state;
  // Nothing may follow a finish reason but the counts.
  if (state.finish !== undefined && type.startsWith('content_block')) return [];
  switch (type) {
    case 'error':
      throw new StreamFailure(anthropicFailure(200, data, {}));
    case 'message_start':
      return openMessage(state, readObject(data['message']));
    case 'content_block_start':
      return [...openLate(state), ...emit(state, blocks.start(data['index'], readObject(data['content_block'])))];
    case 'content_block_delta':
      return emit(state, blocks.extend(data['index'], readObject(data['delta'])));
    case 'content_block_stop':
      return emit(state, blocks.close(data['index']));
    case 'message_delta':
      state.usage = merge(state.usage, data['usage']);
      return [...openLate(state), ...endMessage(state, readObject(data['delta']), contextOf(data))];
    case 'message_stop':
      state.stopped = true;
      return [];
    default:
      return [];
  }
}

function emit({ head }: StreamState, deltas: readonly ChatDelta[]): readonly ChatChunk[] {
  return deltas.map((delta) => deltaChunk(head, delta));
}

function openMessage(state: StreamState, message: JsonObject): readonly ChatChunk[] {
  const { blocks, started } = state;
  const id = readString(message['id']) ?? state.call.id;
  if (started !== undefined) {
    // Some proxies repeat the first event; one that begins anew in the middle cannot be taken back.
    if (id === started && !blocks.hasBegun()) return [];
    throw failure('The provider began a second answer in one stream.');
  }
  state.started = id;
  state.head = { ...state.head, id, model: readString(message['model']) ?? state.head.model };
  state.usage = merge(state.usage, message['usage']);
  // A call made by the vendor's own code runner comes whole, in the first event.
  const whole = readArray(message['content']).flatMap((block, index) => [
    ...blocks.start(index, readObject(block)),
    ...blocks.close(index),
  ]);
  const opening: ChatDelta = { role: 'assistant', content: '', refusal: null };
  return [...emit(state, [opening, ...whole]), ...endMessage(state, message, contextOf(message))];
}

/** Opens the message of a server that did not. */
function openLate(state: StreamState): readonly ChatChunk[] {
  return state.started === undefined ? openMessage(state, {}) : [];
}

function endMessage(state: StreamState, delta: JsonObject, context: JsonObject): readonly ChatChunk[] {
  const reason = readString(delta['stop_reason']);
  if (reason === undefined || state.finish !== undefined) return [];
  const finish = finishReason(reason, state.blocks.hasCalled());
  state.finish = finish;
  const refusal = refusalText(reason, delta['stop_details']);
  const chunk = deltaChunk(state.head, {}, { finish });
  const told = nativeFinish(reason, delta['stop_sequence']);
  const last = { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, finish: told })), ...context };
  return [...emit(state, refusal === null ? [] : [{ refusal }]), last];
}

/** What the vendor says it cleared from the context. */
function contextOf({ context_management }: JsonObject): JsonObject {
  return isObject(context_management) ? { context_management } : {};
}

function failure(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

/** Later counts replace earlier ones (they are cumulative), unless they are missing or null. */
function merge(usage: JsonObject, more: unknown): JsonObject {
  const told = Object.entries(readObject(more)).filter(([, value]) => value !== null && value !== undefined);
  return { ...usage, ...Object.fromEntries(told) };
}
