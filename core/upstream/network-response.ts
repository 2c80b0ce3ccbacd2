import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { ResponseHeaders, TransportResponse } from '../contract/provider.ts';

/** How many bytes may wait for their reader before the vendor is not listened to any more. */
const MAX_WAITING_BYTES = 64 * 1024;

interface Reader {
  readonly resolve: (result: IteratorResult<Buffer, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

const END: IteratorResult<Buffer, undefined> = Object.freeze({ done: true, value: undefined });

/**
 * One response, as undici's dispatcher tells of it: its head once, then its body, which one reader iterates over; what one read
 * of the socket brought comes together. By a `Readable` (`client.request`) the same takes a tenth of a call's CPU more.
 */
export class NetworkResponse implements Dispatcher.DispatchHandler, AsyncIterableIterator<Buffer, undefined> {
  /** Resolves when the status and the headers are there; rejects when they never come. */
  readonly head: Promise<TransportResponse>;
  readonly #onEnd: (isWhole: boolean) => void;
  #tellHead: (head: TransportResponse) => void = () => {};
  #failHead: (error: Error) => void = () => {};
  #hasHead = false;
  #controller: Dispatcher.DispatchController | undefined;
  #parts: Buffer[] = [];
  #waitingBytes = 0;
  #reader: Reader | undefined;
  #isWaking = false;
  #isWhole = false;
  #isRead = false;
  #error: Error | undefined;

  /** `onEnd` is called when the body was read to its end, or breaks off after the head. */
  constructor(onEnd: (isWhole: boolean) => void) {
    this.#onEnd = onEnd;
    this.head = new Promise((resolve, reject) => {
      this.#tellHead = resolve;
      this.#failHead = reject;
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // 1xx: the response comes later.
    if (status < 200) return;
    // A header that came more than once is a list; ours are text.
    for (const name of Object.keys(headers)) {
      const value = headers[name];
      if (Array.isArray(value)) headers[name] = value.join(', ');
    }
    this.#hasHead = true;
    this.#tellHead({ status, headers: headers as ResponseHeaders, body: this });
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    this.#parts.push(part);
    this.#waitingBytes += part.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) controller.pause();
    this.#wake();
  }

  onResponseEnd(): void {
    this.#isWhole = true;
    this.#wake();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#error = error;
    if (this.#hasHead) this.#onEnd(false);
    else this.#failHead(error);
    this.#wake();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    return new Promise((resolve, reject) => {
      const reader = { resolve, reject };
      if (!this.#serve(reader)) this.#reader = reader;
    });
  }

  /** Serves the reader who waits, when undici has told all that it read. */
  #wake(): void {
    if (this.#isWaking || !this.#reader) return;
    this.#isWaking = true;
    queueMicrotask(() => {
      this.#isWaking = false;
      if (this.#reader && this.#serve(this.#reader)) this.#reader = undefined;
    });
  }

  #serve({ resolve, reject }: Reader): boolean {
    const parts = this.#parts;
    if (parts.length > 0) {
      resolve({ done: false, value: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts) });
      this.#parts = [];
      this.#waitingBytes = 0;
      this.#controller?.resume();
    } else if (this.#error) reject(this.#error);
    else if (this.#isWhole) {
      if (!this.#isRead) this.#onEnd(true);
      this.#isRead = true;
      resolve(END);
    } else return false;
    return true;
  }
}
