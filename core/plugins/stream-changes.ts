import type { ChatChunk } from '../../contract/chat.ts';

/** Notices that a transform changes what a stream says. What it only holds back for a while, or cuts in other pieces, it does not change. */
export class StreamChanges {
  /** Of each text that came and has not gone on, by its place in the choices. */
  readonly #held = new Map<string, string>();
  readonly #onChange: () => void;
  #isChanged = false;

  /** `onChange` is called once. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Whether some of what came has not gone on; while nothing has, a chunk that goes on as it came need not be noted. */
  get isHolding(): boolean {
    return this.#held.size > 0;
  }

  /** Notes what came, and what the transform let go on then. */
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

  /** Notes that nothing more goes on. */
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

/** All texts of chunks: what stands in the choices at any depth. */
function eachText(chunks: readonly ChatChunk[], take: (place: string, text: string) => void): void {
  for (const { choices } of chunks) for (const { index, delta } of choices) walkTexts(delta, `${index}`, take);
}

function walkTexts(value: unknown, place: string, take: (place: string, text: string) => void): void {
  if (typeof value === 'string' && value !== '') take(place, value);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) walkTexts(member, `${place}.${indexOf(member) ?? name}`, take);
}

/** Which call of a tool a delta goes on with does not depend on where it stands in its list. */
function indexOf(member: unknown): unknown {
  return typeof member === 'object' && member !== null && 'index' in member ? member.index : undefined;
}
