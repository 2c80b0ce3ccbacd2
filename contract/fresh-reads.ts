/** Cache of recent store reads. */
interface FreshReads<T> {
  /** Returns the value synchronously if cached, else as a promise. Concurrent callers share one read. */
  get(id: string): T | Promise<T>;
  /** Invalidates a value; the result of a pending read is not cached. */
  forget(id: string): void;
}

/** Caches reads for `freshMs` by the monotonic clock. Failed reads are not cached. */
export function createFreshReads<T>(read: (id: string) => Promise<T>, freshMs: number, max = 20_000): FreshReads<T> {
  const known = new Map<string, { readonly value: T; readonly at: number }>();
  const pending = new Map<string, Promise<T>>();

  /** Evicts the oldest read. */
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
