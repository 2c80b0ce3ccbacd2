import { UpstreamError } from './upstream-error.ts';

/** Who fills the body; told when to stop, go on, or give up. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** The reader wants no more. */
  cancel(): void;
}

/** Above this many unread bytes the source is paused; it goes on once they are read. */
const HIGH_WATER_BYTES = 64 * 1024;

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

interface Waiter {
  resolve(result: IteratorResult<Buffer, undefined>): void;
  reject(error: unknown): void;
}

/**
 * The bytes of one answer, read once. What came in with one read of the socket comes out as one buffer, so that a reader
 * wakes once and can write once; a reader that stops reading stops the socket.
 */
export class UpstreamBody implements AsyncIterableIterator<Buffer, undefined> {
  readonly #source: BodySource;
  #chunks: Buffer[] = [];
  #size = 0;
  #paused = false;
  #ended = false;
  #error: UpstreamError | undefined;
  #waiter: Waiter | undefined;
  #woken = false;

  constructor(source: BodySource) {
    this.#source = source;
  }

  push(chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#waiter) this.#wake();
    else if (this.#size > HIGH_WATER_BYTES && !this.#paused) {
      this.#paused = true;
      this.#source.pause();
    }
  }

  end(): void {
    this.#ended = true;
    if (this.#waiter) this.#wake();
  }

  /** Ends with an error, after what was received before it. `now` forgets that as well. */
  fail(error: UpstreamError, now: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (now) this.#clear();
    if (this.#waiter) this.#wake();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    return new Promise((resolve, reject) => {
      if (this.#size > 0 || this.#ended) this.#deliver({ resolve, reject });
      else this.#waiter = { resolve, reject };
    });
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.cancel();
    return DONE;
  }

  /** Drops what is unread and hangs up. Harmless after the end. */
  cancel(): void {
    this.#clear();
    if (!this.#ended) this.#source.cancel();
    this.#ended = true;
    if (this.#waiter) this.#wake();
  }

  /** The whole rest; hangs up and throws an {@link UpstreamError} of phase `body` beyond `maxBytes`. */
  readAll(maxBytes: number): Promise<Buffer> {
    const [only] = this.#chunks;
    // A short answer is there in one piece when its head is.
    if (only && this.#chunks.length === 1 && this.#ended && !this.#error && this.#size <= maxBytes) {
      this.#clear();
      return Promise.resolve(only);
    }
    return this.#readRest(maxBytes);
  }

  async #readRest(maxBytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    for (let part = await this.next(); !part.done; part = await this.next()) {
      size += part.value.length;
      if (size > maxBytes) {
        this.cancel();
        throw new UpstreamError(`the answer is longer than ${maxBytes} bytes`, {
          failure: 'upstream_error',
          phase: 'body',
          sent: true,
        });
      }
      parts.push(part.value);
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, size);
  }

  /** Later in this tick, so that all chunks of one socket read are handed over together. */
  #wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    queueMicrotask(() => {
      this.#woken = false;
      const waiter = this.#waiter;
      this.#waiter = undefined;
      if (waiter) this.#deliver(waiter);
    });
  }

  #deliver(waiter: Waiter): void {
    if (this.#size > 0) {
      const [first] = this.#chunks;
      const value = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks, this.#size);
      this.#clear();
      waiter.resolve({ done: false, value });
      if (this.#paused && !this.#ended) {
        this.#paused = false;
        this.#source.resume();
      }
    } else if (this.#error) {
      const error = this.#error;
      this.#error = undefined;
      waiter.reject(error);
    } else waiter.resolve(DONE);
  }

  #clear(): void {
    this.#chunks = [];
    this.#size = 0;
  }
}
