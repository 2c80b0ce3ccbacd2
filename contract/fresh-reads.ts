/** What the store said a moment ago. */
interface FreshReads<T> {
  /** At once when it was read within the time, else as a promise: one read for all who ask meanwhile. */
  get(id: string): T | Promise<T>;
  /** Reads it anew next time; a read that is under way is not remembered. */
  forget(id: string): void;
}

/** Remembers reads for `freshMs`; by the clock that never jumps. A read that fails is not remembered. */
export function createFreshReads<T>(read: (id: string) => Promise<T>, freshMs: number, max = 20_000): FreshReads<T> {
  const known = new Map<string, { readonly value: T; readonly at: number }>();
  const pending = new Map<string, Promise<T>>();

  /** What was read longest ago. */
  const forgetOldest = (): void => {
    const [oldest] = known.keys();
    if (oldest !== undefined) known.delete(oldest);
  };

  const load = (id: string): Promise<T> => {
    const at = performance.now();
    const promise: Promise<T> = read(id).then(
      (value) => {
        if (pending.get(id) === promise) {
          pending.delete(id);
          known.delete(id);
          known.set(id, { value, at });
          if (known.size > max) forgetOldest();
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
