import { type GatewayError, isGatewayError, type Log } from '../../../contract/index.ts';
import { asUnavailable, storeClosed, storeRefused, storeUnavailable } from './failure.ts';

export interface GuardOptions {
  /** Store kind, for messages. */
  readonly kind: string;
  /** Maximum duration of an operation. */
  readonly timeoutMs: number;
  /**
   * Connects and waits for a first response, with its own time limit. Rejects with the reason; a `GatewayError` means
   * that the server rejects this gateway, and callers get that error.
   */
  probe(): Promise<void>;
  /** Distinguishes an outage of the server from an error of this operation. */
  isOutage(error: unknown): boolean;
  /** Explains an error for callers and `/readyz`; undefined if the error has no details. */
  explain?(error: unknown): string | undefined;
  readonly log?: Log | undefined;
}

/** Circuit breaker for the server of a store. */
export interface Guard {
  /**
   * Runs the first probe. Resolves with the reason if the server is unavailable, else with undefined. Never rejects.
   */
  start(): Promise<unknown>;
  /**
   * Runs an operation within its time limit; rejects at once while the server is unavailable. Waits while a broken
   * connection is replaced. A repeatable operation runs once more if its connection breaks.
   */
  run<T>(operation: () => Promise<T>, isRepeatable?: boolean): Promise<T>;
  /** Resolves with true if a broken connection caused an error of `run` and was replaced in time. */
  reconnected(error: unknown): Promise<boolean>;
  /** Rejects all operations until a probe succeeds. */
  trip(cause: unknown): void;
  close(): void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Creates a guard. An operation without a timely response is rejected and opens the breaker, so no requests queue up
 * for a hanging server. Then only probes run, at growing intervals up to one second, until one succeeds.
 */
export function createGuard(options: GuardOptions): Guard {
  return new Breaker(options);
}

class Breaker implements Guard {
  readonly #options: GuardOptions;
  #state: 'away' | 'here' | 'closed' = 'away';
  #timer: NodeJS.Timeout | undefined;
  #isProbing = false;
  /**
   * Number of successful probes. The result of an operation that began before the last one does not concern the current
   * connection.
   */
  #connections = 0;
  /** Resolves with true if the first probe after a break replaced the connection. */
  #reconnection: Promise<boolean> = Promise.resolve(false);
  #isStarted = false;
  #refusal: GatewayError | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  async start(): Promise<unknown> {
    const failure = await this.#probe(FIRST_PAUSE_MS);
    this.#isStarted = true;
    return failure;
  }

  async run<T>(operation: () => Promise<T>, isRepeatable = false): Promise<T> {
    const { timeoutMs } = this.#options;
    const startedMs = performance.now();
    if (this.#state === 'away') await this.#reconnection;
    try {
      return await this.#runOnce(operation, timeoutMs);
    } catch (error) {
      if (!isRepeatable || !(await this.reconnected(error))) throw error;
      const leftMs = timeoutMs - (performance.now() - startedMs);
      if (leftMs <= 0) throw error;
      return await this.#runOnce(operation, leftMs);
    }
  }

  async #runOnce<T>(operation: () => Promise<T>, boundMs: number): Promise<T> {
    const { kind, isOutage, explain } = this.#options;
    if (this.#state === 'closed') throw storeClosed();
    if (this.#state === 'away') {
      throw this.#refusal === undefined
        ? storeUnavailable(`The ${kind} store does not respond.`)
        : storeRefused(this.#refusal.message, this.#refusal);
    }
    const connection = this.#connections;
    try {
      return await within(boundMs, operation());
    } catch (error) {
      const isCurrent = connection === this.#connections;
      if (error instanceof NoResponse) {
        const late = storeUnavailable(`The ${kind} store did not respond in time.`);
        if (isCurrent) void this.#open(late);
        throw late;
      }
      if (isCurrent && isOutage(error)) this.trip(error);
      throw asUnavailable(explain?.(error) ?? `The ${kind} store rejected or interrupted the operation.`, error);
    }
  }

  async reconnected(error: unknown): Promise<boolean> {
    const { cause } = error as Error;
    return cause !== undefined && this.#options.isOutage(cause) && (await this.#reconnection);
  }

  trip(cause: unknown): void {
    const probed = this.#open(cause);
    if (!probed) return;
    const isHere = (): boolean => this.#state === 'here';
    this.#reconnection = within(this.#options.timeoutMs, probed).then(isHere, isHere);
  }

  /**
   * Rejects operations until a probe succeeds. Returns the first probe, or undefined if the server was unavailable
   * already.
   */
  #open(cause: unknown): Promise<unknown> | undefined {
    const { kind, log } = this.#options;
    if (this.#state !== 'here') return undefined;
    this.#state = 'away';
    this.#reconnection = Promise.resolve(false);
    log?.error(
      { store: kind, err: cause },
      'the store does not respond; requests that need it are rejected until it does',
    );
    return this.#isProbing ? undefined : this.#probe(FIRST_PAUSE_MS);
  }

  close(): void {
    this.#state = 'closed';
    clearTimeout(this.#timer);
  }

  async #probe(pauseMs: number): Promise<unknown> {
    const { kind, probe, log } = this.#options;
    this.#isProbing = true;
    const failure = await probe().then(
      () => undefined,
      (error: unknown) => error ?? new Error('unknown'),
    );
    this.#isProbing = false;
    if (this.#state === 'closed') return failure;
    this.#recordRefusal(isGatewayError(failure) ? failure : undefined);
    if (failure === undefined) {
      this.#state = 'here';
      this.#connections += 1;
      log?.info({ store: kind }, 'the store responds again');
    } else {
      this.#timer = setTimeout(() => void this.#probe(Math.min(pauseMs * 2, LONGEST_PAUSE_MS)), pauseMs);
      this.#timer.unref();
    }
    return failure;
  }

  /** The caller of `start` gets the rejection of the first probe, so it is not logged. */
  #recordRefusal(found: GatewayError | undefined): void {
    const { kind, log } = this.#options;
    if (this.#isStarted && found !== undefined && found.message !== this.#refusal?.message)
      log?.error({ store: kind, err: found }, 'the store rejects this gateway');
    this.#refusal = found;
  }
}

class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/**
 * Rejects if a promise takes longer than `ms`; a later result is dropped. If this process was busy, the response may
 * have arrived unread, so pending input is read before the timeout counts.
 */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const bound = setTimeout(() => setImmediate(() => reject(new NoResponse(`no response within ${ms} ms`))), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(bound));
  });
}
