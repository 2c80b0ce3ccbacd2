import {
  type ChatDelta,
  type FinishReason,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCallDelta,
} from '../../../core/index.ts';
import type { Block, BlockSetting } from './blocks.ts';
import { createMessageBlock, type MessageBlock } from './message-block.ts';
import { createReasoningBlock, type ReasoningBlock } from './reasoning-block.ts';
import { createToolBlock, type ToolBlock } from './tool-block.ts';
import type { Item } from './types.ts';

/** The output of a response while it grows: items one after the other, each closed before the next one is opened. */
export interface Output {
  reasoning(text: string): void;
  details(list: readonly ReasoningDetail[]): void;
  /** The delta of a choice, in the order that vendors mean. */
  delta(delta: ChatDelta, logprobs: unknown): void;
  /** Ends all items; a reason that cut the response leaves the last one incomplete. */
  close(finish: FinishReason | null): void;
  /** The items so far; those that are not ended have the status `incomplete`. */
  items(): readonly Item[];
  readonly hasRefusal: boolean;
}

const CUTS: ReadonlySet<FinishReason | null> = new Set<FinishReason | null>(['length', 'content_filter']);

/** `phase` is what the model said its message is for. */
export function createOutput(setting: BlockSetting, phase?: string): Output {
  return new Blocks(setting, phase);
}

class Blocks implements Output {
  readonly #setting: BlockSetting;
  readonly #phase: string | undefined;
  readonly #blocks: Block[] = [];
  readonly #tools = new Map<number, ToolBlock>();
  readonly #ended: Item[] = [];
  /** The place of the block that is open; those after it wait until it is whole. */
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
    if (content) this.#message().text(content, readArray(readObject(logprobs)['content']));
    if (refusal) {
      this.hasRefusal = true;
      this.#message().refusal(refusal);
    }
    if (annotations?.length) this.#message().annotations(annotations as readonly JsonObject[]);
    for (const call of rest.tool_calls ?? []) this.#tool(call);
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

/** An item `image_generation_call`: an image that the model made, whole. */
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
