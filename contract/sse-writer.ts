import type { ServerResponse } from 'node:http';
import type { ErrorBody } from './errors.ts';

export interface SseWriterOptions {
  /** Silence after which a comment is sent; 15 s unless set. */
  readonly keepAliveMs?: number;
  /** What is sent then; a comment unless set. */
  readonly keepAlive?: string;
  /** How long a reader may take nothing before it is cut; 60 s unless set. */
  readonly writeIdleMs?: number;
  /** Wakes a writer that waits for the reader. */
  readonly signal?: AbortSignal;
  /** Added to the head, or replacing parts of it. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Writes one event stream to one response. Nothing here throws when the reader is gone. */
export interface SseWriter {
  /** Sends the head now; else it goes out with the first write. */
  start(): void;
  /** Queues whole frames; what is written in one tick goes out as one. False: wait for {@link drained}. */
  write(frames: string | Uint8Array): boolean;
  /** Resolves once the reader has taken what was written, or is gone, or the signal fired. */
  drained(): Promise<void>;
  end(): void;
  /** One error frame, and the end. */
  fail(body: ErrorBody): void;
  /** Whether nothing can be written any more. */
  readonly closed: boolean;
  /** Whether the head of the stream is out, so that an error can no longer have a status of its own. */
  readonly started: boolean;
}

/** A comment that says that we are still here. */
const KEEP_ALIVE = ': keep-alive\n\n';

const HEAD = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
});

/** Unsent bytes of this tick above which a writer is told to wait. */
const MAX_QUEUED = 64 * 1024;

/**
 * A writer over the plain response: with Koa, set `ctx.respond = false` and pass `ctx.res`, because a stream in
 * `ctx.body` drops the connection on an error instead of saying what it was.
 */
export function createSseWriter(res: ServerResponse, options: SseWriterOptions = {}): SseWriter {
  return new ResponseWriter(res, options);
}

class ResponseWriter implements SseWriter {
  closed: boolean;
  started = false;
  readonly #res: ServerResponse;
  readonly #options: SseWriterOptions;
  #queue: (string | Uint8Array)[] = [];
  #queued = 0;
  #waiting: (() => void)[] = [];
  /** Fires when nothing was written for a while. */
  #silence: NodeJS.Timeout | undefined;
  /** Runs while the reader has something to take; it is cut when the timer fires. */
  #stuck: NodeJS.Timeout | undefined;

  constructor(res: ServerResponse, options: SseWriterOptions) {
    this.#res = res;
    this.#options = options;
    this.closed = res.destroyed || res.writableEnded;
    if (this.closed) return;
    // A socket that breaks while we write is the reader's doing, and `close` follows.
    res.on('error', () => {});
    res.on('drain', () => this.#onDrain());
    res.on('finish', () => this.#onOver());
    res.on('close', () => this.#onOver());
    options.signal?.addEventListener('abort', this.#wake, { once: true });
    this.#silence = setTimeout(() => this.#onSilence(), options.keepAliveMs ?? 15_000).unref();
  }

  start(): void {
    if (this.closed || this.started) return;
    this.started = true;
    if (this.#res.headersSent) return;
    this.#res.writeHead(200, { ...HEAD, ...this.#options.headers });
    this.#res.flushHeaders();
  }

  write(frames: string | Uint8Array): boolean {
    if (this.closed) return true;
    // After the microtasks of this tick: all that one read of the upstream led to goes out with one write.
    if (this.#queue.length === 0) process.nextTick(() => this.#flush());
    this.#queue.push(frames);
    this.#queued += frames.length;
    return !this.#isBehind();
  }

  drained(): Promise<void> {
    if (this.closed || this.#options.signal?.aborted || !this.#isBehind()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  end(): void {
    if (this.closed) return;
    this.#flush();
    this.start();
    this.#res.end();
    this.#close();
    this.#watchReader();
  }

  fail(body: ErrorBody): void {
    this.write(`data: ${JSON.stringify(body)}\n\n`);
    this.end();
  }

  #isBehind(): boolean {
    return this.#queued >= MAX_QUEUED || this.#res.writableNeedDrain;
  }

  #flush(): void {
    if (this.closed || this.#queue.length === 0) return;
    const frames = joinFrames(this.#queue);
    this.#queue = [];
    this.#queued = 0;
    this.start();
    this.#silence?.refresh();
    if (this.#res.write(frames)) this.#wake();
    else this.#watchReader();
  }

  #watchReader(): void {
    this.#stuck ??= setTimeout(() => this.#res.destroy(), this.#options.writeIdleMs ?? 60_000).unref();
  }

  #onDrain(): void {
    clearTimeout(this.#stuck);
    this.#stuck = undefined;
    if (this.closed) this.#watchReader();
    this.#wake();
  }

  /** Not before our own head: until then the response can still be another one, such as an error with its status. */
  #onSilence(): void {
    if (this.started && !this.#isBehind()) this.write(this.#options.keepAlive ?? KEEP_ALIVE);
    this.#silence?.refresh();
  }

  readonly #wake = (): void => {
    for (const wakeUp of this.#waiting.splice(0)) wakeUp();
  };

  #close(): void {
    this.closed = true;
    this.#queue = [];
    clearTimeout(this.#silence);
    this.#options.signal?.removeEventListener('abort', this.#wake);
    this.#wake();
  }

  /** All is sent, or the reader is gone. */
  #onOver(): void {
    this.#close();
    clearTimeout(this.#stuck);
  }
}

function joinFrames(frames: readonly (string | Uint8Array)[]): string | Uint8Array {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return first;
  if (frames.every((frame) => typeof frame === 'string')) return frames.join('');
  return Buffer.concat(frames.map((frame) => (typeof frame === 'string' ? Buffer.from(frame) : frame)));
}
