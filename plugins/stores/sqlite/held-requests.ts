/** Entry of the table of {@link HeldRequests}; empty after its request has ended. */
interface HeldEntry<T> {
  row: T | undefined;
}

/** Minimum number of additions before the table is replaced. */
const REPLACE_AFTER = 512;

/**
 * Held requests by their keys. Entries are never deleted from the table: V8 retains a table with many deletions, and
 * its contents, until a full collection. An ended request empties its entry, and a new table takes over the entries
 * that are not empty.
 */
export class HeldRequests<T> {
  readonly #most: number;
  #places = new Map<string, HeldEntry<T>>();
  #size = 0;

  /** `most`: maximum number of requests; beyond it, all are dropped. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of requests. */
  get size(): number {
    return this.#size;
  }

  get(key: string): T | undefined {
    return this.#places.get(key)?.row;
  }

  set(key: string, row: T): void {
    const known = this.#places.get(key);
    if (known) {
      if (known.row === undefined) this.#size += 1;
      known.row = row;
      return;
    }
    if (this.#size >= this.#most) this.clear();
    else if (this.#places.size >= Math.max(REPLACE_AFTER, 2 * this.#size)) this.#replace();
    this.#places.set(key, { row });
    this.#size += 1;
  }

  delete(key: string): void {
    const place = this.#places.get(key);
    if (place?.row === undefined) return;
    place.row = undefined;
    this.#size -= 1;
  }

  clear(): void {
    this.#places = new Map();
    this.#size = 0;
  }

  #replace(): void {
    const places = new Map<string, HeldEntry<T>>();
    for (const [key, place] of this.#places) if (place.row !== undefined) places.set(key, place);
    this.#places = places;
  }
}
