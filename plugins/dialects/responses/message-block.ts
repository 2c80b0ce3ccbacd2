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

type Part = TextPart | RefusalPart;

/** An item `message` of the assistant: its text, and a refusal. `phase` is what the model said it is for. */
export function createMessageBlock(setting: BlockSetting, phase: string | undefined): MessageBlock {
  return new Message(setting, phase);
}

class Message implements MessageBlock {
  readonly kind = 'message';
  readonly #setting: BlockSetting;
  readonly #phase: string | undefined;
  readonly #parts: Part[] = [];
  /** What came before the item was started. */
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
      const told = logprobs.flatMap(logprobOf);
      part.logprobs.push(...told);
      if (delta !== '') this.#emit('response.output_text.delta', { delta, logprobs: told });
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

  /** Sends an event of the part that is open. */
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
