import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { createEventReader } from '../../../contract/event-reader.ts';
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

/** Messages in a row that are no requests, after which the socket is closed. */
const MAX_BAD = 5;
/** Bytes that may wait in the socket before the response is read no further. */
const MAX_BUFFERED = 1024 * 1024;
/** How long a peer may take nothing, in milliseconds. */
const STUCK_MS = 60_000;
/** How often a full socket is looked at again, in milliseconds. */
const LOOK_MS = 50;
/** What Node reads from a connection at once, at most, in bytes. */
const LARGEST_READ = 64 * 1024;
/** Bytes of heap for what was read at once, however little it was. */
const HEAP_PER_READ = 256;
/** How long a peer that was cut may go on sending before its connection is closed, so that it reads why. */
const GRACE_MS = 2000;

/** How a socket closes whose bytes are refused; 1013 is "try again later". */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = Object.freeze({
  request_too_large: 1009,
  request_timeout: 1008,
});
const TRY_LATER = 1013;

/** What one message of a websocket amounts to: a request, which is answered by events, or events at once. */
export type SocketRequest<Body = unknown> = { readonly body: Body } | { readonly events: readonly object[] };

/** What a dialect keeps of one websocket: what its client may refer to. In memory, gone with the socket. */
export interface DialectConnection<Body = unknown> {
  /** What a message wants; undefined for one that needs no response. Throws a GatewayError for what it cannot be. */
  read(message: Readonly<Record<string, unknown>>): SocketRequest<Body> | undefined;
  /** One event of the running response, on its way out. */
  event(event: Readonly<Record<string, unknown>>): object;
  /** The event for a request that was refused, by the refusal's status, body (as `error` wrote it) and headers. */
  refuse(status: number, body: unknown, headers: Readonly<Record<string, string>>): object;
}

/** A dialect's websocket: each request on it is one call, as if it had been posted to the same path as a stream. */
export interface DialectSocket<Body = unknown> {
  /** Of one of the dialect's routes. */
  readonly path: string;
  /** `memory` books what the connection keeps from one request to the next. */
  connect(memory?: ConnectionMemory): DialectConnection<Body>;
}

/** The memory that a websocket's connection may keep things in between requests: that of its owner, as that of bodies. */
export interface ConnectionMemory {
  /** Books this much JSON in all in place of what was booked before; false, and as before, when there is no room. */
  resize(jsonBytes: number): boolean;
}

interface SessionDeps extends Pick<DialectDefinition, 'error'> {
  readonly upgrade: Upgrade;
  /** Told when it has nothing to do any more. */
  onIdle(): void;
}

type Wanted = NonNullable<ReturnType<DialectConnection['read']>>;

interface Message {
  readonly text: string;
  readonly hold: Hold;
}

/**
 * One websocket: its requests one after the other, each posted to the gateway's own server, the events as text frames. One
 * message may wait; the connection is read no further then. What came is booked from its first byte on.
 */
export class SocketSession {
  readonly #socket: WebSocket;
  readonly #deps: SessionDeps;
  readonly #connection: DialectConnection;
  /** The bytes of a message that is not complete. */
  readonly #arriving: Hold;
  #unfinished = 0;
  #lastRead = 0;
  #watch: RateWatch | undefined;
  #waiting: Message | undefined;
  #running: AbortController | undefined;
  #bad = 0;
  /** Why no further request is taken. */
  #refusal: GatewayError | undefined;

  constructor(socket: WebSocket, deps: SessionDeps, connection: DialectConnection) {
    this.#socket = socket;
    this.#deps = deps;
    this.#connection = connection;
    this.#arriving = deps.upgrade.memory.book();
    // Before the websocket's own listener: a message ends in what was counted.
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

  /** Takes no further request; one that waits is refused, the running one may finish. */
  stop(refusal: GatewayError): void {
    this.#refusal = refusal;
    const waiting = this.#takeWaiting();
    waiting?.hold.release();
    if (waiting) this.#refuse(refusal);
  }

  /** Tells the client of an error outside of any response. */
  tell(error: GatewayError): void {
    this.#refuse(error);
  }

  readonly #onBytes = ({ length }: Buffer): void => {
    const { memory } = this.#deps.upgrade;
    this.#lastRead = length;
    this.#unfinished += length;
    this.#watch?.add(length);
    // Of less than that it cannot be known whether it is the rest of a message or the begin of another one.
    if (this.#unfinished > LARGEST_READ) this.#watch ??= memory.watchRate((error) => this.#cut(error));
    try {
      this.#arriving.grow(length * memory.heapPerByte + HEAP_PER_READ);
    } catch (thrown) {
      this.#cut(toGatewayError(thrown));
    }
  };

  /** A frame within or between messages: it is over, and nothing is kept of it. */
  #onFrame(payloadBytes: number): void {
    const bytes = frameBytes(payloadBytes);
    const { heapPerByte } = this.#deps.upgrade.memory;
    this.#unfinished = Math.max(0, this.#unfinished - bytes);
    this.#shrink(this.#arriving.bytes - bytes * heapPerByte - (this.#lastRead === bytes ? HEAP_PER_READ : 0));
  }

  /** Of what was read, no more than the end of the last read can belong to the next message. */
  #endMessage(bytes: number): void {
    this.#watch?.stop();
    this.#watch = undefined;
    this.#unfinished = Math.min(Math.max(0, this.#unfinished - frameBytes(bytes)), this.#lastRead);
    this.#shrink(this.#unfinished && this.#unfinished * this.#deps.upgrade.memory.heapPerByte + HEAP_PER_READ);
  }

  #shrink(heapBytes: number): void {
    this.#arriving.resize(Math.min(this.#arriving.bytes, Math.max(0, heapBytes)));
  }

  /** Ends a socket whose bytes are refused: says why, and looks at nothing more that comes. */
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

  /** The message that waits, if any; the next one may come then. */
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
        // A message without a request is over at once; those behind it in the same read do not wait for it.
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
    if (response.headers['content-type']?.startsWith('text/event-stream')) await this.#passOn(response);
    else
      this.#send(
        this.#connection.refuse(response.statusCode ?? 500, parseJson(await readText(response)), headersOf(response)),
      );
  }

  /**
   * What a message wants; undefined when it was refused: some in a row that cannot be read end the socket. Throws what the hold refuses
   * with, which says nothing about the message.
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
      if (this.#bad >= MAX_BAD) this.#socket.close(1008, 'too many messages that are no requests');
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

  /** Waits while the peer takes less than it is sent; one that takes nothing is cut. */
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
    // Refusals wait for nobody: a peer that reads none of them would fill the memory.
    if (this.#socket.bufferedAmount > 2 * MAX_BUFFERED) this.#socket.terminate();
  }

  #send(event: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(event));
  }
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', 'A request waits on this websocket already.', { retryAfterMs: 1000 });
}

/** The bytes of a masked frame with so large a payload. Source: RFC 6455, section 5.2 */
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

/** What a refusal tells about when to come back. */
function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && /^(?:retry-after|x-should-retry|x-request-id|x-ratelimit-)/.test(name)
        ? [[name, value]]
        : [],
    ),
  );
}
