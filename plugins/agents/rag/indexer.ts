import type { Database } from './database.ts';
import { createFolderCheck, type FolderCheckDeps } from './folder-check.ts';
import { createIndexLock } from './index-lock.ts';
import { RETRY_MS } from './retry.ts';
import type { UpdateJob } from './update-job.ts';

export interface IndexerOptions extends Omit<UpdateJob, 'refused'> {
  /** How often the folder is checked; 0 once. */
  readonly watchMs: number;
}

export interface IndexerDeps extends Omit<FolderCheckDeps, 'lock'> {
  readonly database: Database;
}

export interface Indexer {
  /** Checks the folder now, and from then on as often as it is to. */
  start(): void;
  close(): Promise<void>;
}

/**
 * Keeps the index up to date with a folder, by a worker in a process of its own; one at a time over all gateways on this
 * index.
 */
export function createIndexer({ watchMs, ...options }: IndexerOptions, { database, ...deps }: IndexerDeps): Indexer {
  const lock = createIndexLock(database, options.holder);
  const stop = new AbortController();
  const check = createFolderCheck(options, { ...deps, lock }, stop.signal);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;

  const checkAndGoOn = (): void => {
    running = check.run().then((isUnfinished) => {
      if (stop.signal.aborted || (watchMs === 0 && !isUnfinished)) return;
      timer = setTimeout(checkAndGoOn, watchMs || RETRY_MS.first);
      timer.unref();
    });
  };

  return {
    start: checkAndGoOn,
    async close() {
      stop.abort();
      clearTimeout(timer);
      check.kill();
      await running;
      lock.release();
    },
  };
}
