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
import { createImageBlock } from './image-block.ts';
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
  const blocks: Block[] = [];
  const tools = new Map<number, ToolBlock>();
  const ended: Item[] = [];
  /** The place of the block that is open; those after it wait until it is whole. */
  let open = 0;
  let last: ReasoningBlock | MessageBlock | undefined;
  let hasRefusal = false;

  function add<T extends Block>(block: T): T {
    blocks.push(block);
    last = undefined;
    if (blocks.length - 1 === open) block.start(open);
    else advance();
    return block;
  }

  function end(block: Block, isCut: boolean): void {
    ended.push(block.finish(isCut));
    open += 1;
    blocks[open]?.start(open);
  }

  function advance(): void {
    for (let block = blocks[open]; block && open < blocks.length - 1 && block.isWhole(); block = blocks[open])
      end(block, false);
  }

  function message(): MessageBlock {
    if (last?.kind === 'message') return last;
    const block = add(createMessageBlock(setting, phase));
    last = block;
    return block;
  }

  function thought(): ReasoningBlock {
    if (last?.kind === 'reasoning' && !last.isClosed) return last;
    const block = add(createReasoningBlock(setting));
    last = block;
    return block;
  }

  function tool({ index, id, function: called }: ToolCallDelta): void {
    const name = readString(called?.name);
    const known = tools.get(index);
    const block = known ?? add(createToolBlock(setting, id ?? setting.itemId('call', blocks.length), name ?? ''));
    tools.set(index, block);
    if (known && name !== undefined) block.name(name);
    block.arguments(called?.arguments ?? '');
    if (blocks.length - 1 > open) advance();
  }

  const output: Output = {
    reasoning: (text) => void (text !== '' && thought().text(text)),
    details: (list) => void (list.length > 0 && thought().details(list)),
    delta(
      { content, refusal, reasoning_content: text, reasoning_details: details, annotations, tool_calls, ...rest },
      logprobs,
    ) {
      if (text) output.reasoning(text);
      if (details) output.details(details);
      if (content) message().text(content, readArray(readObject(logprobs)['content']));
      if (refusal) {
        hasRefusal = true;
        message().refusal(refusal);
      }
      if (annotations?.length) message().annotations(annotations as readonly JsonObject[]);
      for (const call of tool_calls ?? []) tool(call);
      for (const image of readArray(rest['images'])) if (isObject(image)) add(createImageBlock(setting, image));
    },
    close(finish) {
      for (let block = blocks[open]; block; block = blocks[open])
        end(block, CUTS.has(finish) && !hasRefusal && (block.kind === 'tool' || open === blocks.length - 1));
    },
    items: () => [...ended, ...blocks.slice(open).map((block, at) => block.item('incomplete', open + at))],
    get hasRefusal() {
      return hasRefusal;
    },
  };
  return output;
}
