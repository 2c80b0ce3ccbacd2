import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { createEventReader, isEventStream } from '../../../contract/event-reader.ts';
import {
  type DialectDefinition,
  type ErrorCode,
  GatewayError,
  type Hold,
  isObject,
  parseJson,
  type RateWatch,
  toGatewayError,
  type Upgrade,
} from '../../../contract/index.ts';

/** Consecutive invalid messages after which the socket is closed. */
const MAX_BAD = 5;
/** Maximum number of buffered bytes in the socket before reading the response pauses. */
const MAX_BUFFERED = 1024 * 1024;
/** Maximum time without reads by the peer, in milliseconds. */
const STUCK_MS = 60_000;
/** Interval for checking a full socket, in milliseconds. */
const LOOK_MS = 50;
/** Maximum size of one read by Node from a connection, in bytes. */
const LARGEST_READ = 64 * 1024;
/** Heap overhead per read in bytes, independent of its size. */
const HEAP_PER_READ = 256;
/**
 * Time in milliseconds for which a closed peer may still send, so that it can read the reason before its connection
 * closes.
 */
const GRACE_MS = 2000;

/** Close codes for rejected bytes; 1013 is "try again later". */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = Object.freeze({
  request_too_large: 1009,
  request_timeout: 1008,
});
const TRY_LATER = 1013;

/** Meaning of a websocket message: a request, which is answered by events, or immediate events. */
export type SocketRequest<Body = unknown> = { readonly body: Body } | { readonly events: readonly object[] };

/**
 * State of one websocket of a dialect: responses that its client may refer to. It is in memory and ends with the
 * socket.
 */
export interface DialectConnection<Body = unknown> {
  /** Reads a message; undefined for one that needs no response. Throws a GatewayError for an invalid one. */
  read(message: Readonly<Record<string, unknown>>): SocketRequest<Body> | undefined;
  /** Converts an event of the running response before it is sent. */
  event(event: Readonly<Record<string, unknown>>): object;
  /** Event for a rejected request, by the error's status, body (as written by `error`) and headers. */
  refuse(status: number, body: unknown, headers: Readonly<Record<string, string>>): object;
}

/** Websocket of a dialect: each request on it is one call, as if posted to the same path with streaming. */
export interface DialectSocket<Body = unknown> {
  /** Path of one of the dialect's routes. */
  readonly path: string;
  /** `memory` reserves memory for the state that the connection keeps between requests. */
  connect(memory?: ConnectionMemory): DialectConnection<Body>;
}

/** Memory for the state of a websocket connection between requests, within its owner's budget for bodies. */
export interface ConnectionMemory {
  /** Resizes the reservation to this much JSON; returns false, without a change, if it does not fit. */
  resize(jsonBytes: number): boolean;
}

interface SessionDeps extends Pick<DialectDefinition, 'error'> {
  readonly upgrade: Upgrade;
  /** Called when no more requests are running or waiting. */
  onIdle(): void;
}

type Wanted = NonNullable<ReturnType<DialectConnection['read']>>;

interface Message {
  readonly text: string;
  readonly hold: Hold;
}

/**
 * One websocket. Its requests run one after the other, each posted to the gateway's own server, with the events sent
 * as text frames. One message may wait; reading then pauses. Received bytes are reserved from the first byte.
 */
export class SocketSession {
  readonly #socket: WebSocket;
  readonly #deps: SessionDeps;
  readonly #connection: DialectConnection;
  /** Bytes of an incomplete message. */
  readonly #arriving: Hold;
  #unfinished = 0;
  #lastRead = 0;
  #watch: RateWatch | undefined;
  #waiting: Message | undefined;
  #running: AbortController | undefined;
  #bad = 0;
  /** Reason for which no further request is accepted. */
  #refusal: GatewayError | undefined;

