import { NOT_YET, next, type Pull } from './pull.ts';
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

/**
 * The bytes of one answer, read once: by `read`, which never waits, or by iterating. To an iterator, what came in with one
 * read of the socket comes as one buffer. A reader that stops reading stops the socket.
 */
export class UpstreamBody implements AsyncIterableIterator<Buffer, undefined>, Pull<Buffer> {
  readonly #source: BodySource;
  #chunks: Buffer[] = [];
  #size = 0;
  #paused = false;
  #ended = false;
  #error: UpstreamError | undefined;
  #listener: (() => void) | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  push(chunk: Buffer): void {
    if (this.#ended) return;
    // The usual one by itself: an array that grows makes room for seventeen.
    if (this.#size === 0) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#tell();
    if (this.#size > HIGH_WATER_BYTES && !this.#paused) {
      this.#paused = true;
      this.#source.pause();
    }
  }

  end(): void {
    this.#ended = true;
    this.#tell();
  }

  /** Ends with an error, after what was received before it. `now` forgets that as well. */
  fail(error: UpstreamError, now: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (now) this.#clear();
    this.#tell();
  }

  /** All that has come and was not read. Throws the {@link UpstreamError} that the body ended with, once. */
  read(): Buffer | undefined | typeof NOT_YET {
    if (this.#size > 0) {
      const [first] = this.#chunks;
      const bytes = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks, this.#size);
      this.#clear();
      if (this.#paused && !this.#ended) {
        this.#paused = false;
        this.#source.resume();
      }
      return bytes;
    }
    if (!this.#error) return this.#ended ? undefined : NOT_YET;
    const error = this.#error;
    this.#error = undefined;
    throw error;
  }

  /**
   * Calls `listener` once, when `read` has bytes, the end or an error to tell: from within the call that brought them, or
   * soon when they are there already. For one reader at a time.
   */
  whenReadable(listener: () => void): void {
    if (this.#size > 0 || this.#ended) queueMicrotask(listener);
    else this.#listener = listener;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** For readers that wait: they go on in a microtask, after all the chunks of one read of the socket. */
  async next(): Promise<IteratorResult<Buffer, undefined>> {
    const value = await next(this);
    return value ? { done: false, value } : DONE;
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
    this.#tell();
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
    for (let part = await next(this); part; part = await next(this)) {
      size += part.length;
      if (size > maxBytes) {
        this.cancel();
        throw new UpstreamError(`the answer is longer than ${maxBytes} bytes`, {
          failure: 'upstream_error',
          phase: 'body',
          sent: true,
        });
      }
      parts.push(part);
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, size);
  }

  #tell(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  #clear(): void {
    this.#chunks = [];
    this.#size = 0;
  }
}
