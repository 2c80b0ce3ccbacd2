import { setImmediate } from 'node:timers/promises';

/** Maximum time in milliseconds that a piece of long work blocks the event loop. */
export const PIECE_MS = 10;

/**
 * Event loop turns for long work: one piece per turn, whoever requested it. Five concurrent reports therefore delay
 * other work no more than one does.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves in a loop turn without any other piece. */
  next(): Promise<unknown> {
    this.#last = this.#last.then(() => setImmediate());
    return this.#last;
  }
}
