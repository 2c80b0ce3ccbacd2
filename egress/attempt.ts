import { getHeapStatistics } from 'node:v8';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { StreamProgress } from '../contract/events.ts';
import { type Linked, LinkedList } from '../contract/linked-list.ts';
import type { AttemptResponse } from '../contract/operation.ts';
import type {
  FailureClass,
  HttpRequest,
  ResponseHeaders,
  Timeouts,
  Transport,
  UpstreamPhase,
} from '../contract/provider.ts';

/** Carrier of an attempt: a socket, or a provider's own transport. */
export interface Source {
  /** Returns whether the request may have reached the vendor. */
  isSent(): boolean;
  /** Returns the next bytes, synchronously if available; undefined at the end. Throws, or rejects, if the response breaks off. */
  read(): Buffer | undefined | Promise<Buffer | undefined>;
  /** Closes it. */
  stop(): void;
}

/** Response for an operation, including statuses from 400 to 599. Errors are {@link UpstreamError}s. */
export interface UpstreamResponse extends AttemptResponse {
  /** Readable once. Pausing applies back pressure to the vendor; stopping closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /** Reserves this much memory in addition to that of `readAll`, for values derived from its bytes; throws if there is not enough. */
  reserve(bytes: number): void;
  /** Releases the memory of the read bytes, if no value is derived from them. */
  release(): void;
  reportProgress(progress: StreamProgress): void;
}

/** Maximum wait for the usage after a complete response, in milliseconds. */
const TRAILING_USAGE_MS = 1_000;

/** Maximum wait for the end marker after the last finish reason, in milliseconds. */
const END_MARKER_MS = 2_000;

/** Maximum wait for the end of a response after its end marker, in milliseconds; the connection is reused if it ends in time. */
const DRAIN_MS = 500;

/** Maximum bytes after an end marker that are discarded to reuse a connection. */
const MAX_DRAINED_BYTES = 64 * 1024;

/** Open websocket. */
type OpenSocket = { send(text: string): Promise<void> };

interface AttemptOptions {
  readonly timeouts: Timeouts;
  /** Ends the attempt at once, in any phase. */
  readonly signal: AbortSignal;
  /** Maximum size of the response. */
  readonly maxBytes: number;
  readonly budget: ResponseBudget;
  /** Resolves when a whole response may be freed; undefined frees it after reading. */
  readonly heldUntil: Promise<void> | undefined;
}

/**
 * Attempt, from its creation to the last byte of its response. The attempt is itself the response once the head has arrived. It
 * fails once: by an error, a deadline, the caller's disconnect, or the gateway's shutdown. It then stops.
 */
export class Attempt implements UpstreamResponse, Linked<Attempt> {
  status = 0;
  headers: ResponseHeaders = {};
  readonly timeouts: Timeouts;
  /** Time of its last deadline. */
  readonly dueMs: number;
  source: Source | undefined;
  /** Set if the attempt became a websocket. */
  socket: OpenSocket | undefined;
  /** Reason of the failure; undefined while running and after a success. */
  error: UpstreamError | undefined;
  previous: Attempt | undefined = undefined;
  next: Attempt | undefined = undefined;
  isLinked = false;
  readonly #options: AttemptOptions;
  readonly #running: RunningAttempts;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (error: unknown) => void;
  readonly #onAbort: () => void;
  #stop: AbortController | undefined;
  #isOver = false;
  #wasStopped = false;
  /** True if its reader stopped early. */
  #isCancelled = false;
  #heldBytes = 0;
  #isReleased = false;
  #progress: StreamProgress = 'open';
  /** Timer for the wait after the last report; undefined before the first report. */
  #watch: NodeJS.Timeout | undefined;
  /** Start of the pending read; undefined between reads. */
  #readSinceMs: number | undefined;
  /** Total wait of reads since the last report. Time of a slow reader does not count as silence of the vendor. */
  #waitedMs = 0;
  #isDraining = false;

