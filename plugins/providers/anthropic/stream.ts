import {
  ANSWER_TOOL,
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
import { anthropicFailure } from './errors.ts';
import { finishReason, refusalText } from './finish.ts';
import { anthropicUsage } from './usage.ts';

/** What is known of one content block while it is open. */
interface OpenBlock {
  readonly type: string;
  /** Counts tools, not blocks: OpenAI's index. Undefined for other blocks, and for the answer tool, which is text. */
  readonly tool: number | undefined;
  readonly start: JsonObject;
  /** Text, thinking or arguments so far. */
  written: string;
  signature: string;
  closed: boolean;
}

/** Decodes the Messages API's events, told apart by the `type` in their data. */
export function anthropicStream(call: CodecCall): StreamDecoder {
  let head: ChunkHead = chunkHead(call);
  let started: string | undefined;
  let usage: JsonObject = {};
  let tools = 0;
  let finish: FinishReason | undefined;
  let stopped = false;
  const blocks = new Map<unknown, OpenBlock>();

  const emit = (delta: ChatDelta): readonly ChatChunk[] => [deltaChunk(head, delta)];

  const open = (message: JsonObject): readonly ChatChunk[] => {
    const id = readString(message['id']) ?? call.id;
    if (started !== undefined) {
      // Some proxies repeat the first event; one that begins anew in the middle cannot be taken back.
      if (id === started && blocks.size === 0) return [];
      throw new StreamFailure({
        class: 'upstream_error',
        message: 'The provider began a second answer in one stream.',
      });
    }
    started = id;
    head = { ...head, id, model: readString(message['model']) ?? head.model };
    usage = merge(usage, message['usage']);
    const role = emit({ role: 'assistant', content: '', refusal: null });
    // A call made by the vendor's own code runner comes whole, in the first event.
    const whole = readArray(message['content']).flatMap((block, index) => [
      ...startBlock(index, readObject(block)),
      ...closeBlock(index),
    ]);
    return [...role, ...whole, ...end(message)];
  };

  const startBlock = (index: unknown, start: JsonObject): readonly ChatChunk[] => {
    const type = readString(start['type']) ?? '';
    const isTool = type === 'tool_use' && start['name'] !== ANSWER_TOOL;
    const block: OpenBlock = {
      type,
      tool: isTool ? tools++ : undefined,
      start,
      written: '',
      signature: '',
      closed: false,
    };
    blocks.set(index, block);
    if (block.tool !== undefined) {
      const called = { name: readString(start['name']) ?? '', arguments: '' };
      const id = readString(start['id']) ?? `call_${call.id}_${block.tool}`;
      return emit({ tool_calls: [{ index: block.tool, id, type: 'function', function: called }] });
    }
    return type === 'text' || type === 'thinking' ? write(block, start[type]) : [];
  };

  const write = (block: OpenBlock, text: unknown): readonly ChatChunk[] => {
    if (typeof text !== 'string' || text === '') return [];
    block.written += text;
    if (block.type === 'thinking') return emit({ reasoning_content: text });
    if (block.tool === undefined) return emit({ content: text });
    return emit({ tool_calls: [{ index: block.tool, function: { arguments: text } }] });
  };

  const extend = (block: OpenBlock, delta: JsonObject): readonly ChatChunk[] => {
    switch (delta['type']) {
      case 'text_delta':
        return write(block, delta['text']);
      case 'thinking_delta':
        return write(block, delta['thinking']);
      case 'input_json_delta':
        return block.type === 'tool_use' ? write(block, delta['partial_json']) : [];
      case 'signature_delta':
        block.signature += readString(delta['signature']) ?? '';
        return [];
      default:
        return [];
    }
  };

  const closeBlock = (index: unknown): readonly ChatChunk[] => {
    const block = blocks.get(index);
    if (!block || block.closed) return [];
    block.closed = true;
    const { type, start, written } = block;
    // A tool without input streams none; some servers send all of it in the first event.
    if (type === 'tool_use' && written === '') return write(block, JSON.stringify(start['input'] ?? {}));
    if (type === 'redacted_thinking') return emit({ thinking_blocks: [{ type, data: start['data'] }] });
    const signature = block.signature || readString(start['signature']);
    if (type !== 'thinking' || !signature) return [];
    return emit({ thinking_blocks: [{ type, thinking: written, signature }] });
  };

  const end = (delta: JsonObject): readonly ChatChunk[] => {
    const reason = readString(delta['stop_reason']);
    if (reason === undefined || finish !== undefined) return [];
    finish = finishReason(reason, tools > 0);
    const refusal = refusalText(reason, delta['stop_details']);
    return [...(refusal === null ? [] : emit({ refusal })), deltaChunk(head, {}, { finish })];
  };

  return {
    push(event: SseEvent) {
      if (stopped || event.data.trim() === '') return [];
      const data = parseJson(event.data);
      if (!isObject(data)) {
        throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent an event that is not JSON.' });
      }
      const block = blocks.get(data['index']);
      switch (data['type'] ?? event.event) {
        case 'error':
          throw new StreamFailure(anthropicFailure(200, data, {}));
        case 'message_start':
          return open(readObject(data['message']));
        case 'content_block_start':
          return [
            ...(started === undefined ? open({}) : []),
            ...startBlock(data['index'], readObject(data['content_block'])),
          ];
        case 'content_block_delta':
          return block && !block.closed ? extend(block, readObject(data['delta'])) : [];
        case 'content_block_stop':
          return closeBlock(data['index']);
        case 'message_stop':
          stopped = true;
          return [];
        case 'message_delta':
          usage = merge(usage, data['usage']);
          return [...(started === undefined ? open({}) : []), ...end(readObject(data['delta']))];
        default:
          return [];
      }
    },
    end() {
      const counted = anthropicUsage(usage);
      return {
        chunks: counted && started !== undefined ? [usageChunk(head, counted)] : [],
        complete: finish !== undefined,
      };
    },
  };
}

/** Later counts replace earlier ones (they are cumulative), unless they are missing or null. */
function merge(usage: JsonObject, more: unknown): JsonObject {
  const told = Object.entries(readObject(more)).filter(([, value]) => value !== null && value !== undefined);
  return { ...usage, ...Object.fromEntries(told) };
}
