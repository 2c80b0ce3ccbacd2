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

/** What carries an attempt: a socket, or a provider's own transport. */
export interface Source {
  /** Whether the request may have reached the vendor. */
  isSent(): boolean;
  /** The next bytes, at once where they are there; undefined at the end. Throws, or rejects, when the response breaks off. */
  read(): Buffer | undefined | Promise<Buffer | undefined>;
  /** Cuts it off. */
  stop(): void;
}

/** A response as an operation sees it, and also one of a bad status, 400 to 599. Errors are {@link UpstreamError}s. */
export interface UpstreamResponse extends AttemptResponse {
  /** Read once. Who stops reading stops the vendor, who leaves hangs up. */
  readonly body: AsyncIterable<Buffer>;
  /** Reserves so much more memory than `readAll` did, for what is made of its bytes; throws where there is none. */
  reserve(bytes: number): void;
  /** Gives back the memory of what was read, when nothing is made of it after all. */
  release(): void;
  reportProgress(progress: StreamProgress): void;
}

/** Longest wait for the usage behind a whole answer, in milliseconds. */
const TRAILING_USAGE_MS = 1_000;

/** Longest wait for the end marker behind the last finish reason, in milliseconds. */
const END_MARKER_MS = 2_000;

/** Longest wait for the end of a response behind its end marker, in milliseconds: a connection that ends in time is kept. */
const DRAIN_MS = 500;

/** The most bytes behind an end marker that are read and dropped to keep a connection. */
const MAX_DRAINED_BYTES = 64 * 1024;

/** A websocket that is open. */
type OpenSocket = { send(text: string): Promise<void> };

interface AttemptOptions {
  readonly timeouts: Timeouts;
  /** Ends the attempt at once, whatever it is doing. */
  readonly signal: AbortSignal;
  /** Of the response. */
  readonly maxBytes: number;
  readonly budget: ResponseBudget;
  /** Until when what was read as a whole is kept; only while it is read when undefined. */
  readonly heldUntil: Promise<void> | undefined;
}

/**
 * One attempt, from when it is made until the last byte of its response, which it is itself once the head is there. It fails once: by
 * what it meets, because a deadline has passed, because the caller left, or because the gateway closes. Then it is stopped.
 */
export class Attempt implements UpstreamResponse, Linked<Attempt> {
  status = 0;
  headers: ResponseHeaders = {};
  readonly timeouts: Timeouts;
  /** When its last deadline passes. */
  readonly dueMs: number;
  source: Source | undefined;
  /** Where the attempt has become a websocket. */
  socket: OpenSocket | undefined;
  /** Why it failed; undefined while it goes on and when all went well. */
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
  /** Whether its reader wanted no more. */
  #wasLeft = false;
  #heldBytes = 0;
  #isReleased = false;
  #progress: StreamProgress = 'open';
  /** Looks after what was reported last; undefined before the first report. */
  #watch: NodeJS.Timeout | undefined;
  /** When the read began that is waited for; undefined between reads. */
  #readSinceMs: number | undefined;
  /** Time that reads have waited since the last report. A reader that takes its time is no silence of the vendor's. */
  #waitedMs = 0;
  #isDraining = false;

  /** Stays in `running` until it is over. Resolves with itself when the head is there, rejects when it fails before. */
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

