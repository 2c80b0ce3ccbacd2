/** Counts work that goes on beside its request. */
export class Pending {
  readonly #counts = new Map<string, number>();
  #waiting: (() => void)[] = [];

  /** Counts a promise until it settles, however it does; `what` it is, for who waits in vain. */
  track(work: Promise<unknown>, what: string): void {
    const end = this.begin(what);
    work.then(end, end);
  }

  /** Counts work until the function that it returns is called, once. */
  begin(what: string): () => void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
    return () => this.#end(what);
  }

  #end(what: string): void {
    const left = (this.#counts.get(what) ?? 1) - 1;
    if (left > 0) this.#counts.set(what, left);
    else this.#counts.delete(what);
    if (this.#counts.size > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  /** Resolves when nothing is going on, at the latest after `withinMs`, with what still is. */
  async idle(withinMs: number): Promise<readonly string[]> {
    if (this.#counts.size === 0) return [];
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, withinMs);
      this.#waiting.push(() => {
        clearTimeout(late);
        resolve();
      });
    });
    return [...this.#counts.keys()];
  }
}
