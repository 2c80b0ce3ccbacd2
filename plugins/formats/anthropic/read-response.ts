import {
  type AssistantMessage,
  type ChatChunk,
  type ChatDelta,
  type ChatResponse,
  type ChunkHead,
  type CodecCall,
  chunkHead,
  deltaChunk,
  type FinishReason,
  isObject,
  type JsonObject,
  parseExact,
  parseJson,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type StreamProgress,
  type ToolCall,
  usageChunk,
  writeJson,
} from '../../../contract/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { type ChoiceEnd, hasDelivered, unmappedEnd } from '../unmapped-end.ts';
import { anthropicFailure } from './errors.ts';
import { isUsualOrder, opaqueOf, readFinish } from './tables.ts';
import { isThinkingBlock } from './thinking.ts';
import type { Block } from './types.ts';
import { anthropicUsage, laterAnthropicUsage } from './usage.ts';

/**
 * Converts a message to a chat completion. Throws {@link StreamFailure} for a 200 without a message, and for an
 * unmapped stop reason without content. `isNative` accepts the latter, since the caller reads this format itself.
 */
export function anthropicResponse(body: unknown, call: CodecCall, isNative = false): ChatResponse {
  const message = readObject(body);
  if (message['type'] === 'error' || message['error']) throw new StreamFailure(anthropicFailure(200, body, {}));
  if (!Array.isArray(message['content'])) throw failure('The provider returned a message without content.');
  const content = readContent(message['content'], call.id);
  const reason = readString(message['stop_reason']) ?? 'end_turn';
  const called = content.tool_calls?.map((each) => each.function.arguments) ?? [];
  const known = readFinish(reason, called.length > 0);
  const end = known ? endOf(known, reason, message) : unmappedEnd(reason, isNative || hasDelivered(content), called);
  const model = readString(message['model']) ?? call.model;
  const isRefused = reason === 'refusal' && message['content'].length === 0;
  const usage = anthropicUsage(message['usage'], model, isRefused);
  const refusal = refusalText(reason, message['stop_details'], content.content !== '');
  const isSilent = content.content === '' && (content.tool_calls !== undefined || refusal !== null);
  return {
    id: readString(message['id']) ?? call.id,
    object: 'chat.completion',
    created: call.created,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...content, ...(isSilent && { content: null }), refusal },
        ...end,
        logprobs: null,
      },
    ],
    ...(usage && { usage }),
    ...contextOf(message),
  };
}

/** Finish reason with the vendor's own stop reason and the matched stop sequence. */
function endOf(finish: FinishReason, reason: string, { stop_sequence: sequence }: JsonObject): ChoiceEnd {
  const stop = readString(sequence);
  return { finish_reason: finish, finish: { native: reason, ...(stop !== undefined && { stop_sequence: stop }) } };
}

/** Vendor's explanation of a refusal. Without one, a sentence in its place, unless the model said something itself. */
function refusalText(reason: string, details: unknown, hasText: boolean): string | null {
  if (reason !== 'refusal') return null;
  return readString(readObject(details)['explanation']) ?? (hasText ? null : 'The model refused to answer.');
}

/** Context edits reported by the vendor. */
function contextOf({ context_management }: JsonObject): JsonObject {
  return isObject(context_management) ? { context_management } : {};
}