  /** Fires when the attempt is to stop whatever it is doing. Made for those who ask for it: the network does not. */
  get signal(): AbortSignal {
    if (!this.#stop) {
      this.#stop = new AbortController();
      if (this.#wasStopped) this.#stop.abort(this.error);
    }
    return this.#stop.signal;
  }

  /** Stops the attempt; returns the error to throw, which is the first that it failed with. */
  fail(message: string, options: Omit<UpstreamErrorOptions, 'sent'>): UpstreamError {
    const error = this.error ?? new UpstreamError(message, { ...options, sent: this.source?.isSent() ?? false });
    if (!this.#isOver) this.error = error;
    this.#end(true);
    this.#reject(error);
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

  /** Ends because the request cannot be sent as it is: an error of configuration or codec. */
  refuse(error: unknown): void {
    this.destroy();
    this.#reject(error);
  }

  /** Takes the head of the response; fails when that makes it useless whatever its body says. */
  open(status: number, headers: ResponseHeaders): void {
    this.status = status;
    this.headers = headers;
    const encoding = headers['content-encoding']?.trim().toLowerCase();
    // We ask for `identity`; nothing here decodes anything.
    const isEncoded = encoding !== undefined && encoding !== '' && encoding !== 'identity';
    if (status >= 300 && status < 400)
      this.fail(`the provider returned a redirect (${status}), which is not followed`, REFUSED);
    else if (status === 204 || status === 205)
      this.fail(`the provider returned status ${status}, which has no content`, REFUSED);
    else if (Number(headers['content-length']) > this.#options.maxBytes) this.#outgrow(this.#options.maxBytes);
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
        if (part === undefined || this.#wasLeft) break;
        size += part.length;
        if (size > maxBytes) throw this.#outgrow(maxBytes);
        yield part;
        if (this.#progress === 'complete') return;
      }
      this.#end(false);
    } catch (error) {
      if (!this.#wasLeft) throw this.explain(error, 'body');
    } finally {
      // What an event that does not end has needed.
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
    this.#watchFor(this.#patienceMs());
  }

  /** Longest wait for the next event. */
  #patienceMs(): number {
    if (this.#progress === 'finished') return END_MARKER_MS;
    return this.#progress === 'ending' ? TRAILING_USAGE_MS : this.timeouts.idleMs;
  }

  #watchFor(ms: number): void {
    this.#watch = setTimeout(() => this.#look(), Math.ceil(ms)).unref();
  }

  /** One timer serves all events of a stream: it runs on when some came in the meantime. */
  #look(): void {
    const readingMs = this.#readSinceMs === undefined ? 0 : performance.now() - this.#readSinceMs;
    const leftMs = this.#patienceMs() - this.#waitedMs - readingMs;
    if (this.#progress === 'complete') return;
    if (leftMs > 0) this.#watchFor(leftMs);
    else if (this.#progress === 'open') this.expire('idle');
    else this.destroy();
  }

  /** Drops what follows a complete answer, for a moment: a connection whose response ends in time is kept, another one is closed. */
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
      // The answer was complete before.
    } finally {
      clearTimeout(timer);
      this.#end(true);
    }
  }

  /** What is there already is read without waiting for it: a small response is one promise. */
  async readAll(limit: number = this.#options.maxBytes): Promise<Buffer> {
    const maxBytes = Math.min(limit, this.#options.maxBytes);
    const parts: Buffer[] = [];
    let size = 0;
    try {
      for (;;) {
        const next = this.source?.read();
        const part = next instanceof Promise ? await next : next;
        if (part === undefined || this.#wasLeft) break;
        size += part.length;
        if (size > maxBytes) throw this.#outgrow(maxBytes);
        this.reserve(part.length * MEMORY_PER_BYTE);
        parts.push(part);
      }
      this.#end(false);
    } catch (error) {
      this.release();
      if (!this.#wasLeft) {
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

  /** Stops the attempt because nobody wants the rest of it. Harmless after its end. */
  destroy(): void {
    if (this.#isDraining) return;
    this.#wasLeft ||= !this.#isOver;
    this.#end(true);
  }

  /** Ends the attempt whose response does not go on. */
  end(): void {
    this.#end(false);
  }

  #outgrow(maxBytes: number): UpstreamError {
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

/** Lets a provider's own {@link Transport} serve a request, with the same deadlines and abort as the network. */
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
    // Not waited for: a transport that hangs would never come to it.
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

/** Waits for some work, until its deadline has passed or the attempt is stopped. */
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

/** The vendor says that it did no work. */
const REFUSED = Object.freeze({ ...USELESS, refused: true });

/** The attempts that go on, with one timer for the last deadline of all of them. */
export class RunningAttempts {
  readonly attempts = new LinkedList<Attempt>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires. */
  #nextMs = Number.POSITIVE_INFINITY;

  add(attempt: Attempt): void {
    this.attempts.add(attempt);
    if (attempt.dueMs < this.#nextMs) this.#wait(attempt.dueMs);
  }

  /** Ends all of them. */
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

/** The memory that answers of providers may need together, in one process; those that are streamed need none of it. */
export interface ResponseBudget {
  readonly limitBytes: number;
  reservedBytes: number;
}

/** The part of the heap that answers may need. */
const HEAP_SHARE = 1 / 4;

/** Bytes of memory for one byte of an answer: as it came, its text, and what is parsed from that or written of it. */
export const MEMORY_PER_BYTE = 3;

/** Makes the budget of one process; its size follows from Node's `--max-old-space-size`. */
export function createResponseBudget(
  limitBytes: number = getHeapStatistics().heap_size_limit * HEAP_SHARE,
): ResponseBudget {
  return { limitBytes, reservedBytes: 0 };
}

const TOO_LARGE = 'The response of the provider exceeds the memory limit of one response.';
const NO_ROOM = 'The gateway has no memory for another response of a provider. Try again in a moment.';

/** The code of an error of Node or of undici. */
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

/** Which deadline has passed, by what a socket or undici says. */
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
