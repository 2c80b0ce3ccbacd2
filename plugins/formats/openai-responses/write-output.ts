import {
  type ChatDelta,
  type FinishReason,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ServerToolCall,
  type ToolCallDelta,
} from '../../../contract/index.ts';
import { transcriptOf } from '../kit/index.ts';
import type { Item } from './types.ts';
import { type Block, type BlockSetting, createToolBlock, type ToolBlock } from './write-tools.ts';

interface MessageBlock extends Block {
  readonly kind: 'message';
  text(delta: string, logprobs: readonly unknown[]): void;
  refusal(delta: string): void;
  annotations(list: readonly JsonObject[]): void;
}

interface TextPart {
  readonly type: 'output_text';
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: unknown[];
}

interface RefusalPart {
  readonly type: 'refusal';
  refusal: string;
}

type Part = TextPart | RefusalPart;

/** Creates an assistant `message` item: its text, and a refusal. `phase` is the purpose that the model gave. */
function createMessageBlock(setting: BlockSetting, phase: string | undefined): MessageBlock {
  return new Message(setting, phase);
}

class Message implements MessageBlock {
  readonly kind = 'message';
  readonly #setting: BlockSetting;
  readonly #phase: string | undefined;
  readonly #parts: Part[] = [];
  /** Output that arrived before the item was started. */
  readonly #waiting: (() => void)[] = [];
  #at: number | undefined;

  constructor(setting: BlockSetting, phase: string | undefined) {
    this.#setting = setting;
    this.#phase = phase;
  }

  text(delta: string, logprobs: readonly unknown[]): void {
    this.#later(() => {
      const part = this.#textPart();
      part.text += delta;
      const reported = logprobs.flatMap(logprobOf);
      part.logprobs.push(...reported);
      if (delta !== '') this.#emit('response.output_text.delta', { delta, logprobs: reported });
    });
  }

  refusal(delta: string): void {
    this.#later(() => {
      this.#refusalPart().refusal += delta;
      this.#emit('response.refusal.delta', { delta });
    });
  }

  annotations(list: readonly JsonObject[]): void {
    this.#later(() => {
      for (const given of list) {
        const annotation = annotationOf(given);
        if (!annotation) this.#setting.omit?.('annotations');
        if (!annotation) continue;
        const { annotations } = this.#textPart();
        this.#emit('response.output_text.annotation.added', { annotation_index: annotations.length, annotation });
        annotations.push(annotation);
      }
    });
  }

  start(index: number): void {
    this.#at = index;
    const item = this.item('in_progress', index);
    this.#setting.emit('response.output_item.added', { output_index: index, item });
    for (const act of this.#waiting.splice(0)) act();
  }

  isWhole(): boolean {
    return true;
  }

  finish(isCut: boolean): Item {
    this.#closePart();
    const index = this.#at ?? 0;
    const item = this.item(isCut ? 'incomplete' : 'completed', index);
    this.#setting.emit('response.output_item.done', { output_index: index, item });
    return item;
  }

  item(status: 'in_progress' | 'completed' | 'incomplete', index: number): Item {
    return {
      id: this.#setting.itemId('msg', index),
      type: 'message',
      status,
      role: 'assistant',
      ...(this.#phase !== undefined && { phase: this.#phase }),
      content: [...this.#parts],
    };
  }

  #later(act: () => void): void {
    if (this.#at === undefined) this.#waiting.push(act);
    else act();
  }

  /** Sends an event of the open part. */
  #emit(type: string, fields: Readonly<Record<string, unknown>>): void {
    const at = this.#at ?? 0;
    const place = { item_id: this.#setting.itemId('msg', at), output_index: at, content_index: this.#parts.length - 1 };
    this.#setting.emit(type, { ...place, ...fields });
  }

  #textPart(): TextPart {
    const last = this.#parts.at(-1);
    return last?.type === 'output_text'
      ? last
      : this.#open<TextPart>({ type: 'output_text', text: '', annotations: [], logprobs: [] });
  }

  #refusalPart(): RefusalPart {
    const last = this.#parts.at(-1);
    return last?.type === 'refusal' ? last : this.#open<RefusalPart>({ type: 'refusal', refusal: '' });
  }

  #open<T extends Part>(part: T): T {
    this.#closePart();
    this.#parts.push(part);
    this.#emit('response.content_part.added', { part: structuredClone(part) });
    return part;
  }

  #closePart(): void {
    const part = this.#parts.at(-1);
    if (!part) return;
    if (part.type === 'refusal') this.#emit('response.refusal.done', { refusal: part.refusal });
    else this.#emit('response.output_text.done', { text: part.text, logprobs: part.logprobs });
    this.#emit('response.content_part.done', { part });
  }
}

/** Converts a citation to this format: chat's form without the object around its fields. */
function annotationOf(given: JsonObject): JsonObject | undefined {
  const { type } = given;
  if (type !== 'url_citation' && type !== 'file_citation') return undefined;
  const inner = given[type];
  return isObject(inner) ? { type, ...inner } : given;
}

