import { isGatewayError, type Log } from '../../../contract/index.ts';

/** Write that must reach the store, now or after an outage. Must be safe to repeat. */
export interface PendingWrite {
  /** For logs; never a secret. */
  readonly id: string;
  /** Unix milliseconds after which it is pointless. */
  readonly until: number;
  write(): Promise<unknown>;
}

export interface WriteQueue {
  /** Tries at once. If the store is unavailable the write is queued, and this resolves nevertheless. Never rejects. */
  add(pending: PendingWrite): Promise<void>;
  /** Number of waiting writes. */
  readonly size: number;
  /** Tries everything once more and stops. */
  close(): Promise<void>;
}

interface WriteQueueOptions {
  readonly log: Log;
  /** Consequence of a dropped write, for the log. */
  readonly otherwise: string;
  readonly firstPauseMs?: number;
  readonly maxWaiting?: number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
const MAX_WAITING = 10_000;
/** Writes tried at once after an outage. */
const BATCH = 64;

/** Queues writes while the store is unavailable, bounded, and writes them after the outage. */
export function createWriteQueue({
  log,
  otherwise,
  firstPauseMs = FIRST_PAUSE_MS,
  maxWaiting = MAX_WAITING,
}: WriteQueueOptions): WriteQueue {
  /** Expiry by the monotonic clock: a change of the system clock must not lose a charge. */
  const waiting = new Map<PendingWrite, number>();
  let pauseMs = firstPauseMs;
  let timer: NodeJS.Timeout | undefined;
  let isOverflowing = false;

  /** Tries a write. `onAway` handles one to be retried; one that the store finally refuses is done. */
  const attempt = async <T>(pending: PendingWrite, over: T, onAway: () => T): Promise<T> => {
    try {
      await pending.write();
    } catch (error) {
      if (isStoreFailure(error)) return onAway();
      log.error({ about: pending.id, err: error }, `the store rejected a change; ${otherwise}`);
    }
    return over;
  };

  const keep = (pending: PendingWrite, until: number): void => {
    if (waiting.size < maxWaiting) {
      waiting.set(pending, until);
      schedule();
    } else if (!isOverflowing) {
      isOverflowing = true;
      log.error({ waiting: waiting.size }, `too many changes are queued for the store; more are dropped, ${otherwise}`);
    }
  };

  const schedule = (): void => {
    if (timer || waiting.size === 0) return;
    timer = setTimeout(() => void flush().then(schedule), pauseMs);
    timer.unref();
  };

  const flush = async (): Promise<void> => {
    const total = waiting.size;
    const now = performance.now();
    for (const [pending, until] of waiting) if (until < now) waiting.delete(pending);
    if (waiting.size < total) log.error({ late: total - waiting.size }, `changes waited too long; ${otherwise}`);
    let isBack = true;
    while (isBack && waiting.size > 0) {
      const batch = [...waiting.keys()].slice(0, BATCH);
      const repeats = await Promise.all(batch.map((pending) => attempt(pending, false, () => true)));
      for (const [at, pending] of batch.entries()) if (!repeats[at]) waiting.delete(pending);
      isBack = !repeats.includes(true);
    }
    timer = undefined;
    if (isBack && total > 0) log.info({ delivered: total }, 'the store responds again; queued changes are written');
    isOverflowing &&= !isBack;
    pauseMs = isBack ? firstPauseMs : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  };

  return {
    add(pending) {
      const until = performance.now() + pending.until - Date.now();
      return attempt<void>(pending, undefined, () => keep(pending, until));
    },
    get size() {
      return waiting.size;
    },
    async close() {
      clearTimeout(timer);
      await flush();
      clearTimeout(timer);
      if (waiting.size > 0)
        log.error({ waiting: waiting.size }, `the store does not respond at shutdown; ${otherwise}`);
    },
  };
}

/** True if the store did not reply, so that the outcome is unknown; each policy decides what happens to the call. */
export function isStoreFailure(error: unknown): boolean {
  return isGatewayError(error) && error.code === 'store_unavailable';
}
