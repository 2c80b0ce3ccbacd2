import type { Log } from '../../../core/index.ts';
import { asUnavailable, storeClosed, storeUnavailable } from './failure.ts';

export interface GuardOptions {
  /** The store's kind, for messages. */
  readonly kind: string;
  /** The longest an operation may take. */
  readonly timeoutMs: number;
  /** Connects and asks for a sign of life; what it rejects with is why the store is away. Bounded by itself. */
  probe(): Promise<void>;
  /** Whether an error means that the server is away, and not that it refused this one operation. */
  isOutage(error: unknown): boolean;
  readonly log?: Log | undefined;
}

/** The circuit breaker in front of a store's server. */
export interface Guard {
  /** Probes for the first time; answers why the server is away, or undefined when it is there. Rejects never. */
  start(): Promise<unknown>;
  /** Runs an operation within its bound, or refuses it at once while the server is away. */
  run<T>(operation: () => Promise<T>): Promise<T>;
  /** Refuses everything until a probe succeeds. */
  trip(cause: unknown): void;
  close(): void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Makes a guard: an operation that the server does not answer in time is rejected and the breaker opens, so that nothing
 * piles up behind a server that hangs; then only probes go out, at growing intervals up to a second, until one succeeds.
 */
export function createGuard({ kind, timeoutMs, probe, isOutage, log }: GuardOptions): Guard {
  let state: 'away' | 'here' | 'closed' = 'away';
  let timer: NodeJS.Timeout | undefined;
  let isProbing = false;

  const attempt = async (pauseMs: number): Promise<unknown> => {
    isProbing = true;
    const failure = await probe().then(
      () => undefined,
      (error: unknown) => error ?? new Error('unknown'),
    );
    isProbing = false;
    if (state === 'closed') return failure;
    if (failure === undefined) {
      state = 'here';
      log?.info({ store: kind }, 'the store answers');
    } else {
      timer = setTimeout(() => void attempt(Math.min(pauseMs * 2, LONGEST_PAUSE_MS)), pauseMs);
      timer.unref();
    }
    return failure;
  };

  const trip = (cause: unknown): void => {
    if (state !== 'here') return;
    state = 'away';
    log?.error({ store: kind, err: cause }, 'the store is away: everything that needs it is refused until it answers');
    if (!isProbing) void attempt(FIRST_PAUSE_MS);
  };

  const judge = (error: unknown): unknown => {
    if (isOutage(error)) trip(error);
    return asUnavailable(`The ${kind} store refused or broke off the operation.`, error);
  };

  const run = <T>(operation: () => Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (state === 'closed') return reject(storeClosed());
      if (state === 'away') return reject(storeUnavailable(`The ${kind} store does not answer.`));
      let isLate = false;
      const bound = setTimeout(() => {
        isLate = true;
        const late = storeUnavailable(`The ${kind} store did not answer in time.`);
        reject(late);
        trip(late);
      }, timeoutMs);
      operation().then(
        (value) => {
          clearTimeout(bound);
          resolve(value);
        },
        (error: unknown) => {
          clearTimeout(bound);
          // What fails after its bound says nothing about the connection that is there by now.
          if (!isLate) reject(judge(error));
        },
      );
    });

  return {
    start: () => attempt(FIRST_PAUSE_MS),
    run,
    trip,
    close: () => {
      state = 'closed';
      clearTimeout(timer);
    },
  };
}

/** Rejects when a promise takes longer than `ms`; what comes later is dropped. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const bound = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(bound));
  });
}
