/** Counts work that goes on beside its request. */
export class Pending {
  #count = 0;
  #waiting: (() => void)[] = [];

  /** Counts a promise until it settles, however it does. */
  track(work: Promise<unknown>): void {
    this.#count += 1;
    const done = (): void => {
      this.#count -= 1;
      if (this.#count > 0) return;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resume of waiting) resume();
    };
    work.then(done, done);
  }

  /** Resolves when nothing is going on. */
  idle(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