  constructor(socket: WebSocket, deps: SessionDeps, connection: DialectConnection) {
    this.#socket = socket;
    this.#deps = deps;
    this.#connection = connection;
    this.#arriving = deps.upgrade.memory.book();
    // Runs before the websocket's own listener, so that the bytes of a message are counted before it ends.
    deps.upgrade.stream.prependListener('data', this.#onBytes);
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    for (const name of ['ping', 'pong'] as const) socket.on(name, (data) => this.#onFrame(data.length));
    socket.once('close', () => {
      this.#watch?.stop();
      this.#arriving.release();
      this.#waiting?.hold.release();
      this.#waiting = undefined;
      this.#running?.abort();
    });
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Accepts no further request. A waiting one is rejected; the running one may finish. */
  stop(refusal: GatewayError): void {
    this.#refusal = refusal;
    const waiting = this.#takeWaiting();
    waiting?.hold.release();
    if (waiting) this.#refuse(refusal);
  }

  /** Sends the client an error outside of any response. */
  tell(error: GatewayError): void {
    this.#refuse(error);
  }

  readonly #onBytes = ({ length }: Buffer): void => {
    const { memory } = this.#deps.upgrade;
    this.#lastRead = length;
    this.#unfinished += length;
    this.#watch?.add(length);
    // Below this size, the bytes may be the rest of a message or the start of another.
    if (this.#unfinished > LARGEST_READ) this.#watch ??= memory.watchRate((error) => this.#cut(error));
    try {
      this.#arriving.grow(length * memory.heapPerByte + HEAP_PER_READ);
    } catch (thrown) {
      this.#cut(toGatewayError(thrown));
    }
  };

  /** Releases the bytes of a complete frame within or between messages. */
  #onFrame(payloadBytes: number): void {
    const bytes = frameBytes(payloadBytes);
    const { heapPerByte } = this.#deps.upgrade.memory;
    this.#unfinished = Math.max(0, this.#unfinished - bytes);
    this.#shrink(this.#arriving.bytes - bytes * heapPerByte - (this.#lastRead === bytes ? HEAP_PER_READ : 0));
  }

  /** Only the end of the last read can belong to the next message. */
  #endMessage(bytes: number): void {
    this.#watch?.stop();
    this.#watch = undefined;
    this.#unfinished = Math.min(Math.max(0, this.#unfinished - frameBytes(bytes)), this.#lastRead);
    this.#shrink(this.#unfinished && this.#unfinished * this.#deps.upgrade.memory.heapPerByte + HEAP_PER_READ);
  }

  #shrink(heapBytes: number): void {
    this.#arriving.resize(Math.min(this.#arriving.bytes, Math.max(0, heapBytes)));
  }

  /** Ends a socket whose bytes are rejected: sends the reason, and ignores further bytes. */
  #cut(error: GatewayError): void {
    this.#watch?.stop();
    this.stop(error);
    this.#refuse(error);
    this.#socket.close(CLOSE_CODES[error.code] ?? TRY_LATER, error.code);
    this.#deps.upgrade.stream.removeAllListeners('data').resume();
    setTimeout(() => this.#socket.terminate(), GRACE_MS).unref();
  }

  #onMessage(data: WebSocket.RawData, isBinary: boolean): void {
    const bytes = sizeOf(data);
    this.#endMessage(bytes);
    if (isBinary) this.#socket.close(1003, 'text frames only');
    else if (this.#refusal) this.#refuse(this.#refusal);
    else if (this.#waiting) this.#refuse(tooMany());
    else this.#take(data, bytes);
  }

  #take(data: WebSocket.RawData, bytes: number): void {
    const { memory } = this.#deps.upgrade;
    try {
      const hold = memory.book(bytes * memory.heapPerByte);
      this.#waiting = { text: textOf(data), hold };
      if (this.#running) this.#socket.pause();
      else void this.#work();
    } catch (thrown) {
      this.#refuse(toGatewayError(thrown));
    }
  }

  /** Takes the waiting message, if any, and resumes reading. */
  #takeWaiting(): Message | undefined {
    const message = this.#waiting;
    this.#waiting = undefined;
    this.#socket.resume();
    return message;
  }

