import { isObject, type JsonObject, readArray, readObject } from '../../../core/index.ts';
import type { Block, BlockSetting } from './blocks.ts';
import type { Item } from './types.ts';

export interface MessageBlock extends Block {
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

/** An item `message` of the assistant: its text, and a refusal. */
export function createMessageBlock({ emit, itemId }: BlockSetting, phase: string | undefined): MessageBlock {
  const parts: (TextPart | RefusalPart)[] = [];
  /** What came before the item was started. */
  const waiting: (() => void)[] = [];
  let at: number | undefined;

  const placeOf = (part: number) => ({ item_id: itemId('msg', at ?? 0), output_index: at ?? 0, content_index: part });
  const later = (act: () => void): void => void (at === undefined ? waiting.push(act) : act());

  function partOf<T extends 'output_text' | 'refusal'>(type: T): Extract<(typeof parts)[number], { type: T }> {
    const last = parts.at(-1);
    if (last?.type === type) return last as Extract<TextPart | RefusalPart, { type: T }>;
    if (last) closePart();
    const made = type === 'refusal' ? { type, refusal: '' } : { type, text: '', annotations: [], logprobs: [] };
    parts.push(made as TextPart | RefusalPart);
    emit('response.content_part.added', { ...placeOf(parts.length - 1), part: structuredClone(made) });
    return made as unknown as Extract<TextPart | RefusalPart, { type: T }>;
  }

  function closePart(): void {
    const part = parts.at(-1);
    if (!part) return;
    const place = placeOf(parts.length - 1);
    if (part.type === 'refusal') emit('response.refusal.done', { ...place, refusal: part.refusal });
    else emit('response.output_text.done', { ...place, text: part.text, logprobs: part.logprobs });
    emit('response.content_part.done', { ...place, part });
  }

  const block: MessageBlock = {
    kind: 'message',
    text: (delta, logprobs) =>
      later(() => {
        const part = partOf('output_text');
        part.text += delta;
        const told = logprobs.flatMap(logprobOf);
        part.logprobs.push(...told);
        if (delta !== '') emit('response.output_text.delta', { ...placeOf(parts.length - 1), delta, logprobs: told });
      }),
    refusal: (delta) =>
      later(() => {
        partOf('refusal').refusal += delta;
        emit('response.refusal.delta', { ...placeOf(parts.length - 1), delta });
      }),
    annotations: (list) =>
      later(() => {
        for (const given of list) {
          const annotation = annotationOf(given);
          if (!annotation) continue;
          const { annotations } = partOf('output_text');
          const fields = { ...placeOf(parts.length - 1), annotation_index: annotations.length, annotation };
          annotations.push(annotation);
          emit('response.output_text.annotation.added', fields);
        }
      }),
    start(index) {
      at = index;
      emit('response.output_item.added', { output_index: at, item: block.item('in_progress', at) });
      for (const act of waiting.splice(0)) act();
    },
    isWhole: () => true,
    finish(isCut) {
      closePart();
      const index = at ?? 0;
      const item = block.item(isCut ? 'incomplete' : 'completed', index);
      emit('response.output_item.done', { output_index: index, item });
      return item;
    },
    item: (status, index): Item => ({
      id: itemId('msg', index),
      type: 'message',
      status,
      role: 'assistant',
      ...(phase !== undefined && { phase }),
      content: [...parts],
    }),
  };
  return block;
}

/** A citation as this format has it: chat's without the object around its fields. */
function annotationOf(given: JsonObject): JsonObject | undefined {
  const { type } = given;
  if (type !== 'url_citation' && type !== 'file_citation') return undefined;
  const inner = given[type];
  return isObject(inner) ? { type, ...inner } : given;
}

/** One token's log probability; chat has the same fields. */
function logprobOf(given: unknown): readonly JsonObject[] {
  const { token, logprob, bytes, top_logprobs: top } = readObject(given);
  if (typeof token !== 'string' || typeof logprob !== 'number') return [];
  const others = readArray(top).flatMap((other) => logprobOf(other).map(({ top_logprobs: _, ...rest }) => rest));
  return [{ token, logprob, bytes: readArray(bytes), top_logprobs: others }];
}
