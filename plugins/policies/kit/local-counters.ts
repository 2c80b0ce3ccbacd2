import type { Counters, Window, WindowState } from '../../../contract/index.ts';

interface Bucket {
  used: number;
  resetsAt: number;
}
/** Windows, leases and numbers in this process's memory: used by the memory store, and as a fallback for limits. */
export function createLocalCounters(): Counters {
  const windows = createWindows();
  const leases = createExpiring<Map<string, number>>((places) => Math.max(0, ...places.values()));
  const numbers = new Map<string, number>();

  const lease = (key: string, id: string, limit: number, ttlMs: number, now: number): boolean => {
    const places = leases.get(key) ?? new Map<string, number>();
    for (const [holder, expiresAt] of places) if (expiresAt <= now) places.delete(holder);
    if (!places.has(id) && places.size >= limit) return false;
    leases.set(key, places.set(id, now + ttlMs), now);
    return true;
  };

  const next = (key: string, by = 1): number => {
    const value = (numbers.get(key) ?? 0) + by;
    if (by !== 0) numbers.set(key, value);
    return value;
  };

  return {
    take: async (wanted, now) => windows.take(wanted, now),
    adjust: async (key, _windowMs, delta, now) => windows.adjust(key, delta, now),
    lease: async (key, id, limit, ttlMs, now) => lease(key, id, limit, ttlMs, now),
    release: async (key, id) => {
      leases.get(key)?.delete(id);
    },
    next: async (key, by) => next(key, by),
  };
}

function createWindows() {
  const windows = createExpiring<Bucket>((bucket) => bucket.resetsAt);

  const bucketOf = ({ key, windowMs }: Window, now: number): Bucket => {
    const known = windows.get(key);
    if (known && known.resetsAt > now) return known;
    const bucket = { used: 0, resetsAt: now + windowMs };
    windows.set(key, bucket, now);
    return bucket;
  };

  const take = (wanted: readonly Window[], now: number) => {
    const counted = wanted.map((window) => ({ window, bucket: bucketOf(window, now) }));
    let taken = 0;
    for (const { window, bucket } of counted) {
      if (bucket.used + window.amount > window.limit) break;
      bucket.used += window.amount;
      taken += 1;
    }
    const isRefused = taken < counted.length;
    if (isRefused) for (const { window, bucket } of counted.slice(0, taken)) bucket.used -= window.amount;
    const states = counted.map(
      ({ window: { limit }, bucket: { used, resetsAt } }): WindowState => ({
        remaining: Math.max(0, limit - used),
        resetMs: resetsAt - now,
      }),
    );
    return { refused: isRefused ? taken : undefined, states };
  };

  const adjust = (key: string, delta: number, now: number): void => {
    const bucket = windows.get(key);
    if (bucket && bucket.resetsAt > now) bucket.used = Math.max(0, bucket.used + delta);
  };

  return { take, adjust };
}

/** Map that drops expired entries whenever its size has doubled, so that it stays bounded without a timer. */
function createExpiring<T>(expiresAt: (value: T) => number) {
  const values = new Map<string, T>();
  let dropAt = 1000;
  return {
    get: (key: string): T | undefined => values.get(key),
    set(key: string, value: T, now: number): void {
      values.set(key, value);
      if (values.size < dropAt) return;
      for (const [old, held] of values) if (expiresAt(held) <= now) values.delete(old);
      dropAt = Math.max(1000, values.size * 2);
    },
  };
}