/** Log probability of a token; chat has the same fields. */
function logprobOf(given: unknown): readonly JsonObject[] {
  const { token, logprob, bytes, top_logprobs: top } = readObject(given);
  if (typeof token !== 'string' || typeof logprob !== 'number') return [];
  const others = readArray(top).flatMap((other) => logprobOf(other).map(({ top_logprobs: _, ...rest }) => rest));
  return [{ token, logprob, bytes: readArray(bytes), top_logprobs: others }];
}

/** Output of a response in progress: items in sequence, each closed before the next one opens. */
export interface Output {
  reasoning(text: string): void;
  details(list: readonly ReasoningDetail[]): void;
  /** Adds the delta of a choice, in the vendors' order. */
  delta(delta: ChatDelta, logprobs: unknown): void;
  /** Ends all items; a finish reason of a truncated response leaves the last one incomplete. */
  close(finish: FinishReason | null): void;
  /** Items so far; unfinished ones have the status `incomplete`. */
  items(): readonly Item[];
  readonly hasRefusal: boolean;
}

const CUTS: ReadonlySet<FinishReason | null> = new Set<FinishReason | null>(['length', 'content_filter']);

/** `phase` is the purpose that the model gave for its message. */
export function createOutput(setting: BlockSetting, phase?: string): Output {
  return new Blocks(setting, phase);
}

class Blocks implements Output {
  readonly #setting: BlockSetting;
  readonly #phase: string | undefined;
  readonly #blocks: Block[] = [];
  readonly #tools = new Map<number, ToolBlock>();
  readonly #ended: Item[] = [];
  /** Index of the open block; later ones wait until it is complete. */
  #open = 0;
  #last: ReasoningBlock | MessageBlock | undefined;
  hasRefusal = false;

  constructor(setting: BlockSetting, phase: string | undefined) {
    this.#setting = setting;
    this.#phase = phase;
  }

  reasoning(text: string): void {
    if (text !== '') this.#thought().text(text);
  }

  details(list: readonly ReasoningDetail[]): void {
    if (list.length > 0) this.#thought().details(list);
  }

  delta(delta: ChatDelta, logprobs: unknown): void {
    const { content, refusal, reasoning_content: text, reasoning_details: details, annotations, ...rest } = delta;
    if (text) this.reasoning(text);
    if (details) this.details(details);
    const words = content || transcriptOf(rest);
    if (words) this.#message().text(words, readArray(readObject(logprobs)['content']));
    if (refusal) {
      this.hasRefusal = true;
      this.#message().refusal(refusal);
    }
    if (annotations?.length) this.#message().annotations(annotations as readonly JsonObject[]);
    for (const call of rest.tool_calls ?? []) this.#tool(call);
    for (const call of rest.mcp_calls ?? []) this.#add(createServerCallBlock(this.#setting, call));
    if (readObject(rest['audio'])['data'] !== undefined) this.#setting.omit?.('audio');
    for (const image of readArray(rest['images']))
      if (isObject(image)) this.#add(createImageBlock(this.#setting, image));
  }

  close(finish: FinishReason | null): void {
    for (let block = this.#blocks[this.#open]; block; block = this.#blocks[this.#open]) {
      const mayBeCut = block.kind === 'tool' || this.#open === this.#blocks.length - 1;
      this.#end(block, CUTS.has(finish) && !this.hasRefusal && mayBeCut);
    }
  }

  items(): readonly Item[] {
    const rest = this.#blocks.slice(this.#open);
    return [...this.#ended, ...rest.map((block, at) => block.item('incomplete', this.#open + at))];
  }

  #add<T extends Block>(block: T): T {
    this.#blocks.push(block);
    this.#last = undefined;
    if (this.#blocks.length - 1 === this.#open) block.start(this.#open);
    else this.#advance();
    return block;
  }

  #end(block: Block, isCut: boolean): void {
    this.#ended.push(block.finish(isCut));
    this.#open += 1;
    this.#blocks[this.#open]?.start(this.#open);
  }

  #advance(): void {
    for (
      let block = this.#blocks[this.#open];
      block && this.#open < this.#blocks.length - 1 && block.isWhole();
      block = this.#blocks[this.#open]
    )
      this.#end(block, false);
  }

  #message(): MessageBlock {
    if (this.#last?.kind === 'message') return this.#last;
    const block = this.#add(createMessageBlock(this.#setting, this.#phase));
    this.#last = block;
    return block;
  }

  #thought(): ReasoningBlock {
    if (this.#last?.kind === 'reasoning' && !this.#last.isClosed) return this.#last;
    const block = this.#add(createReasoningBlock(this.#setting));
    this.#last = block;
    return block;
  }

  #tool({ index, id, function: called }: ToolCallDelta): void {
    const setting = this.#setting;
    const name = readString(called?.name);
    const known = this.#tools.get(index);
    const callId = id ?? setting.itemId('call', this.#blocks.length);
    const block = known ?? this.#add(createToolBlock(setting, callId, name ?? ''));
    this.#tools.set(index, block);
    if (known && name !== undefined) block.name(name);
    block.arguments(called?.arguments ?? '');
    if (this.#blocks.length - 1 > this.#open) this.#advance();
  }
}

