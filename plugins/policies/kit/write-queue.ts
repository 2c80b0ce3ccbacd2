import { isGatewayError, type Log } from '../../../contract/index.ts';

/** A change that must reach the store, now or when it is back. Must be safe to repeat. */
export interface PendingWrite {
  /** For logs; never a secret. */
  readonly id: string;
  /** Unix milliseconds after which it is pointless. */
  readonly until: number;
  write(): Promise<unknown>;
}

export interface WriteQueue {
  /** Tries at once; when the store is away the write waits and this resolves all the same. Never rejects. */
  add(pending: PendingWrite): Promise<void>;
  /** How many writes wait. */
  readonly size: number;
  /** Tries everything once more and stops. */
  close(): Promise<void>;
}

interface WriteQueueOptions {
  readonly log: Log;
  /** What becomes of a write that is dropped, for the log. */
  readonly otherwise: string;
  readonly firstPauseMs?: number;
  readonly maxWaiting?: number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
const MAX_WAITING = 10_000;
/** How many writes are tried at once when the store is back. */
const BATCH = 64;

/** Keeps what the store could not take while it was away, bounded, and writes it when it is back. */
export function createWriteQueue({
  log,
  otherwise,
  firstPauseMs = FIRST_PAUSE_MS,
  maxWaiting = MAX_WAITING,
}: WriteQueueOptions): WriteQueue {
  /** With when each is pointless, by the clock that does not jump: a charge must not be lost because somebody sets the other one. */
  const waiting = new Map<PendingWrite, number>();
  let pauseMs = firstPauseMs;
  let timer: NodeJS.Timeout | undefined;
  let isOverflowing = false;

  /** Tries a write. `onAway` says what becomes of one that is to be tried again; one that the store refuses for good is over. */
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

/** Whether the store did not answer, so that what it did is unknown: each policy says what then happens to a call. */
export function isStoreFailure(error: unknown): boolean {
  return isGatewayError(error) && error.code === 'store_unavailable';
}
