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
} from '../../../contract/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { type ChoiceEnd, hasDelivered, unmappedEnd } from '../unmapped-end.ts';
import { anthropicFailure } from './errors.ts';
import { isUsualOrder, opaqueOf, readFinish } from './tables.ts';
import { isThinkingBlock } from './thinking.ts';
import type { Block } from './types.ts';
import { anthropicUsage } from './usage.ts';

/**
 * A message as a chat completion. Throws {@link StreamFailure} when a 200 holds none, and for an unmapped stop reason without content;
 * `isNative` keeps that too, since the caller reads this format itself.
 */
export function anthropicResponse(body: unknown, call: CodecCall, isNative = false): ChatResponse {
  const message = readObject(body);
  if (message['type'] === 'error' || message['error']) throw new StreamFailure(anthropicFailure(200, body, {}));
  if (!Array.isArray(message['content'])) throw failure('The provider sent a message without content.');
  const content = readContent(message['content'], call.id);
  const reason = readString(message['stop_reason']) ?? 'end_turn';
  const called = content.tool_calls?.map((each) => each.function.arguments) ?? [];
  const known = readFinish(reason, called.length > 0);
  const end = known ? endOf(known, reason, message) : unmappedEnd(reason, isNative || hasDelivered(content), called);
  const model = readString(message['model']) ?? call.model;
  const isRefused = reason === 'refusal' && message['content'].length === 0;
  const usage = anthropicUsage(message['usage'], model, isRefused);
  const refusal = refusalText(reason, message['stop_details']);
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

/** A finish reason with the vendor's own word, and which stop sequence it was. */
function endOf(finish: FinishReason, reason: string, { stop_sequence: sequence }: JsonObject): ChoiceEnd {
  const stop = readString(sequence);
  return { finish_reason: finish, finish: { native: reason, ...(stop !== undefined && { stop_sequence: stop }) } };
}

/** What the vendor says of a refusal; null when there was none. */
function refusalText(reason: string, details: unknown): string | null {
  if (reason !== 'refusal') return null;
  return readString(readObject(details)['explanation']) ?? 'The model refused to answer.';
}

/** What the vendor says it cleared from the context. */
function contextOf({ context_management }: JsonObject): JsonObject {
  return isObject(context_management) ? { context_management } : {};
}

function failure(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

type Content = Pick<AssistantMessage, 'content' | 'tool_calls'> & JsonObject;

/** The content of a message: what a stream of it would come to. */
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
    if (isAnswer(block)) formed = JSON.stringify(block['input'] ?? {});
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
    // A formed answer is all of the content: words next to it would break its form.
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
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

/** What is known of one content block. */
interface BlockState {
  readonly type: string;
  /** Counts tools, not blocks: OpenAI's index. Undefined for other blocks, and for the answer tool, whose input is text. */
  readonly tool: number | undefined;
  readonly start: JsonObject;
  /** Text, thinking or arguments so far. */
  written: string;
  signature: string;
  isClosed: boolean;
}

/** Turns the events of content blocks into OpenAI's deltas. */
class BlockReader {
  readonly #callId: string;
  readonly #blocks = new Map<unknown, BlockState>();
  #tools = 0;
  /** Of all texts so far. */
  #textLength = 0;

  /** `callId` is for calls of servers that send none. */
  constructor(callId: string) {
    this.#callId = callId;
  }

  /** Whether any block has begun. */
  get hasBegun(): boolean {
    return this.#blocks.size > 0;
  }

  /** Whether any of them has content. */
  get hasContent(): boolean {
    return [...this.#blocks.values()].some(
      ({ type, tool, written }) => written !== '' || tool !== undefined || (type !== 'text' && type !== 'thinking'),
    );
  }

  /** The arguments of the calls of tools, as text; empty for one that has not ended. */
  get called(): readonly string[] {
    const calls = [...this.#blocks.values()].filter(({ tool }) => tool !== undefined);
    return calls.map(({ isClosed, written }) => (isClosed ? written : ''));
  }

  /** Whether one of them called a tool of the caller's. */
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

  /** What is known of a block only when it ends. */
  close(index: unknown): readonly ChatDelta[] {
    const block = this.#blocks.get(index);
    if (!block || block.isClosed) return [];
    block.isClosed = true;
    const { type, start, written } = block;
    if (type === 'text' || type === '') return [];
    // A tool without input streams none; some servers send all of it in the first event.
    if (type === 'tool_use') return written === '' ? this.#write(block, JSON.stringify(start['input'] ?? {})) : [];
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

  /** What a text cites: pages as OpenAI's clients read them, with where the text stands, and all as the vendor wrote it. */
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

/** Citations of documents that the caller sent. Source: https://platform.claude.com/docs/en/build-with-claude/citations */
const DOCUMENT_PLACES: ReadonlySet<unknown> = new Set([
  ...['char_location', 'page_location', 'content_block_location', 'search_result_location'],
]);

/** A block of thinking, as the vendor wants it back; undefined without anything to check it by. */
function thinkingDetail(block: Block): ReasoningDetail | undefined {
  const field = block.type === 'redacted_thinking' ? 'data' : 'signature';
  const mark = readString(block[field]);
  if (mark === undefined) return undefined;
  return field === 'data'
    ? { kind: 'encrypted', data: mark, format: 'anthropic' }
    : { kind: 'text', text: String(block['thinking']), signature: mark, format: 'anthropic' };
}

/** A block of the vendor's own tools as it would stand in a complete message. */
function completeBlock({ type, start, written }: BlockState): JsonObject {
  if (written === '') return start;
  return type === 'compaction'
    ? { ...start, content: written }
    : { ...start, input: parseJson(written) ?? start['input'] };
}

/** Decodes the Messages API's events, which differ by the `type` in their data; `isNative` as for {@link anthropicResponse}. */
export function anthropicStream(call: CodecCall, isNative = false): StreamDecoder {
  return new EventReader(call, isNative);
}

class EventReader implements StreamDecoder {
  readonly #call: CodecCall;
  readonly #isNative: boolean;
  readonly #blocks: BlockReader;
  #head: ChunkHead;
  /** The id of the message that has begun. */
  #started: string | undefined;
  #usage: JsonObject = {};
  #finish: FinishReason | undefined;
  #isStopped = false;
  /** Whether it was refused before anything was written. */
  #isRefused = false;

  constructor(call: CodecCall, isNative: boolean) {
    this.#call = call;
    this.#isNative = isNative;
    this.#blocks = new BlockReader(call.id);
    this.#head = chunkHead(call);
  }

  push({ event, data: text }: SseEvent): readonly ChatChunk[] {
    if (this.#isStopped || text.trim() === '') return [];
    const data = parseJson(text);
    if (!isObject(data)) throw failure('The provider sent an event that is not JSON.');
    const type = readString(data['type']) ?? event ?? '';
    // Nothing may follow a finish reason but the counts.
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
      // Some proxies repeat the first event; one that begins anew in the middle cannot be taken back.
      if (id === this.#started && !this.#blocks.hasBegun) return [];
      throw failure('The provider began a second answer in one stream.');
    }
    this.#started = id;
    this.#head = { ...this.#head, id, model: readString(message['model']) ?? this.#head.model };
    // How much it writes is not known yet, unless it is there already.
    const begun = readObject(message['usage']);
    this.#count(readString(message['stop_reason']) === undefined ? { ...begun, output_tokens: null } : begun);
    // A call made by the vendor's own code runner comes complete, in the first event.
    const complete = readArray(message['content']).flatMap((block, index) => [
      ...this.#blocks.start(index, readObject(block)),
      ...this.#blocks.close(index),
    ]);
    const opening: ChatDelta = { role: 'assistant', content: '', refusal: null };
    return [...this.#emit([opening, ...complete]), ...this.#end(message, message)];
  }

  /** Opens the message of a server that did not. */
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
    const refusal = refusalText(reason, delta['stop_details']);
    const chunk = deltaChunk(this.#head, {}, { finish: end.finish_reason });
    const last = { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, ...end })) };
    return [...this.#emit(refusal === null ? [] : [{ refusal }]), { ...last, ...contextOf(event) }];
  }

  /** Later counts replace earlier ones (they are cumulative), unless they are missing or null; none falls. */
  #count(usage: unknown): void {
    const counts = Object.entries(readObject(usage)).filter(
      ([name, value]) => value !== null && value !== undefined && !isLess(value, this.#usage[name]),
    );
    this.#usage = { ...this.#usage, ...Object.fromEntries(counts) };
  }
}

function isLess(value: unknown, before: unknown): boolean {
  return typeof value === 'number' && typeof before === 'number' && value < before;
}