function failure(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

type Content = Pick<AssistantMessage, 'content' | 'tool_calls'> & JsonObject;

/** Content of a message, equal to the sum of its stream. */
function readContent(content: readonly unknown[], callId: string): Content {
  const reader = new BlockReader(callId);
  let text = '';
  let formed: string | undefined;
  let reasoning = '';
  const details: ReasoningDetail[] = [];
  const calls: ToolCall[] = [];
  const annotations: JsonObject[] = [];
  const opaque: unknown[] = [];
  const order: string[] = [];
  for (const [index, block] of content.filter(isObject).entries()) {
    if (isAnswer(block)) formed = writeJson(block['input'] ?? {});
    else if (block['type'] === 'tool_use') {
      const called = readCall(block);
      if (called) order.push(`tool:${calls.push(called) - 1}`);
    } else
      for (const delta of [...reader.start(index, block), ...reader.close(index)]) {
        text += delta.content ?? '';
        reasoning += delta.reasoning_content ?? '';
        annotations.push(...(delta.annotations ?? []));
        if (delta.content) order.push('content:0');
        for (const detail of delta.reasoning_details ?? []) order.push(`reasoning:${details.push(detail) - 1}`);
        for (const other of readArray(delta['opaque'])) order.push(`opaque:${opaque.push(other) - 1}`);
      }
  }
  return {
    // A formatted response replaces all content: other text would break the format.
    content: formed ?? text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(annotations.length > 0 && { annotations }),
    ...(opaque.length > 0 && { opaque }),
    ...(!isUsualOrder(order) && { order: [...new Set(order)] }),
  };
}

function isAnswer({ type, name }: JsonObject): boolean {
  return type === 'tool_use' && name === ANSWER_TOOL;
}

function readCall({ id, name, input }: JsonObject): ToolCall | undefined {
  if (typeof id !== 'string' || typeof name !== 'string') return undefined;
  return { id, type: 'function', function: { name, arguments: writeJson(input ?? {}) } };
}

/** State of a content block. */
interface BlockState {
  readonly type: string;
  /**
   * Index among tool calls as in OpenAI's format, not among blocks. Undefined for other blocks, and for the answer
   * tool, whose input is text.
   */
  readonly tool: number | undefined;
  readonly start: JsonObject;
  /** Text, thinking or arguments so far. */
  written: string;
  signature: string;
  isClosed: boolean;
}

/** Converts events of content blocks to OpenAI's deltas. */
class BlockReader {
  readonly #callId: string;
  readonly #blocks = new Map<unknown, BlockState>();
  #tools = 0;
  /** Length of all texts so far. */
  #textLength = 0;

  /** `callId` is for calls of servers that send no id. */
  constructor(callId: string) {
    this.#callId = callId;
  }

  /** True once a block has started. */
  get hasBegun(): boolean {
    return this.#blocks.size > 0;
  }

  /** True if a block has content. */
  get hasContent(): boolean {
    return [...this.#blocks.values()].some(
      ({ type, tool, written }) => written !== '' || tool !== undefined || (type !== 'text' && type !== 'thinking'),
    );
  }

  /** Arguments of the tool calls, as text; empty for an unfinished call. */
  get called(): readonly string[] {
    const calls = [...this.#blocks.values()].filter(({ tool }) => tool !== undefined);
    return calls.map(({ isClosed, written }) => (isClosed ? written : ''));
  }

  /** True if the model said anything. */
  get hasText(): boolean {
    return this.#textLength > 0;
  }

  /** True if a tool of the caller was called. */
  get hasCalled(): boolean {
    return this.#tools > 0;
  }

  start(index: unknown, start: JsonObject): readonly ChatDelta[] {
    const type = readString(start['type']) ?? '';
    const isCall = type === 'tool_use' && !isAnswer(start);
    const tool = isCall ? this.#tools++ : undefined;
    const block: BlockState = { type, tool, start, written: '', signature: '', isClosed: false };
    this.#blocks.set(index, block);
    if (tool !== undefined) {
      const id = readString(start['id']) ?? `call_${this.#callId}_${tool}`;
      const called = { name: readString(start['name']) ?? '', arguments: '' };
      return [{ tool_calls: [{ index: tool, id, type: 'function', function: called }] }];
    }
    if (type !== 'text' && type !== 'thinking') return [];
    return [...this.#write(block, start[type]), ...this.#cite(block, readArray(start['citations']))];
  }

  extend(index: unknown, delta: JsonObject): readonly ChatDelta[] {
    const block = this.#blocks.get(index);
    if (!block || block.isClosed) return [];
    switch (delta['type']) {
      case 'text_delta':
        return this.#write(block, delta['text']);
      case 'thinking_delta':
        return this.#write(block, delta['thinking']);
      case 'input_json_delta':
        if (block.type === 'tool_use') return this.#write(block, delta['partial_json']);
        block.written += readString(delta['partial_json']) ?? '';
        return [];
      case 'signature_delta':
        block.signature += readString(delta['signature']) ?? '';
        return [];
      case 'citations_delta':
        return this.#cite(block, [delta['citation']]);
      case 'compaction_delta':
        block.written += readString(delta['content']) ?? '';
        return [];
      default:
        return [];
    }
  }

  /** Returns the deltas that are known only at the end of a block. */
  close(index: unknown): readonly ChatDelta[] {
    const block = this.#blocks.get(index);
    if (!block || block.isClosed) return [];
    block.isClosed = true;
    const { type, start, written } = block;
    if (type === 'text' || type === '') return [];
    // A tool call without input streams no input; some servers send all input in the first event.
    if (type === 'tool_use') return written === '' ? this.#write(block, writeJson(start['input'] ?? {})) : [];
    if (!isThinkingBlock(block)) return [{ opaque: [opaqueOf(completeBlock(block))] }];
    const detail = thinkingDetail({
      ...start,
      type,
      thinking: written,
      signature: block.signature || readString(start['signature']),
    });
    return detail ? [{ reasoning_details: [detail] }] : [];
  }

  #write(block: BlockState, text: unknown): readonly ChatDelta[] {
    if (typeof text !== 'string' || text === '') return [];
    block.written += text;
    if (block.type === 'thinking') return [{ reasoning_content: text }];
    if (block.tool !== undefined) return [{ tool_calls: [{ index: block.tool, function: { arguments: text } }] }];
    if (block.type === 'text') this.#textLength += text.length;
    return [{ content: text }];
  }

  #cite(block: BlockState, citations: readonly unknown[]): readonly ChatDelta[] {
    if (block.type !== 'text') return [];
    const annotations = citations.filter(isObject).map((citation) => this.#readCitation(citation, block.written));
    return annotations.length > 0 ? [{ annotations }] : [];
  }

  /**
   * Converts a citation of a text: a page in OpenAI's form with its position in the text, plus the vendor's original.
   */
  #readCitation(citation: JsonObject, text: string): JsonObject {
    const { type, title, document_title: document, document_index: nth, file_id: id } = citation;
    const url = readString(citation['url'] ?? citation['source']);
    const own = opaqueOf(citation);
    if (url !== undefined && /^https?:/i.test(url)) {
      const place = { start_index: this.#textLength - text.length, end_index: this.#textLength };
      return { ...own, type: 'url_citation', url_citation: { url, title: readString(title) ?? url, ...place } };
    }
    if (!DOCUMENT_PLACES.has(type)) return own;
    const name = readString(document) ?? readString(title) ?? `document_${readCount(nth) ?? 0}`;
    const file = { file_id: readString(id) ?? name, filename: name, index: this.#textLength };
    return { ...own, type: 'file_citation', file_citation: file };
  }
}

/**
 * Types of citations of the caller's documents. Source:
 * https://platform.claude.com/docs/en/build-with-claude/citations
 */
const DOCUMENT_PLACES: ReadonlySet<unknown> = new Set([
  ...['char_location', 'page_location', 'content_block_location', 'search_result_location'],
]);

/** Thinking block in the form that the vendor accepts back; undefined if the vendor could not verify it. */
function thinkingDetail(block: Block): ReasoningDetail | undefined {
  const field = block.type === 'redacted_thinking' ? 'data' : 'signature';
  const mark = readString(block[field]);
  if (mark === undefined) return undefined;
  return field === 'data'
    ? { kind: 'encrypted', data: mark, format: 'anthropic' }
    : { kind: 'text', text: String(block['thinking']), signature: mark, format: 'anthropic' };
}

/** Block of a vendor tool as in a complete message. */
function completeBlock({ type, start, written }: BlockState): JsonObject {
  if (written === '') return start;
  return type === 'compaction'
    ? { ...start, content: written }
    : { ...start, input: parseJson(written) ?? start['input'] };
}

/** Decodes events of the Messages API by the `type` in their data; `isNative` as for {@link anthropicResponse}. */
export function anthropicStream(call: CodecCall, isNative = false): StreamDecoder {
  return new EventReader(call, isNative);
}

class EventReader implements StreamDecoder {
  readonly #call: CodecCall;
  readonly #isNative: boolean;
  readonly #blocks: BlockReader;
  #head: ChunkHead;
  /** Id of the message that has started. */
  #started: string | undefined;
  #usage: JsonObject = {};
  #finish: FinishReason | undefined;
  #isStopped = false;
  /** True if the request was rejected before any output. */
  #isRefused = false;

  constructor(call: CodecCall, isNative: boolean) {
    this.#call = call;
    this.#isNative = isNative;
    this.#blocks = new BlockReader(call.id);
    this.#head = chunkHead(call);
  }

  push({ event, data: text }: SseEvent): readonly ChatChunk[] {
    if (this.#isStopped || text.trim() === '') return [];
    // Some servers send all arguments of a call in its first event.
    const data = text.includes('"tool_use"') ? parseExact(text) : parseJson(text);
    if (!isObject(data)) throw failure('The provider sent an event that is not JSON.');
    const type = readString(data['type']) ?? event ?? '';
    // Only usage may follow a finish reason.
    if (this.#finish !== undefined && type.startsWith('content_block')) return [];
    const { index } = data;
    switch (type) {
      case 'error':
        throw new StreamFailure(anthropicFailure(200, data, {}));
      case 'message_start':
        return this.#open(readObject(data['message']));
      case 'content_block_start':
        return [...this.#openLate(), ...this.#emit(this.#blocks.start(index, readObject(data['content_block'])))];
      case 'content_block_delta':
        return this.#emit(this.#blocks.extend(index, readObject(data['delta'])));
      case 'content_block_stop':
        return this.#emit(this.#blocks.close(index));
      case 'message_delta':
        this.#count(data['usage']);
        return [...this.#openLate(), ...this.#end(readObject(data['delta']), data)];
      case 'message_stop':
        this.#isStopped = true;
        return [];
      default:
        return [];
    }
  }

  end(): { readonly chunks: readonly ChatChunk[]; readonly complete: boolean } {
    const counted =
      this.#started === undefined ? undefined : anthropicUsage(this.#usage, this.#head.model, this.#isRefused);
    return { chunks: counted ? [usageChunk(this.#head, counted)] : [], complete: this.#finish !== undefined };
  }

  progress(): StreamProgress {
    if (this.#isStopped) return 'complete';
    return this.#finish === undefined ? 'open' : 'finished';
  }

  #emit(deltas: readonly ChatDelta[]): readonly ChatChunk[] {
    return deltas.map((delta) => deltaChunk(this.#head, delta));
  }

  #open(message: JsonObject): readonly ChatChunk[] {
    const id = readString(message['id']) ?? this.#call.id;
    if (this.#started !== undefined) {
      // Some proxies repeat the first event. A new message in the middle of a stream is an error, because output cannot
      // be retracted.
      if (id === this.#started && !this.#blocks.hasBegun) return [];
      throw failure('The provider sent a second message in one stream.');
    }
    this.#started = id;
    this.#head = { ...this.#head, id, model: readString(message['model']) ?? this.#head.model };
    // Output tokens are not known yet, unless the message has already ended.
    const begun = readObject(message['usage']);
    this.#count(readString(message['stop_reason']) === undefined ? { ...begun, output_tokens: null } : begun);
    // A call made by the vendor's code runner arrives complete in the first event.
    const complete = readArray(message['content']).flatMap((block, index) => [
      ...this.#blocks.start(index, readObject(block)),
      ...this.#blocks.close(index),
    ]);
    const opening: ChatDelta = { role: 'assistant', content: '', refusal: null };
    return [...this.#emit([opening, ...complete]), ...this.#end(message, message)];
  }

  /** Opens the message if the server did not. */
  #openLate(): readonly ChatChunk[] {
    return this.#started === undefined ? this.#open({}) : [];
  }

  #end(delta: JsonObject, event: JsonObject): readonly ChatChunk[] {
    const reason = readString(delta['stop_reason']);
    if (reason === undefined || this.#finish !== undefined) return [];
    const known = readFinish(reason, this.#blocks.hasCalled);
    const end = known
      ? endOf(known, reason, delta)
      : unmappedEnd(reason, this.#isNative || this.#blocks.hasContent, this.#blocks.called);
    this.#finish = end.finish_reason;
    this.#isRefused = reason === 'refusal' && !this.#blocks.hasBegun;
    const refusal = refusalText(reason, delta['stop_details'], this.#blocks.hasText);
    const chunk = deltaChunk(this.#head, {}, { finish: end.finish_reason });
    const last = { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, ...end })) };
    return [...this.#emit(refusal === null ? [] : [{ refusal }]), { ...last, ...contextOf(event) }];
  }

  #count(usage: unknown): void {
    this.#usage = laterAnthropicUsage(this.#usage, readObject(usage));
  }
}
