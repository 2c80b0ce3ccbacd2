import { LRUCache } from 'lru-cache';

/** What the store said a moment ago. */
export interface FreshReads<T> {
  /** At once when it was read within the time, else as a promise: one read for all who ask meanwhile. */
  get(id: string): T | Promise<T>;
  /** Reads it anew next time; a read that is under way is not remembered. */
  forget(id: string): void;
}

/** Remembers reads for `freshMs`; by the clock that never jumps. A read that fails is not remembered. */
export function createFreshReads<T>(read: (id: string) => Promise<T>, freshMs: number, max = 20_000): FreshReads<T> {
  const known = new LRUCache<string, { readonly value: T; readonly at: number }>({ max });
  const pending = new Map<string, Promise<T>>();

  const load = (id: string): Promise<T> => {
    const at = performance.now();
    const promise: Promise<T> = read(id).then(
      (value) => {
        if (pending.get(id) === promise) {
          pending.delete(id);
          known.set(id, { value, at });
        }
        return value;
      },
      (error) => {
        if (pending.get(id) === promise) pending.delete(id);
        throw error;
      },
    );
    pending.set(id, promise);
    return promise;
  };

  return {
    get(id) {
      const entry = known.get(id);
      if (entry && performance.now() - entry.at < freshMs) return entry.value;
      return pending.get(id) ?? load(id);
    },
    forget(id) {
      known.delete(id);
      pending.delete(id);
    },
  };
}
