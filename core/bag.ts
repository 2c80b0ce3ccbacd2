/** Where a {@link Bag} keeps it; -1 while it is in none. A field of its class, written by the bag alone. */
export interface BagItem {
  slot: number;
}

/**
 * Things that come and go with every request, in no order. A `Set` copies its table every few changes, and the copies that
 * grew old keep what left long ago, and all that hangs on it, until the next full collection: with six sets' worth of that,
 * a tenth of the gateway's time went to the garbage collector.
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
