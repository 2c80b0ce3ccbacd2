import { type ChatDelta, type JsonObject, readString } from '../../../core/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';

/** Turns the events of content blocks into OpenAI's deltas. */
export interface BlockReader {
  start(index: unknown, block: JsonObject): readonly ChatDelta[];
  extend(index: unknown, delta: JsonObject): readonly ChatDelta[];
  close(index: unknown): readonly ChatDelta[];
  /** Whether any block has begun. */
  hasBegun(): boolean;
  /** Whether one of them called a tool of the caller's. */
  hasCalled(): boolean;
}

/** What is known of one content block. */
interface Block {
  readonly type: string;
  /** Counts tools, not blocks: OpenAI's index. Undefined for other blocks, and for the answer tool, whose input is text. */
  readonly tool: number | undefined;
  readonly start: JsonObject;
  /** Text, thinking or arguments so far. */
  written: string;
  signature: string;
  closed: boolean;
}

/** A reader for one stream; `callId` is for calls of servers that send none. */
export function createBlockReader(callId: string): BlockReader {
  const blocks = new Map<unknown, Block>();
  let tools = 0;

  return {
    start(index, start) {
      const type = readString(start['type']) ?? '';
      const isCall = type === 'tool_use' && start['name'] !== ANSWER_TOOL;
      const block: Block = {
        type,
        tool: isCall ? tools++ : undefined,
        start,
        written: '',
        signature: '',
        closed: false,
      };
      blocks.set(index, block);
      if (block.tool === undefined) return type === 'text' || type === 'thinking' ? write(block, start[type]) : [];
      const id = readString(start['id']) ?? `call_${callId}_${block.tool}`;
      const called = { name: readString(start['name']) ?? '', arguments: '' };
      return [{ tool_calls: [{ index: block.tool, id, type: 'function', function: called }] }];
    },
    extend(index, delta) {
      const block = blocks.get(index);
      if (!block || block.closed) return [];
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
    },
    close(index) {
      const block = blocks.get(index);
      if (!block || block.closed) return [];
      block.closed = true;
      const { type, start, written } = block;
      // A tool without input streams none; some servers send all of it in the first event.
      if (type === 'tool_use' && written === '') return write(block, JSON.stringify(start['input'] ?? {}));
      if (type === 'redacted_thinking') return [{ thinking_blocks: [{ type, data: start['data'] }] }];
      const signature = block.signature || readString(start['signature']);
      return type === 'thinking' && signature ? [{ thinking_blocks: [{ type, thinking: written, signature }] }] : [];
    },
    hasBegun: () => blocks.size > 0,
    hasCalled: () => tools > 0,
  };
}

function write(block: Block, text: unknown): readonly ChatDelta[] {
  if (typeof text !== 'string' || text === '') return [];
  block.written += text;
  if (block.type === 'thinking') return [{ reasoning_content: text }];
  if (block.tool === undefined) return [{ content: text }];
  return [{ tool_calls: [{ index: block.tool, function: { arguments: text } }] }];
}
