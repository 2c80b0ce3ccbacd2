import type { ServerResponse } from 'node:http';
import type { ErrorBody } from './errors.ts';

export interface SseWriterOptions {
  /** Silence after which a keep-alive is sent; default: 15 s. */
  readonly keepAliveMs?: number;
  /** Text of the keep-alive; default: a comment. */
  readonly keepAlive?: string;
  /** Time without progress after which the connection of a slow reader is closed; default: 60 s. */
  readonly writeIdleMs?: number;
  /** Wakes a writer that waits for the reader. */
  readonly signal?: AbortSignal;
  /** Added to the head, or replacing its defaults. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Called just before the head is sent. With it, a keep-alive may start the stream; without it, only a write does. */
  readonly onStart?: () => void;
}

/** Writes one event stream to one response. Does not throw after the reader has disconnected. */
export interface SseWriter {
  /** Sends the head now; default: with the first write. */
  start(): void;
  /** Queues complete frames; writes of one tick are sent together. False: wait for {@link drained}. */
  write(frames: string | Uint8Array): boolean;
  /** Resolves when the reader has received all writes, has disconnected, or the signal fired. */
  drained(): Promise<void>;
  end(): void;
  /** Writes one error frame and ends the stream. */
  fail(body: ErrorBody): void;
  /** Closes the connection after the last frames, before the end of the response: readers see that it is not complete. */
  breakOff(): void;
  /** True if nothing can be written any more. */
  readonly closed: boolean;
  /** True if the head was sent, so that an error can no longer set the status. */
  readonly started: boolean;
}

/** Keep-alive comment. */
const KEEP_ALIVE = ': keep-alive\n\n';

const HEAD = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
});

/** Unsent bytes per tick above which a writer must wait. */
const MAX_QUEUED = 64 * 1024;

/**
 * Creates a writer for the plain response. With Koa, set `ctx.respond = false` and pass `ctx.res`: a stream in `ctx.body` drops the
 * connection on an error instead of reporting it.
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
  /** Fires after a period without writes. */
  #silence: NodeJS.Timeout | undefined;
  /** Runs while data waits for the reader; the connection is closed when it fires. */
  #stuck: NodeJS.Timeout | undefined;

  constructor(res: ServerResponse, options: SseWriterOptions) {
    this.#res = res;
    this.#options = options;
    this.closed = res.destroyed || res.writableEnded;
    if (this.closed) return;
    // A socket that fails during a write was closed by the reader, and `close` follows.
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
    this.#options.onStart?.();
    this.#res.writeHead(200, { ...HEAD, ...this.#options.headers });
    this.#res.flushHeaders();
  }

  write(frames: string | Uint8Array): boolean {
    if (this.closed) return true;
    // Runs after the microtasks of this tick: all output of one upstream read is sent in one write.
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

  breakOff(): void {
    if (this.closed) return;
    this.#flush();
    this.start();
    this.#res.write('', () => this.#res.destroy());
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

  /** Without `onStart`, sends nothing before the head: the response may still become another one. */
  #onSilence(): void {
    const canStart = this.#options.onStart !== undefined && !this.#res.headersSent;
    if ((this.started || canStart) && !this.#isBehind()) this.write(this.#options.keepAlive ?? KEEP_ALIVE);
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

  /** Ends the writer: all data was sent, or the reader disconnected. */
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
