import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { InputCount } from '../contract/call.ts';

const MINUTE_MS = 60_000;

/** How many counts of one key in a minute a vendor is asked for. */
const REQUESTS_PER_MINUTE = 60;

/** Beyond this many counts of one key in a minute the rest is estimated, without a look at anything else. */
const COUNTS_PER_MINUTE = 1200;

/** How many questions to vendors go on at the same time: they share connections with calls. */
const MAX_PARALLEL = 16;

const MAX_KEYS = 10_000;
const MAX_REMEMBERED = 10_000;

/** What keeps counting small beside calls: in this process alone, since it costs nothing. */
export interface CountBounds {
  /** Whether one more count of a key may be more than an estimate. */
  admit(key: string): boolean;
  /** What this text was counted as a moment ago. */
  find(fingerprint: string): InputCount | undefined;
  remember(fingerprint: string, count: InputCount): void;
  /** Sends a question to a vendor, unless the key or all keys together sent too many: then undefined. */
  send<T>(key: string, question: () => Promise<T>): Promise<T | undefined>;
}

export function createCountBounds(now: () => number = () => performance.now()): CountBounds {
  const windows = new LRUCache<string, { readonly from: number; counts: number; requests: number }>({ max: MAX_KEYS });
  const known = new LRUCache<string, { readonly from: number; readonly count: InputCount }>({ max: MAX_REMEMBERED });
  let running = 0;
  const windowOf = (key: string) => {
    const window = windows.get(key);
    if (window && now() - window.from < MINUTE_MS) return window;
    const fresh = { from: now(), counts: 0, requests: 0 };
    windows.set(key, fresh);
    return fresh;
  };
  return {
    admit(key) {
      const window = windowOf(key);
      window.counts += 1;
      return window.counts <= COUNTS_PER_MINUTE;
    },
    find(fingerprint) {
      const entry = known.get(fingerprint);
      return entry && now() - entry.from < MINUTE_MS ? entry.count : undefined;
    },
    remember: (fingerprint, count) => void known.set(fingerprint, { from: now(), count }),
    async send(key, question) {
      const window = windowOf(key);
      if (window.requests >= REQUESTS_PER_MINUTE || running >= MAX_PARALLEL) return undefined;
      window.requests += 1;
      running += 1;
      try {
        return await question();
      } finally {
        running -= 1;
      }
    },
  };
}

/** A hash of all that a count depends on: nothing of the texts themselves is kept. */
export function fingerprintOf(...parts: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${JSON.stringify(part)}\n`);
  return hash.digest('base64url');
}
