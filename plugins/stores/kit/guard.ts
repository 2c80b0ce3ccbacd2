import { type GatewayError, isGatewayError, type Log } from '../../../contract/index.ts';
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
  /** What an error says of the server, for callers and `/readyz`; undefined for one that says no more than that it failed. */
  explain?(error: unknown): string | undefined;
  readonly log?: Log | undefined;
}

/** The circuit breaker in front of a store's server. */
export interface Guard {
  /** Probes for the first time; resolves with why the server is away, or undefined when it is there. Never rejects. */
  start(): Promise<unknown>;
  /**
   * Runs an operation within its bound, or refuses it at once while the server is away. While a broken connection is replaced, it waits
   * for that. One that is repeatable runs once more when its connection breaks.
   */
  run<T>(operation: () => Promise<T>, isRepeatable?: boolean): Promise<T>;
  /** Resolves with whether a broken connection was the reason of an error of `run`, and has been replaced in time. */
  reconnected(error: unknown): Promise<boolean>;
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
export function createGuard(options: GuardOptions): Guard {
  return new Breaker(options);
}

class Breaker implements Guard {
  readonly #options: GuardOptions;
  #state: 'away' | 'here' | 'closed' = 'away';
  #timer: NodeJS.Timeout | undefined;
  #isProbing = false;
  /** Number of probes that succeeded: an operation that began before the last one says nothing of the connection that is there now. */
  #connections = 0;
  /** Whether a connection that broke was replaced, by the first probe after it. */
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
        if (isCurrent) this.#open(late);
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

  /** Refuses operations until a probe succeeds; returns the first probe, undefined where the server is away already. */
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
    this.#noteRefusal(isGatewayError(failure) ? failure : undefined);
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

  /** The first probe's goes to the caller of `start`, and not into the log. */
  #noteRefusal(found: GatewayError | undefined): void {
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
 * Rejects when a promise takes longer than `ms`; what it comes to after that is dropped. Where this process was busy for so long, the
 * response may be there already and only not read: it is read before the time counts as over.
 */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const bound = setTimeout(() => setImmediate(() => reject(new NoResponse(`no response within ${ms} ms`))), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(bound));
  });
}
