import type { FailureClass, Timeouts } from '../contract/provider.ts';

/**
 * One attempt, from when it is made until the last byte of its response. It fails once: by what it meets, because a
 * deadline has passed, because the caller left, or because the gateway closes. Then it is stopped.
 */
export class Attempt {
  readonly timeouts: Timeouts;
  /** Whether the request may have reached the vendor. */
  isSent: () => boolean = () => false;
  /** Why it failed; undefined while it goes on and when all went well. */
  error: UpstreamError | undefined;
  /** Whether its reader wanted no more. */
  wasLeft = false;
  /** Cuts what carries it, when it is stopped. */
  onStop: () => void = () => {};
  #isOver = false;
  #wasStopped = false;
  #stop: AbortController | undefined;
  readonly #abortSignal: AbortSignal;
  readonly #onAbort: () => void;
  readonly #running: Set<Attempt>;
  readonly #total: NodeJS.Timeout;

  /** Stays in `running` until it is over. */
  constructor(abortSignal: AbortSignal, timeouts: Timeouts, running: Set<Attempt>) {
    this.timeouts = timeouts;
    this.#abortSignal = abortSignal;
    this.#running = running.add(this);
    this.#onAbort = () => void this.abort('the call was aborted', abortSignal.reason);
    this.#total = setTimeout(() => this.expire('total'), timeouts.totalMs).unref();
    if (abortSignal.aborted) this.#onAbort();
    else abortSignal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Fires when the attempt is to stop whatever it is doing. Made for those who ask for it: the network does not. */
  get signal(): AbortSignal {
    if (!this.#stop) {
      this.#stop = new AbortController();
      if (this.#wasStopped) this.#stop.abort(this.error);
    }
    return this.#stop.signal;
  }

  /** Stops the attempt; answers the error to throw, which is the first that it failed with. */
  fail(message: string, options: Omit<UpstreamErrorOptions, 'sent'>): UpstreamError {
    const error = this.error ?? new UpstreamError(message, { ...options, sent: this.isSent() });
    if (!this.#isOver) this.error = error;
    this.#end(true);
    return error;
  }

  /** Fails because somebody stopped it. */
  abort(message: string, cause?: unknown): UpstreamError {
    return this.fail(message, { failure: 'upstream_error', phase: 'aborted', cause });
  }

  /** Fails because one of its deadlines has passed. */
  expire(phase: keyof typeof EXPIRED, cause?: unknown): UpstreamError {
    const message = `${EXPIRED[phase]} within ${this.timeouts[`${phase}Ms`]} ms`;
    return this.fail(message, { failure: 'timeout', phase, cause });
  }

  /** Fails by what a socket, undici or a transport threw, when the response had come as far as `phase`. */
  explain(cause: unknown, phase: keyof typeof BROKEN): UpstreamError {
    const expired = DEADLINE_CODES.get(errorCode(cause));
    if (expired) return this.expire(expired, cause);
    return this.fail(BROKEN[phase], { failure: 'upstream_error', phase, cause });
  }

  /** Stops the attempt because nobody wants the rest of it. Harmless after its end. */
  leave(): void {
    this.wasLeft ||= !this.#isOver;
    this.#end(true);
  }

  /** Ends the attempt that went well. */
  end(): void {
    this.#end(false);
  }

  #end(isStopped: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#total);
    this.#abortSignal.removeEventListener('abort', this.#onAbort);
    this.#running.delete(this);
    if (!isStopped) return;
    this.#wasStopped = true;
    this.onStop();
    this.#stop?.abort(this.error);
  }
}

/** The code of an error of Node or of undici. */
export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

const EXPIRED = Object.freeze({
  connect: 'the provider did not accept a connection',
  firstByte: 'the provider did not begin to answer',
  idle: 'the provider fell silent and sent nothing',
  total: 'the provider did not finish its answer',
});

const BROKEN = Object.freeze({
  connect: 'the provider could not be reached',
  firstByte: 'the provider closed the connection without an answer',
  body: 'the provider broke off its answer',
});

/** Which deadline has passed, by what a socket or undici says. */
const DEADLINE_CODES: ReadonlyMap<unknown, 'connect' | 'firstByte' | 'idle'> = new Map([
  ['ETIMEDOUT', 'connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'connect'],
  ['UND_ERR_HEADERS_TIMEOUT', 'firstByte'],
  ['UND_ERR_BODY_TIMEOUT', 'idle'],
]);

/**
 * Where an attempt failed. `connect` to `total` are the four clocks and what happens while they run; `body`: the response
 * itself is wrong (broken off, too large, a redirect, encoded); `aborted`: the caller's signal fired.
 */
export type UpstreamPhase = 'connect' | 'firstByte' | 'idle' | 'total' | 'body' | 'aborted';

interface UpstreamErrorOptions {
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  readonly sent: boolean;
  /** Whether the response's status says that the vendor did nothing, so that nothing is owed. */
  readonly refused?: boolean;
  /** What happened underneath; for logs only, it may name hosts. */
  readonly cause?: unknown;
}

/** An attempt that came to no response, or to half of one. Its message names no host, no key and no path. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  /** Whether the request may have reached the vendor, and so may cost something. */
  readonly sent: boolean;
  /** Whether the vendor answered that it did nothing (a redirect, no content), so that nothing is owed. */
  readonly refused: boolean;

  constructor(message: string, options: UpstreamErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.failure = options.failure;
    this.phase = options.phase;
    this.sent = options.sent;
    this.refused = options.refused ?? false;
  }
}
