import type { Log } from '../../../core/index.ts';
import { isStoreFailure } from './store-failure.ts';

/** A change that must reach the store, now or when it is back. Must be safe to repeat. */
export interface Letter {
  /** For logs; an id, never a secret. */
  readonly about: string;
  /** Unix milliseconds after which it is pointless. */
  readonly until: number;
  write(): Promise<unknown>;
}

export interface Outbox {
  /** Tries at once; when the store is away the letter waits and this resolves all the same. Never rejects. */
  send(letter: Letter): Promise<void>;
  /** How many letters wait. */
  readonly size: number;
  /** Tries everything once more and stops. */
  close(): Promise<void>;
}

export interface OutboxOptions {
  readonly log: Log;
  /** What becomes of a letter that is given up, for the log. */
  readonly otherwise: string;
  readonly firstPauseMs?: number;
  readonly maxWaiting?: number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
const MAX_WAITING = 10_000;
/** How many letters are tried at once when the store is back. */
const BATCH = 64;

/** Keeps what the store could not take while it was away, bounded, and delivers it when it is back. */
export function createOutbox({
  log,
  otherwise,
  firstPauseMs = FIRST_PAUSE_MS,
  maxWaiting = MAX_WAITING,
}: OutboxOptions): Outbox {
  const waiting = new Set<Letter>();
  let pauseMs = firstPauseMs;
  let timer: NodeJS.Timeout | undefined;
  let isOverflowing = false;

  /** Whether a letter that was not taken is tried again: what the store refuses for good is not. */
  const isWorthKeeping = (letter: Letter, error: unknown): boolean => {
    if (isStoreFailure(error)) return true;
    log.error({ about: letter.about, err: error }, `the store refused a change; ${otherwise}`);
    return false;
  };

  const keep = (letter: Letter): void => {
    if (waiting.size >= maxWaiting) {
      if (!isOverflowing)
        log.error({ waiting: waiting.size }, `too many changes wait for the store; more are given up, ${otherwise}`);
      isOverflowing = true;
      return;
    }
    waiting.add(letter);
    schedule();
  };

  const schedule = (): void => {
    if (timer || waiting.size === 0) return;
    timer = setTimeout(() => void deliver().then(schedule), pauseMs);
    timer.unref();
  };

  /** Whether the letter is done with. */
  const sendAgain = async (letter: Letter): Promise<boolean> => {
    try {
      await letter.write();
      return true;
    } catch (error) {
      return !isWorthKeeping(letter, error);
    }
  };

  const deliver = async (): Promise<void> => {
    const total = waiting.size;
    const now = Date.now();
    for (const letter of waiting) if (letter.until < now) waiting.delete(letter);
    if (waiting.size < total) log.error({ late: total - waiting.size }, `changes waited too long; ${otherwise}`);
    let isBack = true;
    while (isBack && waiting.size > 0) {
      const batch = [...waiting].slice(0, BATCH);
      const done = await Promise.all(batch.map(sendAgain));
      for (const [at, letter] of batch.entries()) if (done[at]) waiting.delete(letter);
      isBack = done.every(Boolean);
    }
    timer = undefined;
    if (isBack && total > 0) log.info({ delivered: total }, 'the store is back: what waited for it is written');
    isOverflowing &&= !isBack;
    pauseMs = isBack ? firstPauseMs : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  };

  return {
    async send(letter) {
      try {
        await letter.write();
      } catch (error) {
        if (isWorthKeeping(letter, error)) keep(letter);
      }
    },
    get size() {
      return waiting.size;
    },
    async close() {
      clearTimeout(timer);
      await deliver();
      clearTimeout(timer);
      if (waiting.size > 0) log.error({ waiting: waiting.size }, `the store is away at the end; ${otherwise}`);
    },
  };
}
