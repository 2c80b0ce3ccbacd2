import type { ChatChunk } from '../../contract/chat.ts';

/** Detects whether a transform changes the content of a stream. Delays and different chunk boundaries are not changes. */
export class StreamChanges {
  /** Pending part of each text, by its path in the choices. */
  readonly #held = new Map<string, string>();
  readonly #onChange: () => void;
  #isChanged = false;

  /** `onChange` is called once. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** True if some input is still pending. Otherwise an unchanged chunk need not be recorded. */
  get isHolding(): boolean {
    return this.#held.size > 0;
  }

  /** Records input, and the output of the transform for it. */
  note(came: readonly ChatChunk[], gone: readonly ChatChunk[]): void {
    if (this.#isChanged) return;
    eachText(came, (place, text) => this.#held.set(place, (this.#held.get(place) ?? '') + text));
    eachText(gone, (place, text) => {
      const held = this.#held.get(place) ?? '';
      if (!held.startsWith(text)) this.#change();
      else if (held.length > text.length) this.#held.set(place, held.slice(text.length));
      else this.#held.delete(place);
    });
  }

  /** Records the end of the output. */
  end(): void {
    if (this.#held.size > 0) this.#change();
  }

  #change(): void {
    if (this.#isChanged) return;
    this.#isChanged = true;
    this.#held.clear();
    this.#onChange();
  }
}

/** Visits all texts of chunks, at any depth of the choices. */
function eachText(chunks: readonly ChatChunk[], take: (place: string, text: string) => void): void {
  for (const { choices } of chunks) for (const { index, delta } of choices) walkTexts(delta, `${index}`, take);
}

function walkTexts(value: unknown, place: string, take: (place: string, text: string) => void): void {
  if (typeof value === 'string' && value !== '') take(place, value);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) walkTexts(member, `${place}.${indexOf(member) ?? name}`, take);
}

/** Returns the index of a tool call: a delta belongs to a call by its index, not by its position in the list. */
function indexOf(member: unknown): unknown {
  return typeof member === 'object' && member !== null && 'index' in member ? member.index : undefined;
}
