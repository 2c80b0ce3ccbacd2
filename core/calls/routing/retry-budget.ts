import type { RetryState } from '../../contract/routing.ts';

/** How many retries may run at once: a share of the live calls, and never fewer than the floor. */
const SHARE = 0.2;
const FLOOR = 3;

/** Bounds the retries of the whole process, so that a provider that fails does not get twice the calls. */
export class RetryBudget {
  #live = 0;
  #running = 0;
  #refused = 0;

  /** Counts a call as live until it has ended. */
  enter(ended: Promise<void>): void {
    this.#live += 1;
    void ended.then(() => {
      this.#live -= 1;
    });
  }

  /** Takes the place of one retry, to be released; false when too many run. */
  reserve(): boolean {
    if (this.#running < this.#allowed) this.#running += 1;
    else {
      this.#refused += 1;
      return false;
    }
    return true;
  }

  release(): void {
    this.#running -= 1;
  }

  get #allowed(): number {
    return Math.max(FLOOR, Math.floor(this.#live * SHARE));
  }

  get state(): RetryState {
    return { running: this.#running, allowed: this.#allowed, refused: this.#refused };
  }
}
