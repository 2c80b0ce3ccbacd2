import type { Dispatcher } from 'undici';
import type { FailureClass, ResponseHeaders, Timeouts } from '../contract/provider.ts';
import type { DeadlineClock, Watched } from './deadline-clock.ts';
import { findFault, isEncoded, isRefusal, joinRepeated, tooLong } from './judge-answer.ts';
import { UpstreamBody } from './upstream-body.ts';
import { isMisuse, isReset, isTimeout, UpstreamError, type UpstreamPhase } from './upstream-error.ts';

/** What an exchange can do to whatever answers it: undici's controller, or a transport's. */
export interface ExchangeController {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

export interface ExchangeOptions {
  readonly timeouts: Timeouts;
  readonly maxResponseBytes: number;
  readonly signal: AbortSignal;
  readonly clock: DeadlineClock;
  /** Called when the connection went away before a byte of an answer; true when the request is sent once more. */
  readonly onReset?: () => boolean;
  /** Called once, when the connection is free again (`reusable`) or spoiled. */
  readonly onClose: (reusable: boolean) => void;
}

/** The head of an answer, and the way to the rest of it: what `UpstreamResponse` promises. */
export class Answer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: UpstreamBody;
  readonly #maxBytes: number;

  constructor(status: number, headers: ResponseHeaders, body: UpstreamBody, maxBytes: number) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.#maxBytes = maxBytes;
  }

  readAll(maxBytes = this.#maxBytes): Promise<Buffer> {
    return this.body.readAll(maxBytes);
  }

  destroy(): void {
    this.body.cancel();
  }
}

type RawHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

type State = 'connect' | 'firstByte' | 'idle' | 'closed';

/**
 * One attempt: from the moment it is handed over until the last byte of its answer, with four clocks, a size bound and
 * the caller's signal. It is the undici handler itself, which saves an object and a call per chunk.
 */
export class Exchange implements Dispatcher.DispatchHandler, Watched {
  /** The answer's head; rejects with an {@link UpstreamError}. */
  readonly answer: Promise<Answer>;
  readonly #options: ExchangeOptions;
  readonly #startedAt = performance.now();
  readonly #onAbort: () => void;
  #resolve!: (answer: Answer) => void;
  #reject!: (error: Error) => void;
  #state: State = 'connect';
  #sent = false;
  #answering = false;
  #paused = false;
  /** When the running clock (connect, first byte or idle) was last set back. */
  #progressAt = this.#startedAt;
  #received = 0;
  #controller: ExchangeController | undefined;
  #body: UpstreamBody | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#onAbort = () => this.#fail('upstream_error', 'aborted', 'the call was aborted', options.signal.reason);
    if (options.signal.aborted) this.#onAbort();
    else {
      options.signal.addEventListener('abort', this.#onAbort, { once: true });
      options.clock.watch(this);
    }
  }

  get closed(): boolean {
    return this.#state === 'closed';
  }

  dueAt(): number {
    const { connectMs, firstByteMs, idleMs, totalMs } = this.#options.timeouts;
    const total = this.#startedAt + totalMs;
    if (this.#state === 'connect') return Math.min(total, this.#progressAt + connectMs);
    if (this.#state === 'firstByte') return Math.min(total, this.#progressAt + firstByteMs);
    return this.#paused ? total : Math.min(total, this.#progressAt + idleMs);
  }

  expire(): void {
    const { timeouts } = this.#options;
    const total = this.#startedAt + timeouts.totalMs <= performance.now();
    const phase = total || this.#state === 'closed' ? 'total' : this.#state;
    this.#fail('timeout', phase, `${EXPIRED[phase]} within ${timeouts[`${phase}Ms`]} ms`);
  }

  onRequestStart(controller: ExchangeController): void {
    if (this.#state === 'closed') {
      controller.abort(new Error('closed'));
      return;
    }
    this.#controller = controller;
    this.#sent = true;
    this.#enter('firstByte');
  }

  onResponseStarted(): void {
    this.#answering = true;
  }

  onResponseStart(_controller: ExchangeController, status: number, rawHeaders: RawHeaders): void {
    if (status < 200 || this.#state === 'closed') return;
    this.#enter('idle');
    const headers = joinRepeated(rawHeaders);
    const fault = findFault(status, headers, this.#options.maxResponseBytes);
    if (fault) {
      this.#fail('upstream_error', 'body', fault, undefined, isRefusal(status));
      return;
    }
    this.#body = new UpstreamBody(this);
    this.#resolve(new Answer(status, headers, this.#body, this.#options.maxResponseBytes));
    // An encoded error page is still an error: its status counts, its text is dropped.
    if (isEncoded(headers)) this.#body.cancel();
  }

  onResponseData(_controller: ExchangeController, chunk: Buffer): void {
    if (this.#state === 'closed') return;
    this.#progressAt = performance.now();
    this.#received += chunk.length;
    const { maxResponseBytes } = this.#options;
    if (this.#received > maxResponseBytes) this.#fail('upstream_error', 'body', tooLong(maxResponseBytes));
    else this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#close(true)) this.#body?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#state === 'closed') return;
    if (isMisuse(error)) {
      this.#close(false);
      this.#reject(new TypeError(error.message));
      return;
    }
    if (!this.#answering && isReset(error)) {
      this.#controller = undefined;
      this.#enter('connect');
      if (this.#options.onReset?.()) return;
    }
    if (isTimeout(error)) this.#fail('timeout', 'connect', 'the provider did not connect in time', error);
    else {
      const phase = this.#answering ? 'body' : this.#sent ? 'firstByte' : 'connect';
      this.#fail('upstream_error', phase, BROKEN[phase], error);
    }
  }

  /** The reader is behind: its own deadline runs now, not the provider's. */
  pause(): void {
    this.#paused = true;
    this.#controller?.pause();
  }

  resume(): void {
    this.#paused = false;
    if (this.#state === 'closed') return;
    this.#progressAt = performance.now();
    this.#options.clock.watch(this);
    this.#controller?.resume();
  }

  /** The reader wants no more of the body. */
  cancel(): void {
    if (this.#close(false)) this.#controller?.abort(new Error('not read to the end'));
  }

  /** Ends the attempt for a reason found outside of it, such as a full connection pool. */
  refuse(failure: FailureClass, message: string): void {
    this.#fail(failure, 'connect', message);
  }

  cut(): void {
    this.#fail('upstream_error', 'aborted', 'the gateway is closing');
  }

  #enter(state: State): void {
    this.#state = state;
    this.#progressAt = performance.now();
    this.#options.clock.watch(this);
  }

  #fail(failure: FailureClass, phase: UpstreamPhase, message: string, cause?: unknown, refused = false): void {
    if (!this.#close(false)) return;
    const error = new UpstreamError(message, { failure, phase, sent: this.#sent, refused, cause });
    if (this.#body) this.#body.fail(error, phase === 'aborted');
    else this.#reject(error);
    this.#controller?.abort(error);
  }

  /** False when it was closed already. */
  #close(reusable: boolean): boolean {
    if (this.#state === 'closed') return false;
    this.#state = 'closed';
    this.#options.clock.unwatch(this);
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#options.onClose(reusable);
    return true;
  }
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