  async #work(): Promise<void> {
    for (let message = this.#takeWaiting(); message; message = this.#takeWaiting()) {
      const running = new AbortController();
      this.#running = running;
      try {
        const read = this.#read(message);
        const wanted = read instanceof Promise ? await read : read;
        // A message without a request ends immediately; those after it in the same read do not wait for it.
        if (wanted) await this.#respond(wanted, running.signal);
      } catch (thrown) {
        if (!running.signal.aborted) this.#refuse(toGatewayError(thrown));
      } finally {
        message.hold.release();
      }
    }
    this.#running = undefined;
    this.#deps.onIdle();
  }

  async #respond(wanted: Wanted, signal: AbortSignal): Promise<void> {
    if ('events' in wanted) {
      for (const event of wanted.events) this.#send(event);
      await this.#drained();
      return;
    }
    const response = await this.#deps.upgrade.post(JSON.stringify(wanted.body), signal);
    if (isEventStream({ 'content-type': response.headers['content-type'] })) await this.#passOn(response);
    else
      this.#send(
        this.#connection.refuse(response.statusCode ?? 500, parseJson(await readText(response)), headersOf(response)),
      );
  }

  /**
   * Reads a message; undefined if it was rejected. Several consecutive unreadable messages end the socket. Throws
   * errors of the hold, which do not depend on the message.
   */
  #read({ text, hold }: Message): Wanted | undefined | Promise<Wanted | undefined> {
    let noRoom: unknown;
    const reserve = (heapBytes: number): void => {
      try {
        hold.grow(heapBytes);
      } catch (refused) {
        noRoom = refused;
        throw refused;
      }
    };
    const refuse = (thrown: unknown): undefined => {
      if (noRoom !== undefined) throw noRoom;
      this.#bad += 1;
      this.#refuse(toGatewayError(thrown));
      if (this.#bad >= MAX_BAD) this.#socket.close(1008, 'too many invalid messages');
    };
    const take = (message: unknown): Wanted | undefined => {
      if (!isObject(message)) throw new GatewayError('invalid_json', 'A message must be a JSON object.');
      const wanted = this.#connection.read(message);
      this.#bad = 0;
      return wanted;
    };
    try {
      const message = this.#deps.upgrade.memory.parse(text, reserve);
      return message instanceof Promise ? message.then(take).catch(refuse) : take(message);
    } catch (thrown) {
      return refuse(thrown);
    }
  }

  async #passOn(response: IncomingMessage): Promise<void> {
    const reader = createEventReader();
    for await (const bytes of response) {
      for (const event of reader.push(bytes as Buffer)) this.#passEvent(event.data);
      await this.#drained();
    }
    for (const event of reader.end()) this.#passEvent(event.data);
  }

  #passEvent(data: string): void {
    const event = parseJson(data);
    if (isObject(event)) this.#send(this.#connection.event(event));
  }

  /** Waits while the peer reads more slowly than it is sent; a peer that reads nothing is disconnected. */
  async #drained(): Promise<void> {
    const until = performance.now() + STUCK_MS;
    while (this.#socket.bufferedAmount > MAX_BUFFERED && this.#socket.readyState === this.#socket.OPEN) {
      if (performance.now() > until) return this.#socket.terminate();
      await sleep(LOOK_MS);
    }
  }

  #refuse(error: GatewayError): void {
    const requestId = `req_${randomBytes(16).toString('base64url')}`;
    const { body, status = error.status } = this.#deps.error(error, requestId);
    const { retryAfterMs } = error;
    const headers = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
    this.#send(this.#connection.refuse(status, body, headers));
    // Errors are sent without waiting, so a peer that reads none of them would fill the memory.
    if (this.#socket.bufferedAmount > 2 * MAX_BUFFERED) this.#socket.terminate();
  }

  #send(event: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(event));
  }
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', 'A request is already waiting on this websocket. Wait for its response.', {
    retryAfterMs: 1000,
  });
}

/** Size in bytes of a masked frame with this payload. Source: RFC 6455, section 5.2 */
function frameBytes(payloadBytes: number): number {
  return payloadBytes + (payloadBytes < 126 ? 6 : payloadBytes < 65_536 ? 8 : 14);
}

function sizeOf(data: WebSocket.RawData): number {
  return Array.isArray(data) ? data.reduce((sum, { length }) => sum + length, 0) : data.byteLength;
}

function textOf(data: WebSocket.RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8');
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  response.on('data', (bytes: Buffer) => parts.push(bytes));
  await once(response, 'end');
  return Buffer.concat(parts).toString('utf8');
}

/** Headers of an error about retries and limits. */
function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && /^(?:retry-after|x-should-retry|x-request-id|x-ratelimit-)/.test(name)
        ? [[name, value]]
        : [],
    ),
  );
}