const DATA = /^data:[^,]*;base64,/;

/** Creates an `image_generation_call` item: a complete image made by the model. */
function createImageBlock({ emit, itemId }: BlockSetting, image: JsonObject): Block {
  const url = readString(readObject(image['image_url'])['url']) ?? '';
  const result = url.replace(DATA, '');
  let at: number | undefined;
  const block: Block = {
    kind: 'image',
    start(index) {
      at = index;
      emit('response.output_item.added', {
        output_index: at,
        item: { ...block.item('in_progress', at), result: null },
      });
    },
    isWhole: () => true,
    finish() {
      const index = at ?? 0;
      const item = block.item('completed', index);
      emit('response.output_item.done', { output_index: index, item });
      return item;
    },
    item: (status, index) => ({ id: itemId('ig', index), type: 'image_generation_call', status, result }),
  };
  return block;
}

/** Creates an `mcp_call` item: a complete call of a server's tool. */
function createServerCallBlock({ emit, itemId }: BlockSetting, call: ServerToolCall): Block {
  const { server, name, arguments: args, output, is_error: isError = false } = call;
  let at = 0;
  const block: Block = {
    kind: 'mcp',
    start(index) {
      at = index;
      const begun = { ...block.item('in_progress', at), arguments: '', output: null, error: null };
      const place = { item_id: itemId('mcp', at), output_index: at };
      emit('response.output_item.added', { output_index: at, item: begun });
      emit('response.mcp_call.in_progress', place);
      emit('response.mcp_call_arguments.delta', { ...place, delta: args });
      emit('response.mcp_call_arguments.done', { ...place, arguments: args });
    },
    isWhole: () => true,
    finish() {
      const item = block.item('completed', at);
      emit(`response.mcp_call.${isError ? 'failed' : 'completed'}`, { item_id: itemId('mcp', at), output_index: at });
      emit('response.output_item.done', { output_index: at, item });
      return item;
    },
    item: (status, index) => ({
      id: itemId('mcp', index),
      type: 'mcp_call',
      approval_request_id: null,
      server_label: server,
      name,
      arguments: args,
      output: isError ? null : output,
      error: isError ? output : null,
      status: status === 'completed' && isError ? 'failed' : status,
    }),
  };
  return block;
}

interface ReasoningBlock extends Block {
  readonly kind: 'reasoning';
  text(delta: string): void;
  /** Adds the vendor's details at the end of the block, which accepts no more text. */
  details(list: readonly ReasoningDetail[]): void;
  readonly isClosed: boolean;
}

/** Creates a `reasoning` item with the model's thoughts as its summary. */
function createReasoningBlock({ emit, itemId, seal }: BlockSetting): ReasoningBlock {
  const all: ReasoningDetail[] = [];
  let text = '';
  let at: number | undefined;
  let isOpen = false;
  let isClosed = false;

  function write(delta: string): void {
    if (at === undefined || delta === '') return;
    const place = { item_id: itemId('rs', at), output_index: at, summary_index: 0 };
    if (!isOpen) emit('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } });
    isOpen = true;
    emit('response.reasoning_summary_text.delta', { ...place, delta });
  }

  const block: ReasoningBlock = {
    kind: 'reasoning',
    get isClosed() {
      return isClosed;
    },
    text(delta) {
      text += delta;
      write(delta);
    },
    details(list) {
      all.push(...list);
      isClosed = true;
      const reported = list.flatMap((detail) => detail.text ?? []).join('\n\n');
      // Most vendors already streamed the same text.
      if (text === '') block.text(reported);
    },
    start(index) {
      at = index;
      emit('response.output_item.added', { output_index: at, item: emptyItem(itemId('rs', at)) });
      write(text);
    },
    isWhole: () => true,
    finish(isCut) {
      const index = at ?? 0;
      const place = { item_id: itemId('rs', index), output_index: index, summary_index: 0 };
      if (isOpen) {
        emit('response.reasoning_summary_text.done', { ...place, text });
        emit('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } });
      }
      const item = block.item(isCut ? 'incomplete' : 'completed', index);
      emit('response.output_item.done', { output_index: index, item });
      return item;
    },
    item(_status, index) {
      const sealed = seal(all);
      return {
        ...emptyItem(itemId('rs', index)),
        summary: text === '' ? [] : [{ type: 'summary_text', text }],
        ...(sealed !== undefined && { encrypted_content: sealed }),
      };
    },
  };
  return block;
}

function emptyItem(id: string) {
  return { id, type: 'reasoning', summary: [] };
}
