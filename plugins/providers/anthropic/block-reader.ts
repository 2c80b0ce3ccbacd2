import { type ChatDelta, type JsonObject, parseJson, readString } from '../../../core/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { opaqueBlock, readCitations, thinkingDetail } from './response-blocks.ts';

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
  /** Of all texts so far. */
  let textLength = 0;

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
          if (block.type === 'text') textLength += readString(delta['text'])?.length ?? 0;
          return write(block, delta['text']);
        case 'thinking_delta':
          return write(block, delta['thinking']);
        case 'input_json_delta':
          if (block.type === 'tool_use') return write(block, delta['partial_json']);
          block.written += readString(delta['partial_json']) ?? '';
          return [];
        case 'signature_delta':
          block.signature += readString(delta['signature']) ?? '';
          return [];
        case 'citations_delta':
          return cite(block, delta['citation'], textLength);
        case 'compaction_delta':
          block.written += readString(delta['content']) ?? '';
          return [];
        default:
          return [];
      }
    },
    close(index) {
      const block = blocks.get(index);
      if (!block || block.closed) return [];
      block.closed = true;
      return endOf(block);
    },
    hasBegun: () => blocks.size > 0,
    hasCalled: () => tools > 0,
  };
}

/** What is known of a block only when it ends. */
function endOf(block: Block): readonly ChatDelta[] {
  const { type, start, written } = block;
  // A tool without input streams none; some servers send all of it in the first event.
  if (type === 'tool_use' && written === '') return write(block, JSON.stringify(start['input'] ?? {}));
  if (type === 'thinking' || type === 'redacted_thinking') {
    const signature = block.signature || readString(start['signature']);
    const detail = thinkingDetail({ ...start, thinking: written, signature });
    return detail ? [{ reasoning_details: [detail] }] : [];
  }
  return KNOWN.has(type) || type === '' ? [] : [{ opaque: [opaqueBlock(wholeBlock(block))] }];
}

const KNOWN: ReadonlySet<string> = new Set(['text', 'tool_use']);

/** A block of the vendor's own tools as it would stand in a whole message. */
function wholeBlock({ type, start, written }: Block): JsonObject {
  if (written === '') return start;
  return type === 'compaction'
    ? { ...start, content: written }
    : { ...start, input: parseJson(written) ?? start['input'] };
}

function cite(block: Block, citation: unknown, length: number): readonly ChatDelta[] {
  if (block.type !== 'text') return [];
  const annotations = readCitations([citation], length - block.written.length, block.written);
  return annotations.length > 0 ? [{ annotations }] : [];
}

function write(block: Block, text: unknown): readonly ChatDelta[] {
  if (typeof text !== 'string' || text === '') return [];
  block.written += text;
  if (block.type === 'thinking') return [{ reasoning_content: text }];
  if (block.tool === undefined) return [{ content: text }];
  return [{ tool_calls: [{ index: block.tool, function: { arguments: text } }] }];
}
