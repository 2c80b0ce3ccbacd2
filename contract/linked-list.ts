/** An item of a {@link LinkedList}. Only the list writes these fields. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
  isLinked: boolean;
}

/**
 * Work in flight, the oldest first. In place of a Set: V8 replaces the table of a Set after some deletions and links the old one
 * to the new one. Once an old table is in old space it keeps all that passed through the Set until a full collection.
 */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined = undefined;
  size = 0;
  #last: T | undefined = undefined;

  /** Adds an item at the end; one that is in a list already must leave it before. */
  add(item: T): void {
    if (item.isLinked) throw new TypeError('the item is in a list already');
    item.isLinked = true;
    item.previous = this.#last;
    if (this.#last) this.#last.next = item;
    else this.first = item;
    this.#last = item;
    this.size += 1;
  }

  /** Removes an item; returns false for one that has left already. */
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

  /** All items, as they are now: any of them may leave while the copy is read. */
  toArray(): T[] {
    const items: T[] = [];
    for (let item = this.first; item; item = item.next) items.push(item);
    return items;
  }
}
