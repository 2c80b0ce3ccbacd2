import { setImmediate } from 'node:timers/promises';

/** How long a piece of long work keeps the event loop before it gives way. */
export const PIECE_MS = 10;

/**
 * Turns of the event loop for work that would keep it: one piece in each turn, whoever asked for it. So five reports at once delay
 * others as little as one does.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves in a turn of the loop that no other piece has. */
  next(): Promise<unknown> {
    this.#last = this.#last.then(() => setImmediate());
    return this.#last;
  }
}
