import { LRUCache } from 'lru-cache';
import type { Log } from '../../../core/index.ts';
import type { KeyRecords } from './records.ts';

const EVERY_MS = 60_000;
const MAX_KEYS = 20_000;

interface LastUsed {
  /** Notes a use; returns at once, and writes at most once a minute and key. */
  touch(id: string, now: number): void;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
}

/** Writes when a key was last used, in a document of its own and never in the way of a request. */
export function createLastUsed(records: Pick<KeyRecords, 'markUsed'>, log: Log): LastUsed {
  const written = new LRUCache<string, number>({ max: MAX_KEYS });
  const writing = new Set<Promise<void>>();

  return {
    touch(id, now) {
      const before = written.get(id);
      if (before !== undefined && Math.abs(now - before) < EVERY_MS) return;
      written.set(id, now);
      const write = records.markUsed(id, now).catch((error: unknown) => {
        log.debug({ keyId: id, err: error }, 'The last use of an API key was not written.');
      });
      writing.add(write);
      void write.finally(() => writing.delete(write));
    },
    async flush() {
      await Promise.all(writing);
    },
  };
}
