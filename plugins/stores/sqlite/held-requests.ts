/** A place in the table of {@link HeldRequests}; empty once its request has ended. */
interface Place<T> {
  row: T | undefined;
}

/** Number of additions before the table is replaced, at least. */
const REPLACE_AFTER = 512;

/**
 * Requests that are held, by their keys. Nothing is deleted from the table: V8 keeps a table with many deletions, and what was in it,
 * until a full collection. A request that ends empties its place, and a new table takes over the places that are not empty.
 */
export class HeldRequests<T> {
  readonly #most: number;
  #places = new Map<string, Place<T>>();
  #size = 0;

  /** `most`: maximum requests; with more, all are forgotten. */
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
    const places = new Map<string, Place<T>>();
    for (const [key, place] of this.#places) if (place.row !== undefined) places.set(key, place);
    this.#places = places;
  }
}
