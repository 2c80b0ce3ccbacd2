/** Where a {@link Bag} keeps it; -1 while it is in none. A field of its class, written by the bag alone. */
export interface BagItem {
  slot: number;
}

/**
 * Things that come and go with every request, in no order. A `Set` leaves its table behind every few changes, and a table that
 * grew old keeps the next one alive with whatever was in it then: of what a call allocates, twice as much lived until
 * the next full collection (docs/performance.md).
 */
export class Bag<T extends BagItem> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Puts it in; nothing happens when it is in already. */
  add(item: T): void {
    if (item.slot >= 0) return;
    item.slot = this.#items.length;
    this.#items.push(item);
  }

  /** Takes it out, when it is in. */
  delete(item: T): void {
    if (item.slot < 0) return;
    const last = this.#items.pop();
    if (last && last !== item) {
      last.slot = item.slot;
      this.#items[item.slot] = last;
    }
    item.slot = -1;
  }

  /** What is in it now; it may change meanwhile. */
  all(): readonly T[] {
    return [...this.#items];
  }
}
