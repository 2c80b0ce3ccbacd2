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
import { createBlockReader } from './block-reader.ts';
import { anthropicFailure } from './errors.ts';
import { finishReason, refusalText } from './finish.ts';
import { anthropicUsage } from './usage.ts';

/** Decodes the Messages API's events, told apart by the `type` in their data. */
export function anthropicStream(call: CodecCall): StreamDecoder {
  let head: ChunkHead = chunkHead(call);
  let started: string | undefined;
  let usage: JsonObject = {};
  let finish: FinishReason | undefined;
  let stopped = false;
  const blocks = createBlockReader(call.id);

  const emit = (deltas: readonly ChatDelta[]): readonly ChatChunk[] => deltas.map((delta) => deltaChunk(head, delta));

  const open = (message: JsonObject): readonly ChatChunk[] => {
    const id = readString(message['id']) ?? call.id;
    if (started !== undefined) {
      // Some proxies repeat the first event; one that begins anew in the middle cannot be taken back.
      if (id === started && !blocks.hasBegun()) return [];
      throw new StreamFailure({
        class: 'upstream_error',
        message: 'The provider began a second answer in one stream.',
      });
    }
    started = id;
    head = { ...head, id, model: readString(message['model']) ?? head.model };
    usage = merge(usage, message['usage']);
    // A call made by the vendor's own code runner comes whole, in the first event.
    const whole = readArray(message['content']).flatMap((block, index) => [
      ...blocks.start(index, readObject(block)),
      ...blocks.close(index),
    ]);
    return [...emit([{ role: 'assistant', content: '', refusal: null }, ...whole]), ...end(message)];
  };

  const openLate = (): readonly ChatChunk[] => (started === undefined ? open({}) : []);

  const end = (delta: JsonObject): readonly ChatChunk[] => {
    const reason = readString(delta['stop_reason']);
    if (reason === undefined || finish !== undefined) return [];
    finish = finishReason(reason, blocks.hasCalled());
    const refusal = refusalText(reason, delta['stop_details']);
    return [...emit(refusal === null ? [] : [{ refusal }]), deltaChunk(head, {}, { finish })];
  };

  return {
    push(event: SseEvent) {
      if (stopped || event.data.trim() === '') return [];
      const data = parseJson(event.data);
      if (!isObject(data)) {
        throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent an event that is not JSON.' });
      }
      const type = readString(data['type']) ?? event.event ?? '';
      // Nothing may follow a finish reason but the counts.
      if (finish !== undefined && type.startsWith('content_block')) return [];
      switch (type) {
        case 'error':
          throw new StreamFailure(anthropicFailure(200, data, {}));
        case 'message_start':
          return open(readObject(data['message']));
        case 'content_block_start':
          return [...openLate(), ...emit(blocks.start(data['index'], readObject(data['content_block'])))];
        case 'content_block_delta':
          return emit(blocks.extend(data['index'], readObject(data['delta'])));
        case 'content_block_stop':
          return emit(blocks.close(data['index']));
        case 'message_delta':
          usage = merge(usage, data['usage']);
          return [...openLate(), ...end(readObject(data['delta']))];
        case 'message_stop':
          stopped = true;
          return [];
        default:
          return [];
      }
    },
    end() {
      const counted = started === undefined ? undefined : anthropicUsage(usage);
      return { chunks: counted ? [usageChunk(head, counted)] : [], complete: finish !== undefined };
    },
  };
}

/** Later counts replace earlier ones (they are cumulative), unless they are missing or null. */
function merge(usage: JsonObject, more: unknown): JsonObject {
  const told = Object.entries(readObject(more)).filter(([, value]) => value !== null && value !== undefined);
  return { ...usage, ...Object.fromEntries(told) };
}
