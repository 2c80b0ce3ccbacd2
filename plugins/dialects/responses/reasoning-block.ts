import type { ReasoningDetail } from '../../../core/index.ts';
import type { Block, BlockSetting } from './blocks.ts';

export interface ReasoningBlock extends Block {
  readonly kind: 'reasoning';
  text(delta: string): void;
  /** What the maker says at the end of the block; it takes no more text. */
  details(list: readonly ReasoningDetail[]): void;
  readonly isClosed: boolean;
}

/** An item `reasoning`: what a model thought, as its summary. */
export function createReasoningBlock({ emit, itemId, seal }: BlockSetting): ReasoningBlock {
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
      const told = list.flatMap((detail) => detail.text ?? []).join('\n\n');
      // Most vendors streamed the same text already.
      if (text === '') block.text(told);
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
