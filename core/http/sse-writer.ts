import type { ServerResponse } from 'node:http';
import type { ErrorBody } from '../contract/errors.ts';
import { formatError, KEEP_ALIVE } from '../upstream/event-reader.ts';

export interface SseWriterOptions {
  /** Silence after which a comment is sent; 15 s unless told. */
  readonly keepAliveMs?: number;
  /** What is sent then; a comment unless set. */
  readonly keepAlive?: string;
  /** How long a reader may take nothing before it is cut; 60 s unless told. */
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

const HEAD = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
});

/** Unsent bytes of this tick above which a writer is told to wait. */
const MAX_QUEUED = 64 * 1024;

/**
 * A writer over the plain response: with Koa, set `ctx.respond = false` and pass `ctx.res`, because a stream in
 * `ctx.body` costs more per chunk and drops the connection on an error instead of saying what it was.
 */
export function createSseWriter(res: ServerResponse, options: SseWriterOptions = {}): SseWriter {
  const { keepAliveMs = 15_000, keepAlive = KEEP_ALIVE, writeIdleMs = 60_000, signal } = options;
  let queue: (string | Uint8Array)[] = [];
  let queued = 0;
  let scheduled = false;
  let started = false;
  let closed = res.destroyed || res.writableEnded;
  let writtenAt = performance.now();
  let wakeUps: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;

  function start(): void {
    if (closed || started) return;
    started = true;
    if (res.headersSent) return;
    res.writeHead(200, { ...HEAD, ...options.headers });
    res.flushHeaders();
  }

  /** One timer a stream, armed again for what is left: a write only notes the time. */
  function watch(afterMs: number): void {
    timer = setTimeout(() => {
      const silentMs = performance.now() - writtenAt;
      // Once ended the timer lives only as long as frames are left that the reader does not take.
      if (res.writableNeedDrain || closed) {
        if (silentMs >= writeIdleMs) res.destroy();
        else watch(writeIdleMs - silentMs);
      } else {
        const isSilent = silentMs >= keepAliveMs;
        // Not before our own head: until then the answer can still be another one, such as an error with its status.
        if (isSilent && started) write(keepAlive);
        watch(Math.min(isSilent ? keepAliveMs : keepAliveMs - silentMs, writeIdleMs));
      }
    }, afterMs + 1);
    timer.unref();
  }

  function write(frames: string | Uint8Array): boolean {
    if (closed) return true;
    queue.push(frames);
    queued += frames.length;
    if (!scheduled) {
      scheduled = true;
      // After the microtasks of this tick: all that one read of the upstream led to goes out with one write.
      process.nextTick(flush);
    }
    return queued < MAX_QUEUED && !res.writableNeedDrain;
  }

  function flush(): void {
    scheduled = false;
    if (closed || queue.length === 0) return;
    const frames = joinFrames(queue);
    queue = [];
    queued = 0;
    start();
    if (!res.writableNeedDrain) writtenAt = performance.now();
    // Else Node holds what it was given until the next turn.
    res.cork();
    const isTaken = res.write(frames);
    res.uncork();
    if (isTaken) wake();
  }

  function wake(): void {
    const waiting = wakeUps;
    wakeUps = [];
    for (const wakeUp of waiting) wakeUp();
  }

  function close(): void {
    closed = true;
    queue = [];
    signal?.removeEventListener('abort', wake);
    wake();
  }

  function end(): void {
    if (closed) return;
    flush();
    start();
    res.end();
    close();
  }

  function forget(): void {
    close();
    clearTimeout(timer);
  }

  // A socket that breaks while we write is the reader's doing, and `close` follows.
  res.on('error', () => {});
  res.on('close', forget);
  // Until then a reader may still leave the last frames untaken, and is cut for it.
  res.on('finish', forget);
  res.on('drain', () => {
    writtenAt = performance.now();
    wake();
  });
  signal?.addEventListener('abort', wake, { once: true });
  if (!closed) watch(Math.min(keepAliveMs, writeIdleMs));

  return {
    start,
    write,
    drained() {
      if (closed || signal?.aborted || (queued < MAX_QUEUED && !res.writableNeedDrain)) return Promise.resolve();
      return new Promise((resolve) => wakeUps.push(resolve));
    },
    end,
    fail(body) {
      write(formatError(body));
      end();
    },
    get closed() {
      return closed;
    },
    get started() {
      return started;
    },
  };
}

function joinFrames(frames: readonly (string | Uint8Array)[]): string | Uint8Array {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return first;
  if (frames.every((frame) => typeof frame === 'string')) return frames.join('');
  return Buffer.concat(frames.map((frame) => (typeof frame === 'string' ? Buffer.from(frame) : frame)));
}
