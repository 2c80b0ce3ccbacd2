/** Item of a {@link LinkedList}. Only the list writes these fields. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
  isLinked: boolean;
}

/**
 * Work in flight, oldest first. Used in place of a Set: V8 replaces the table of a Set after some deletions and links the old table
 * to the new one. An old table in old space retains all former members until a full collection.
 */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined = undefined;
  size = 0;
  #last: T | undefined = undefined;

  /** Adds an item at the end. Remove an item from its current list first. */
  add(item: T): void {
    if (item.isLinked) throw new TypeError('the item is in a list already');
    item.isLinked = true;
    item.previous = this.#last;
    if (this.#last) this.#last.next = item;
    else this.first = item;
    this.#last = item;
    this.size += 1;
  }

  /** Removes an item; returns false if it was already removed. */
  remove(item: T): boolean {
    if (!item.isLinked) return false;
    const { previous, next } = item;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    item.previous = undefined;
    item.next = undefined;
    item.isLinked = false;
    this.size -= 1;
    return true;
  }

  /** Returns a copy of all items, so that items may leave during iteration. */
  toArray(): T[] {
    const items: T[] = [];
    for (let item = this.first; item; item = item.next) items.push(item);
    return items;
  }
}
