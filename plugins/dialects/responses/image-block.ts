import { type JsonObject, readObject, readString } from '../../../core/index.ts';
import type { Block, BlockSetting } from './blocks.ts';

const DATA = /^data:[^,]*;base64,/;

/** An item `image_generation_call`: an image that the model made, whole. */
export function createImageBlock({ emit, itemId }: BlockSetting, image: JsonObject): Block {
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
