import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { Log } from '../contract/plugin.ts';
import type { ResponseHeaders } from '../contract/provider.ts';
import { type Attempt, errorCode, type Source } from './attempt.ts';

/** How long an idle socket is kept when the vendor does not say (`keep-alive: timeout=`). */
const KEEP_ALIVE_MS = 30_000;

/** One keep-alive connection: undici's client for one socket, which carries one request at a time. */
interface Connection {
  readonly client: Client;
  /** The socket that was connected last; undefined before the first. */
  socket: Socket | undefined;
}

interface ConnectionOptions {
  readonly connectMs: number;
  readonly maxHeaderBytes: number;
  /** Open connections to one origin, idle ones included. */
  readonly max: number;
}

/**
 * The connections to one origin. Not undici's `Pool`, which queues where we refuse, and does not tell whether a request
 * went out on a kept socket: only then may a POST be sent again when the vendor closed the socket under it.
 */
export class Connections {
  readonly #origin: string;
  readonly #options: ConnectionOptions;
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];

  constructor(origin: string, options: ConnectionOptions) {
    this.#origin = origin;
    this.#options = options;
    this.#connect = buildConnector({ timeout: options.connectMs, rejectUnauthorized: true });
  }

  /** The idle connection that was used last, or a new one (always, when it has to be `fresh`); undefined when all are in use. */
  take(fresh: boolean): Connection | undefined {
    const kept = fresh ? undefined : this.#idle.pop();
    return kept ?? (this.#all.size < this.#options.max ? this.#open() : undefined);
  }

  /** Keeps a connection for the next request, when its response was read to the end and its socket is still there. */
  release(connection: Connection): void {
    if (connection.socket?.destroyed === false && this.#all.has(connection)) this.#idle.push(connection);
    else this.drop(connection);
  }

  /** Cuts a connection, with the request that it carries. A socket that is still being connected has its own deadline. */
  drop(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.client.destroy();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map(({ client }) => client.destroy()));
  }

  #open(): Connection {
    const client = new Client(this.#origin, {
      connect: (target, callback) =>
        this.#connect(target, (...result) => {
          connection.socket = result[1] ?? connection.socket;
          callback(...result);
        }),
      maxHeaderSize: this.#options.maxHeaderBytes,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
    const connection: Connection = { client, socket: undefined };
    // One in use stays: undici connects it again by itself when it was closed before the request was written.
    client.on('disconnect', () => {
      if (this.#idle.includes(connection)) this.drop(connection);
    });
    this.#all.add(connection);
    return connection;
  }
}

/** A request as undici takes it, and where it goes. */
export interface PreparedRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** What a socket or undici says when the other end is gone. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** How undici refuses a request as it was given: an error of configuration or codec. */
const MISUSE_CODES: ReadonlySet<unknown> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

/** How many bytes may wait for their reader before the vendor is not listened to any more. */
const MAX_WAITING_BYTES = 64 * 1024;

/**
 * One request over the network and its response, as undici's dispatcher reports it. When the vendor closed a kept connection under it,
 * before a byte of a response, it is sent once more, on a fresh one: that race is HTTP's, and the vendor has not seen the request.
 * By a `Readable` (`client.request`) the same takes a tenth of a call's CPU more.
 */
export class NetworkSource implements Source, Dispatcher.DispatchHandler {
  readonly #request: PreparedRequest;
  readonly #connections: Connections;
  readonly #attempt: Attempt;
  readonly #log: Log;
  #connection: Connection | undefined;
  /** The socket that the connection had before; it may get another: undici replaces a kept one that closed. */
  #kept: Socket | undefined;
  #bytesRead = 0;
  #bytesWritten = 0;
  #isRetry = false;
  #hasHead = false;
  #controller: Dispatcher.DispatchController | undefined;
  #parts: Buffer[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  #isWhole = false;
  #error: Error | undefined;

  constructor(request: PreparedRequest, connections: Connections, attempt: Attempt, log: Log) {
    this.#request = request;
    this.#connections = connections;
    this.#attempt = attempt;
    this.#log = log;
    attempt.source = this;
  }

  send(): void {
    const { path, method, headers, body } = this.#request;
    const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = this.#attempt.timeouts;
    const connection = this.#connections.take(this.#isRetry);
    if (!connection) {
      this.#attempt.fail('all connections to the provider are in use', { failure: 'overloaded', phase: 'connect' });
      return;
    }
    this.#connection = connection;
    this.#kept = connection.socket;
    this.#bytesRead = this.#kept?.bytesRead ?? 0;
    this.#bytesWritten = this.#kept?.bytesWritten ?? 0;
    connection.client.dispatch({ path, method, headers, body, headersTimeout, bodyTimeout }, this);
  }

  isSent(): boolean {
    return (this.#connection?.socket?.bytesWritten ?? 0) > (this.#isKept() ? this.#bytesWritten : 0);
  }

  stop(): void {
    if (this.#connection) this.#connections.drop(this.#connection);
  }

  /** What one read of the socket brought comes together: who waits is woken after it. */
  read(): Buffer | undefined | Promise<Buffer | undefined> {
    const parts = this.#parts;
    if (parts.length > 0) {
      this.#parts = [];
      this.#waitingBytes = 0;
      this.#controller?.resume();
      return parts.length === 1 ? parts[0] : Buffer.concat(parts);
    }
    if (this.#error) throw this.#error;
    if (!this.#isWhole)
      return new Promise<void>((resolve) => {
        this.#wake = resolve;
      }).then(() => this.read());
    if (this.#connection) this.#connections.release(this.#connection);
    this.#connection = undefined;
    return undefined;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // 1xx: the response comes later.
    if (status < 200) return;
    // A header that came more than once is a list; ours are text.
    for (const name in headers) {
      const value = headers[name];
      if (Array.isArray(value)) headers[name] = value.join(', ');
    }
    this.#hasHead = true;
    this.#attempt.open(status, headers as ResponseHeaders);
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    this.#parts.push(part);
    this.#waitingBytes += part.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) controller.pause();
    this.#wake?.();
  }

  onResponseEnd(): void {
    this.#isWhole = true;
    this.#wake?.();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const attempt = this.#attempt;
    if (this.#hasHead) {
      this.#error = error;
      attempt.end();
      this.stop();
      this.#wake?.();
      return;
    }
    const isSent = this.isSent();
    const hasResponded = (this.#connection?.socket?.bytesRead ?? 0) > (this.#isKept() ? this.#bytesRead : 0);
    const mayRetry = !this.#isRetry && !attempt.error && RESET_CODES.has(errorCode(error)) && this.#isKept();
    this.stop();
    if (MISUSE_CODES.has(errorCode(error))) attempt.refuse(new TypeError(error.message));
    else if (!mayRetry || hasResponded)
      attempt.explain(error, hasResponded ? 'body' : isSent ? 'firstByte' : 'connect');
    else {
      this.#log.debug(
        { origin: this.#request.origin },
        'a kept connection was closed under a request: sending it again',
      );
      this.#isRetry = true;
      this.send();
    }
  }

  #isKept(): boolean {
    return this.#kept !== undefined && this.#connection?.socket === this.#kept;
  }
}
