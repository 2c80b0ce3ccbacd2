import {
  type ChatChunk,
  type ChatDelta,
  type ChunkChoice,
  type DialectContext,
  type DialectStream,
  type FinishReason,
  GatewayError,
  type JsonObject,
  type NativeFinish,
  type ReasoningDetail,
  type ToolCallDelta,
  type Usage,
} from '../../../contract/index.ts';
import { transcriptOf } from '../kit/index.ts';
import { messagesError } from './errors.ts';
import { serverToolBlocks } from './servers.ts';
import { writeFinish } from './tables.ts';
import { signatureOf, writeThinking } from './thinking.ts';
import type { MessagesRequest } from './types.ts';
import { writeUsage } from './usage.ts';
import {
  JsonScan,
  messageId,
  opaqueBlocks,
  reportOmitted,
  showsThinking,
  writeCallId,
  writeCitation,
} from './write-response.ts';

function frame(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Keep-alive event. */
export const PING = frame({ type: 'ping' });

/** Frames of an error in a stream. */
export function failFrame(error: GatewayError, requestId: string): string {
  return frame({ ...messagesError(error, requestId).body });
}

/** Writes a stream of canonical chunks as events, one block after the other. The end waits for the usage. */
export function writeStream(context: DialectContext<MessagesRequest>): DialectStream {
  return new MessageStream(context);
}

class MessageStream implements DialectStream {
  readonly #context: DialectContext<MessagesRequest>;
  readonly #blocks = new BlockQueue();
  readonly #showsThinking: boolean;
  #isStarted = false;
  /** Number of blocks so far, for their keys. */
  #begun = 0;
  /** Text so far, which citations give their place in. */
  #text = '';
  #hasCalls = false;
  #isRefused = false;
  #finishReason: FinishReason | undefined;
  #finish: NativeFinish | undefined;
  #usage: Usage | undefined;

  constructor(context: DialectContext<MessagesRequest>) {
    this.#context = context;
    this.#showsThinking = showsThinking(context);
  }

  push(chunk: ChatChunk): string {
    if (chunk.usage) this.#usage = chunk.usage;
    const choice = chunk.choices.find(({ index }) => index === 0);
    return this.#start(chunk.model) + (choice ? this.#write(choice) : '');
  }

  end(): string {
    const delta = writeFinish({
      finishReason: this.#finishReason,
      finish: this.#finish,
      hasCalls: this.#hasCalls,
      isRefused: this.#isRefused,
    });
    const usage = writeUsage(this.#usage, this.#context.estimatedInputTokens);
    return [
      this.#start(this.#context.request.model),
      this.#blocks.end(),
      frame({ type: 'message_delta', delta, usage }),
      frame({ type: 'message_stop' }),
    ].join('');
  }

  fail(error: GatewayError, requestId: string): string {
    return failFrame(error, requestId);
  }

  #start(model: string): string {
    if (this.#isStarted) return '';
    this.#isStarted = true;
    const message = {
      id: messageId(this.#context),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeUsage(undefined, this.#context.estimatedInputTokens),
    };
    return frame({ type: 'message_start', message });
  }

  #write({ delta, finish_reason: reason, finish }: ChunkChoice): string {
    if (reason !== null) this.#finishReason ??= reason;
    if (finish) this.#finish = { ...this.#finish, ...finish };
    reportOmitted(delta, this.#context);
    return [
      this.#writeReasoning(delta),
      this.#writeText(delta.content || transcriptOf(delta)),
      ...(delta.annotations ?? []).map((annotation) => this.#cite(annotation)),
      this.#writeRefusal(delta.refusal),
      ...[...serverToolBlocks(delta), ...opaqueBlocks(delta)].map((block) => this.#writeComplete({ ...block })),
      ...(delta.tool_calls ?? []).map((call) => this.#writeCall(call)),
    ].join('');
  }

  #begin(kind: string, start: JsonObject): string {
    this.#begun += 1;
    return this.#blocks.begin(`${kind}:${this.#begun}`, start);
  }

  /** Key of the open block if it has this kind. */
  #open(kind: string): string | undefined {
    const { open } = this.#blocks;
    return open?.startsWith(`${kind}:`) ? open : undefined;
  }

  #extend(kind: string, start: JsonObject, ...deltas: readonly JsonObject[]): string {
    const begun = this.#open(kind) === undefined ? this.#begin(kind, start) : '';
    const key = this.#open(kind) ?? '';
    return begun + deltas.map((delta) => this.#blocks.extend(key, delta)).join('');
  }

  #writeComplete(block: JsonObject): string {
    const begun = this.#begin('complete', block);
    return begun + this.#blocks.finish(`complete:${this.#begun}`);
  }

  #writeReasoning({ reasoning_content: text, reasoning_details: details = [] }: ChatDelta): string {
    const shown = text && this.#showsThinking ? this.#writeThinking({ type: 'thinking_delta', thinking: text }) : '';
    return shown + details.map((detail) => this.#signThinking(detail)).join('');
  }

  #writeThinking(...deltas: readonly JsonObject[]): string {
    return this.#extend('thinking', { type: 'thinking', thinking: '', signature: '' }, ...deltas);
  }

  /** Handles a complete reasoning detail: it signs its visible block, or becomes a block of its own. */
  #signThinking(detail: ReasoningDetail): string {
    const isOwn = detail.format === 'anthropic';
    if (!this.#showsThinking && !isOwn) return '';
    const open = this.#open('thinking');
    const block = writeThinking(detail, this.#context.seal);
    if (block.type === 'redacted_thinking' && (open === undefined || isOwn))
      return (open === undefined ? '' : this.#blocks.finish(open)) + this.#writeComplete({ ...block });
    const signature = signatureOf(detail, this.#context.seal);
    const text = open === undefined ? (detail.text ?? '') : '';
    if (open === undefined && signature === '' && text === '') return '';
    const written = this.#writeThinking(
      ...(text !== '' && this.#showsThinking ? [{ type: 'thinking_delta', thinking: text }] : []),
      ...(signature === '' ? [] : [{ type: 'signature_delta', signature }]),
    );
    return written + this.#blocks.finish(this.#open('thinking') ?? '');
  }

  #writeText(text: string | null | undefined): string {
    if (!text) return '';
    const written = this.#extend('text', { type: 'text', text: '' }, { type: 'text_delta', text });
    this.#text += text;
    return written;
  }

  /** Some vendors cite at the end, when a call has closed the block of text: an empty one holds the citation then. */
  #cite(annotation: unknown): string {
    const citation = writeCitation(annotation, this.#text, this.#context);
    return citation ? this.#extend('text', { type: 'text', text: '' }, { type: 'citations_delta', citation }) : '';
  }

  #writeRefusal(refusal: string | null | undefined): string {
    if (!refusal) return '';
    this.#isRefused = true;
    return this.#writeText(refusal);
  }

  #writeCall({ index, id, function: called }: ToolCallDelta): string {
    const key = `call ${index}`;
    let begun = '';
    if (!this.#blocks.has(key)) {
      this.#hasCalls = true;
      const known = writeCallId(id ?? `toolu_${this.#context.id}_${index}`);
      begun = this.#blocks.begin(key, { type: 'tool_use', id: known, name: called?.name ?? '', input: {} });
    }
    const text = called?.arguments ?? '';
    if (text === '') return begun;
    return begun + this.#blocks.extend(key, { type: 'input_json_delta', partial_json: text }, text);
  }
}

/** Limits of waiting blocks, against providers that start calls without end. */
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

interface Waiting {
  readonly key: string;
  readonly start: JsonObject;
  readonly deltas: JsonObject[];
  /** Tracks the arguments of a call, which has ended when they are complete. */
  readonly scan: JsonScan | undefined;
  isFinished: boolean;
}

/** Writes content blocks one after the other, each with its own index. */
class BlockQueue {
  readonly #blocks: Waiting[] = [];
  readonly #known = new Map<string, Waiting>();
  #index = 0;
  #isStarted = false;
  #bytes = 0;

  /**
   * Starts a block; `key` identifies it later. An open block other than a call ends. An incomplete call stays ahead
   * in the queue.
   */
  begin(key: string, start: JsonObject): string {
    if (this.#blocks.length >= MAX_WAITING) throw tooMuch(`over ${MAX_WAITING} calls at the same time`);
    const isCall = start['type'] === 'tool_use';
    const last = this.#blocks.at(-1);
    if (last && !last.scan) last.isFinished = true;
    const block = { key, start, deltas: [], scan: isCall ? new JsonScan() : undefined, isFinished: false };
    this.#blocks.push(block);
    this.#known.set(key, block);
    return this.#advance();
  }

  has(key: string): boolean {
    return this.#known.has(key);
  }

  /** Adds to an open block; additions to a finished block are dropped. `text` belongs to a call's arguments. */
  extend(key: string, delta: JsonObject, text = ''): string {
    const block = this.#known.get(key);
    if (!block || block.isFinished) return '';
    block.scan?.push(text);
    if (block === this.#blocks[0] && this.#isStarted) return this.#writeDelta(delta) + this.#advance();
    block.deltas.push(delta);
    this.#bytes += sizeOf([delta]);
    if (this.#bytes > MAX_WAITING_BYTES) throw tooMuch(`over ${MAX_WAITING_BYTES} bytes of calls at the same time`);
    return this.#advance();
  }

  /** Ends a block, except for a call, which may continue. */
  finish(key: string): string {
    const block = this.#known.get(key);
    if (!block || block.scan) return '';
    block.isFinished = true;
    return this.#advance();
  }

  /** Ends all blocks. */
  end(): string {
    let written = '';
    while (this.#blocks.length > 0) written += this.#stopFirst();
    return written;
  }

  /** Key of the most recently started block, unless it is finished. */
  get open(): string | undefined {
    const last = this.#blocks.at(-1);
    return last && !last.isFinished ? last.key : undefined;
  }

  #writeDelta(delta: JsonObject): string {
    return frame({ type: 'content_block_delta', index: this.#index, delta });
  }

  #startFirst(): string {
    const [first] = this.#blocks;
    if (!first || this.#isStarted) return '';
    this.#isStarted = true;
    this.#bytes = Math.max(this.#bytes - sizeOf(first.deltas), 0);
    const start = frame({ type: 'content_block_start', index: this.#index, content_block: first.start });
    return [start, ...first.deltas.splice(0).map((delta) => this.#writeDelta(delta))].join('');
  }

  #stopFirst(): string {
    const written = this.#startFirst() + frame({ type: 'content_block_stop', index: this.#index });
    const first = this.#blocks.shift();
    if (first) first.isFinished = true;
    this.#index += 1;
    this.#isStarted = false;
    return written;
  }

  /** Writes as much as possible. A block ends when it is finished; a complete call ends when another block follows. */
  #advance(): string {
    let written = this.#startFirst();
    for (let [first] = this.#blocks; first; [first] = this.#blocks) {
      const isFollowed = this.#blocks.length > 1;
      if (!first.isFinished && !(isFollowed && (first.scan === undefined || first.scan.isComplete))) break;
      written += this.#stopFirst() + this.#startFirst();
    }
    return written;
  }
}

function sizeOf(deltas: readonly JsonObject[]): number {
  return deltas.reduce((sum, delta) => sum + Buffer.byteLength(JSON.stringify(delta)), 0);
}

function tooMuch(what: string): GatewayError {
  return new GatewayError('provider_invalid_response', `The provider sent ${what} in one response.`);
}