  /** Stays in `running` until its end. Resolves with itself when the head has arrived; rejects if it fails before. */
  constructor(
    options: AttemptOptions,
    running: RunningAttempts,
    resolve: (response: UpstreamResponse) => void,
    reject: (error: unknown) => void,
  ) {
    const { timeouts, signal } = options;
    this.#options = options;
    this.#running = running;
    this.#resolve = resolve;
    this.#reject = reject;
    this.timeouts = timeouts;
    this.dueMs = performance.now() + timeouts.totalMs;
    this.#onAbort = () => void this.abort('the call was aborted', signal.reason);
    running.add(this);
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Fires when the attempt must stop, in any phase. Created on demand: the network does not need it. */
  get signal(): AbortSignal {
    if (!this.#stop) {
      this.#stop = new AbortController();
      if (this.#wasStopped) this.#stop.abort(this.error);
    }
    return this.#stop.signal;
  }

  /** Stops the attempt; returns the error to throw, which is its first failure. */
  fail(message: string, options: Omit<UpstreamErrorOptions, 'sent'>): UpstreamError {
    const error = this.error ?? new UpstreamError(message, { ...options, sent: this.source?.isSent() ?? false });
    if (!this.#isOver) this.error = error;
    this.#end(true);
    this.#reject(error);
    return error;
  }

  /** Fails because of an external abort. */
  abort(message: string, cause?: unknown): UpstreamError {
    return this.fail(message, { failure: 'upstream_error', phase: 'aborted', cause });
  }

  /** Fails because of an expired deadline. */
  expire(phase: keyof typeof EXPIRED, cause?: unknown): UpstreamError {
    const message = `${EXPIRED[phase]} within ${this.timeouts[`${phase}Ms`]} ms`;
    return this.fail(message, { failure: 'timeout', phase, cause });
  }

  /** Fails with an error of a socket, undici or a transport, in the phase `phase` of the response. */
  explain(cause: unknown, phase: keyof typeof BROKEN): UpstreamError {
    const expired = DEADLINE_CODES.get(errorCode(cause));
    if (expired) return this.expire(expired, cause);
    return this.fail(BROKEN[phase], { failure: 'upstream_error', phase, cause });
  }

  /** Ends because the request cannot be sent as it is: an error of configuration or codec. */
  refuse(error: unknown): void {
    this.destroy();
    this.#reject(error);
  }

  /** Accepts the head of the response; fails if the head makes the body unusable. */
  open(status: number, headers: ResponseHeaders): void {
    this.status = status;
    this.headers = headers;
    const encoding = headers['content-encoding']?.trim().toLowerCase();
    // Requests ask for `identity`; nothing here decodes an encoding.
    const isEncoded = encoding !== undefined && encoding !== '' && encoding !== 'identity';
    if (status >= 300 && status < 400)
      this.fail(`the provider returned a redirect (${status}), which is not followed`, REFUSED);
    else if (status === 204 || status === 205)
      this.fail(`the provider returned status ${status}, which has no content`, REFUSED);
    else if (Number(headers['content-length']) > this.#options.maxBytes) this.#failTooLong(this.#options.maxBytes);
    else if (isEncoded && status < 400) this.fail('the provider returned an unrequested content-encoding', USELESS);
    else {
      // An encoded error page is still an error: its status counts, its text is dropped.
      if (isEncoded) this.destroy();
      this.#resolve(this);
    }
  }

  get send(): AttemptResponse['send'] {
    const { socket } = this;
    return socket && ((text) => socket.send(text));
  }

  get body(): AsyncIterable<Buffer> {
    return this.#readBody();
  }

  async *#readBody(): AsyncGenerator<Buffer> {
    const { maxBytes } = this.#options;
    let size = 0;
    try {
      for (;;) {
        if (this.#watch) this.#readSinceMs = performance.now();
        const part = await this.source?.read();
        if (this.#readSinceMs !== undefined) {
          this.#waitedMs += performance.now() - this.#readSinceMs;
          this.#readSinceMs = undefined;
        }
        if (part === undefined || this.#isCancelled) break;
        size += part.length;
        if (size > maxBytes) throw this.#failTooLong(maxBytes);
        yield part;
        if (this.#progress === 'complete') return;
      }
      this.#end(false);
    } catch (error) {
      if (!this.#isCancelled) throw this.explain(error, 'body');
    } finally {
      // Releases the memory of an unfinished event.
      if (this.#heldBytes > 0) this.release();
      if (this.#progress === 'complete' && !this.#isOver) void this.#drain();
      else this.destroy();
    }
  }

  reportProgress(progress: StreamProgress): void {
    const before = this.#progress;
    if (progress === before && progress !== 'open') return;
    this.#progress = progress;
    this.#waitedMs = 0;
    if (this.#isOver || progress === 'complete' || (this.#watch && progress === 'open')) return;
    clearTimeout(this.#watch);
    this.#watchFor(this.#timeoutMs());
  }

  /** Returns the maximum wait for the next event. */
  #timeoutMs(): number {
    if (this.#progress === 'finished') return END_MARKER_MS;
    return this.#progress === 'ending' ? TRAILING_USAGE_MS : this.timeouts.idleMs;
  }

  #watchFor(ms: number): void {
    this.#watch = setTimeout(() => this.#checkTimeout(), Math.ceil(ms)).unref();
  }

  /** One timer serves all events of a stream: it restarts if events arrived in the meantime. */
  #checkTimeout(): void {
    const readingMs = this.#readSinceMs === undefined ? 0 : performance.now() - this.#readSinceMs;
    const leftMs = this.#timeoutMs() - this.#waitedMs - readingMs;
    if (this.#progress === 'complete') return;
    if (leftMs > 0) this.#watchFor(leftMs);
    else if (this.#progress === 'open') this.expire('idle');
    else this.destroy();
  }

  /** Briefly discards bytes after a complete response. A connection whose response ends in time is reused, others are closed. */
  async #drain(): Promise<void> {
    this.#isDraining = true;
    const timer = setTimeout(() => this.#end(true), DRAIN_MS).unref();
    try {
      for (let size = 0; size <= MAX_DRAINED_BYTES; ) {
        const next = this.source?.read();
        const part = next instanceof Promise ? await next : next;
        if (part === undefined) {
          this.#end(false);
          break;
        }
        size += part.length;
      }
    } catch {
      // The response was already complete.
    } finally {
      clearTimeout(timer);
      this.#end(true);
    }
  }

  /** Available bytes are read synchronously: a small response costs one promise. */
  async readAll(limit: number = this.#options.maxBytes): Promise<Buffer> {
    const maxBytes = Math.min(limit, this.#options.maxBytes);
    const parts: Buffer[] = [];
    let size = 0;
    try {
      for (;;) {
        const next = this.source?.read();
        const part = next instanceof Promise ? await next : next;
        if (part === undefined || this.#isCancelled) break;
        size += part.length;
        if (size > maxBytes) throw this.#failTooLong(maxBytes);
        this.reserve(part.length * MEMORY_PER_BYTE);
        parts.push(part);
      }
      this.#end(false);
    } catch (error) {
      this.release();
      if (!this.#isCancelled) {
        if (!isGatewayError(error)) throw this.explain(error, 'body');
        this.destroy();
        throw error;
      }
    }
    const { heldUntil } = this.#options;
    if (heldUntil) void heldUntil.then(() => this.release());
    else this.release();
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, size);
  }

  reserve(bytes: number): void {
    const { budget } = this.#options;
    if (this.#isReleased) return;
    if (this.#heldBytes + bytes > budget.limitBytes) throw new GatewayError('provider_invalid_response', TOO_LARGE);
    if (budget.reservedBytes + bytes > budget.limitBytes)
      throw new GatewayError('overloaded', NO_ROOM, { retryAfterMs: 1000 });
    this.#heldBytes += bytes;
    budget.reservedBytes += bytes;
  }

  release(): void {
    this.#isReleased = true;
    this.#options.budget.reservedBytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }

  /** Stops the attempt because the rest is not needed. No effect after its end. */
  destroy(): void {
    if (this.#isDraining) return;
    this.#isCancelled ||= !this.#isOver;
    this.#end(true);
  }

  /** Ends the attempt after its response. */
  end(): void {
    this.#end(false);
  }

  #failTooLong(maxBytes: number): UpstreamError {
    return this.fail(`the response is longer than ${maxBytes} bytes`, USELESS);
  }

  #end(isStopped: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#watch);
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#running.attempts.remove(this);
    if (!isStopped) return;
    this.#wasStopped = true;
    this.source?.stop();
    this.#stop?.abort(this.error);
  }
}

/** Serves a request by a provider's own {@link Transport}, with the same deadlines and abort as the network. */
export async function sendByTransport(transport: Transport, request: HttpRequest, attempt: Attempt): Promise<void> {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  attempt.source = {
    isSent: () => true,
    async read() {
      const next = await inTime(chunks?.next(), 'idle', attempt);
      if (!next || next.done) return undefined;
      const { buffer, byteOffset, byteLength } = next.value;
      return Buffer.from(buffer, byteOffset, byteLength);
    },
    // Not awaited: a hanging transport would never settle.
    stop: () => void chunks?.return?.().catch(() => {}),
  } satisfies Source;
  try {
    const { status, headers, body } = await inTime(transport(request, attempt.signal), 'firstByte', attempt);
    chunks = body[Symbol.asyncIterator]();
    attempt.open(status, headers);
  } catch (error) {
    attempt.explain(error, 'firstByte');
  }
}

/** Waits for work until its deadline expires or the attempt stops. */
function inTime<T>(work: T | Promise<T>, phase: 'firstByte' | 'idle', attempt: Attempt): Promise<T> {
  const { signal, timeouts } = attempt;
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => attempt.expire(phase), timeouts[`${phase}Ms`]).unref();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
    void Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      });
  });
}

const USELESS = Object.freeze({ failure: 'upstream_error', phase: 'body' } as const);

/** The vendor reported that it did no work. */
const REFUSED = Object.freeze({ ...USELESS, refused: true });

/** Running attempts, with one timer for the last deadlines of all. */
export class RunningAttempts {
  readonly attempts = new LinkedList<Attempt>();
  #timer: NodeJS.Timeout | undefined;
  /** Time of the timer. */
  #nextMs = Number.POSITIVE_INFINITY;

  add(attempt: Attempt): void {
    this.attempts.add(attempt);
    if (attempt.dueMs < this.#nextMs) this.#wait(attempt.dueMs);
  }

  /** Aborts all of them. */
  abort(message: string): void {
    for (const attempt of this.attempts.toArray()) attempt.abort(message);
    clearTimeout(this.#timer);
  }

  #wait(untilMs: number): void {
    clearTimeout(this.#timer);
    this.#nextMs = untilMs;
    this.#timer = setTimeout(() => this.#expire(), Math.ceil(untilMs - performance.now())).unref();
  }

  #expire(): void {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const attempt of this.attempts.toArray())
      if (attempt.dueMs <= performance.now()) attempt.expire('total');
      else nextMs = Math.min(nextMs, attempt.dueMs);
    this.#nextMs = Number.POSITIVE_INFINITY;
    if (nextMs < this.#nextMs) this.#wait(nextMs);
  }
}

/** Memory limit for whole responses of providers in one process; streamed responses need none. */
export interface ResponseBudget {
  readonly limitBytes: number;
  reservedBytes: number;
}

/** Share of the heap for responses. */
const HEAP_SHARE = 1 / 4;

/** Bytes of memory per byte of a response: its bytes, its text, and the values derived from it. */
export const MEMORY_PER_BYTE = 3;

/** Creates the limit of one process; its size derives from Node's `--max-old-space-size`. */
export function createResponseBudget(
  limitBytes: number = getHeapStatistics().heap_size_limit * HEAP_SHARE,
): ResponseBudget {
  return { limitBytes, reservedBytes: 0 };
}

const TOO_LARGE = 'The response of the provider exceeds the memory limit of one response.';
const NO_ROOM = 'The gateway has no memory for another response of a provider. Try again in a moment.';

/** Returns the code of an error of Node or undici. */
export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

const EXPIRED = Object.freeze({
  connect: 'the provider did not accept a connection',
  firstByte: 'the provider did not start a response',
  idle: 'the provider sent nothing',
  total: 'the provider did not finish its response',
});

const BROKEN = Object.freeze({
  connect: 'the provider could not be reached',
  firstByte: 'the provider closed the connection without a response',
  body: 'the provider interrupted its response',
});

/** Expired deadline, by the error code of a socket or undici. */
const DEADLINE_CODES: ReadonlyMap<unknown, 'connect' | 'firstByte' | 'idle'> = new Map([
  ['ETIMEDOUT', 'connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'connect'],
  ['UND_ERR_HEADERS_TIMEOUT', 'firstByte'],
  ['UND_ERR_BODY_TIMEOUT', 'idle'],
]);

interface UpstreamErrorOptions {
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  readonly sent: boolean;
  /** True if the response's status means that the vendor did no work, so nothing is owed. */
  readonly refused?: boolean;
  /** Underlying error; for logs only, because it may name hosts. */
  readonly cause?: unknown;
}

/** Failed attempt, without a response or with a partial one. Its message contains no host, key or path. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  /** True if the request may have reached the vendor, and so may have a cost. */
  readonly sent: boolean;
  /** True if the vendor reported that it did no work (a redirect, no content), so nothing is owed. */
  readonly refused: boolean;

  constructor(message: string, options: UpstreamErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.failure = options.failure;
    this.phase = options.phase;
    this.sent = options.sent;
    this.refused = options.refused ?? false;
  }
}
