import type {
  ChatChunk,
  ChatDelta,
  ChunkChoice,
  DialectContext,
  DialectStream,
  FinishReason,
  GatewayError,
  JsonObject,
  NativeFinish,
  ReasoningDetail,
  ToolCallDelta,
  Usage,
} from '../../../core/index.ts';
import { type BlockQueue, createBlockQueue } from './block-queue.ts';
import { stopOf, usageOf } from './endings.ts';
import { messagesError } from './errors.ts';
import { signatureOf, thinkingBlock } from './reasoning.ts';
import type { MessagesRequest } from './types.ts';
import { callId, citationOf, messageId, opaqueBlocks, showsThinking } from './write.ts';

/** One event of a stream. */
export function frame(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** What is sent while a provider is silent. */
export const PING = frame({ type: 'ping' });

/** The frames of an error in a stream. */
export function failFrame(error: GatewayError, requestId: string): string {
  return frame({ ...messagesError(error, requestId).body });
}

/** Writes a stream of canonical chunks as events: one block after the other, the end held back until its counts are known. */
export function writeStream(context: DialectContext<MessagesRequest>): DialectStream {
  return new MessageStream(context);
}

class MessageStream implements DialectStream {
  readonly #context: DialectContext<MessagesRequest>;
  readonly #blocks: BlockQueue = createBlockQueue(frame);
  readonly #showsThinking: boolean;
  #isStarted = false;
  /** Counts blocks, for their keys. */
  #begun = 0;
  /** The text of the block that is open, for what is cited of it. */
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
    const stop = stopOf({
      finishReason: this.#finishReason,
      finish: this.#finish,
      hasCalls: this.#hasCalls,
      isRefused: this.#isRefused,
    });
    const usage = usageOf(this.#usage, this.#context.estimatedInputTokens);
    return [
      this.#start(this.#context.request.model),
      this.#blocks.end(),
      frame({ type: 'message_delta', delta: stop, usage }),
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
      ...{ id: messageId(this.#context), type: 'message', role: 'assistant', model, content: [] },
      ...{ stop_reason: null, stop_sequence: null },
      usage: usageOf(undefined, this.#context.estimatedInputTokens),
    };
    return frame({ type: 'message_start', message });
  }

  #write({ delta, finish_reason: reason, finish }: ChunkChoice): string {
    if (reason !== null) this.#finishReason ??= reason;
    if (finish) this.#finish = { ...this.#finish, ...finish };
    return [
      this.#writeReasoning(delta),
      this.#writeText(delta.content),
      ...(delta.annotations ?? []).map((annotation) => this.#cite(annotation)),
      this.#writeRefusal(delta.refusal),
      ...opaqueBlocks(delta).map((block) => this.#writeWhole({ ...block })),
      ...(delta.tool_calls ?? []).map((call) => this.#writeCall(call)),
    ].join('');
  }

  #begin(kind: string, start: JsonObject): string {
    this.#text = '';
    this.#begun += 1;
    return this.#blocks.begin(`${kind}:${this.#begun}`, start);
  }

  /** The key of the open block, when it is of this kind. */
  #open(kind: string): string | undefined {
    const { open } = this.#blocks;
    return open?.startsWith(`${kind}:`) ? open : undefined;
  }

  #extend(kind: string, start: JsonObject, delta: JsonObject): string {
    const begun = this.#open(kind) === undefined ? this.#begin(kind, start) : '';
    return begun + this.#blocks.extend(this.#open(kind) ?? '', delta);
  }

  #writeWhole(block: JsonObject): string {
    const begun = this.#begin('whole', block);
    return begun + this.#blocks.finish(`whole:${this.#begun}`);
  }

  #writeReasoning({ reasoning_content: text, reasoning_details: details = [] }: ChatDelta): string {
    const shown = text && this.#showsThinking ? this.#think(text) : '';
    return shown + details.map((detail) => this.#signThinking(detail)).join('');
  }

  #think(thinking: string): string {
    return this.#extend(
      'thinking',
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking },
    );
  }

  /** A piece of reasoning is whole: it signs the block that shows it, or is a block of its own. */
  #signThinking(detail: ReasoningDetail): string {
    const isOwn = detail.format === 'anthropic';
    if (!this.#showsThinking && !isOwn) return '';
    const { seal } = this.#context;
    const open = this.#open('thinking');
    const block = thinkingBlock(detail, seal);
    if (open === undefined && block.type === 'redacted_thinking') return this.#writeWhole({ ...block });
    if (open !== undefined && isOwn && block.type === 'redacted_thinking')
      return this.#blocks.finish(open) + this.#writeWhole({ ...block });
    const signature = signatureOf(detail, seal);
    if (open === undefined && signature === '' && (detail.text ?? '') === '') return '';
    const text = open === undefined && this.#showsThinking ? (detail.text ?? '') : '';
    const begun = open === undefined ? this.#begin('thinking', { type: 'thinking', thinking: '', signature: '' }) : '';
    const key = this.#open('thinking') ?? '';
    return [
      begun,
      text === '' ? '' : this.#blocks.extend(key, { type: 'thinking_delta', thinking: text }),
      signature === '' ? '' : this.#blocks.extend(key, { type: 'signature_delta', signature }),
      this.#blocks.finish(key),
    ].join('');
  }

  #writeText(text: string | null | undefined): string {
    if (!text) return '';
    const written = this.#extend('text', { type: 'text', text: '' }, { type: 'text_delta', text });
    this.#text += text;
    return written;
  }

  #cite(annotation: unknown): string {
    const key = this.#open('text');
    const citation = citationOf(annotation, this.#text);
    return key && citation ? this.#blocks.extend(key, { type: 'citations_delta', citation }) : '';
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
      const known = callId(id ?? `toolu_${this.#context.id}_${index}`);
      begun = this.#blocks.begin(key, { type: 'tool_use', id: known, name: called?.name ?? '', input: {} });
    }
    const text = called?.arguments ?? '';
    if (text === '') return begun;
    return begun + this.#blocks.extend(key, { type: 'input_json_delta', partial_json: text }, text);
  }
}
