import { type GatewayError, isGatewayError, type Log } from '../../../core/index.ts';
import { asUnavailable, storeClosed, storeRefused, storeUnavailable } from './failure.ts';

export interface GuardOptions {
  /** The store's kind, for messages. */
  readonly kind: string;
  /** The longest an operation may take. */
  readonly timeoutMs: number;
  /**
   * Connects and waits for a first response, within a bound of its own; rejects with why the store is away, with a
   * `GatewayError` when the store is there and refuses this gateway: callers are told so.
   */
  probe(): Promise<void>;
  /** Whether an error means that the server is away, and not that it refused this one operation. */
  isOutage(error: unknown): boolean;
  readonly log?: Log | undefined;
}

/** The circuit breaker in front of a store's server. */
export interface Guard {
  /** Probes for the first time; resolves with why the server is away, or undefined when it is there. Never rejects. */
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
 * Makes a guard: an operation without a response in time is rejected and the breaker opens, so that nothing
 * piles up behind a server that hangs; then only probes go out, at growing intervals up to a second, until one succeeds.
 */
export function createGuard({ kind, timeoutMs, probe, isOutage, log }: GuardOptions): Guard {
  let state: 'away' | 'here' | 'closed' = 'away';
  let timer: NodeJS.Timeout | undefined;
  let isProbing = false;
  let isStarted = false;
  let refusal: GatewayError | undefined;

  /** The first probe's goes to whoever starts the guard, and not into the log. */
  const noteRefusal = (found: GatewayError | undefined): void => {
    if (isStarted && found !== undefined && found.message !== refusal?.message)
      log?.error({ store: kind, err: found }, 'the store refuses this gateway');
    refusal = found;
  };

  const attempt = async (pauseMs: number): Promise<unknown> => {
    isProbing = true;
    const failure = await probe().then(
      () => undefined,
      (error: unknown) => error ?? new Error('unknown'),
    );
    isProbing = false;
    if (state === 'closed') return failure;
    noteRefusal(isGatewayError(failure) ? failure : undefined);
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

  const run = async <T>(operation: () => Promise<T>): Promise<T> => {
    if (state === 'closed') throw storeClosed();
    if (state === 'away') {
      throw refusal === undefined
        ? storeUnavailable(`The ${kind} store does not answer.`)
        : storeRefused(refusal.message, refusal);
    }
    try {
      return await within(timeoutMs, operation());
    } catch (error) {
      if (error instanceof NoResponse) {
        const late = storeUnavailable(`The ${kind} store did not answer in time.`);
        trip(late);
        throw late;
      }
      if (isOutage(error)) trip(error);
      throw asUnavailable(`The ${kind} store refused or broke off the operation.`, error);
    }
  };

  return {
    start: async () => {
      const failure = await attempt(FIRST_PAUSE_MS);
      isStarted = true;
      return failure;
    },
    run,
    trip,
    close: () => {
      state = 'closed';
      clearTimeout(timer);
    },
  };
}

class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** Rejects when a promise takes longer than `ms`; what it comes to after that is dropped. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const bound = setTimeout(() => reject(new NoResponse(`no response within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(bound));
  });
}
