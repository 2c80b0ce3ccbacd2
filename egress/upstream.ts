import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { writeJson } from '../contract/exact-json.ts';
import type { SentBy } from '../contract/operation.ts';
import type { Log } from '../contract/plugin.ts';
import type { Credential, Endpoint, HttpRequest, ProxyRoute, ResponseHeaders, Timeouts } from '../contract/provider.ts';
import { type Address, joinPath, parseBaseUrl } from './address.ts';
import {
  Attempt,
  createResponseBudget,
  errorCode,
  type ResponseBudget,
  RunningAttempts,
  type Source,
  sendByTransport,
  UpstreamError,
  type UpstreamResponse,
} from './attempt.ts';
import { openWebsocket } from './websocket.ts';

export { UpstreamError, type UpstreamResponse };

/** Default timeouts of one attempt; the endpoint or the call may override them. */
const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
});

interface UpstreamLimits {
  /** Maximum size of a response, streamed or not. */
  readonly maxResponseBytes: number;
  /** Maximum size of a response's head. */
  readonly maxHeaderBytes: number;
  /** Maximum open sockets per origin; a request beyond it fails as `overloaded`. */
  readonly maxConnections: number;
  /** Maximum age of a socket for another request. Only new sockets resolve a name again, after its address changed. */
  readonly maxAgeMs: number;
}

const DEFAULT_LIMITS: UpstreamLimits = Object.freeze({
  maxResponseBytes: 32 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  // Equal to `server.maxConnections`, so that callers reach their limit before their calls do.
  maxConnections: 10_000,
  maxAgeMs: 300_000,
});

interface UpstreamOptions {
  readonly defaults?: Partial<Timeouts>;
  readonly limits?: Partial<UpstreamLimits>;
  /** Memory limit of whole responses; default: a new one. */
  readonly budget?: ResponseBudget;
  readonly log: Log;
}

interface SendOptions extends SentBy {
  /** Ends the attempt at once, in any phase. */
  readonly signal: AbortSignal;
  /** Overrides single timeouts for this attempt. */
  readonly deadlines?: Partial<Timeouts> | undefined;
  /** Resolves when a whole response may be freed. Default: freed after reading. */
  readonly heldUntil?: Promise<void>;
  /** Maximum bytes of a response that is read in chunks, if it differs from that of others. */
  readonly maxBytes?: number;
}

export interface Upstream {
  /**
   * Makes one attempt and resolves with the response's head. Rejects with an {@link UpstreamError}. Rejects with a TypeError if the
   * endpoint or the request can't be sent. The cause is the configuration or the codec, never a caller.
   */
  send(endpoint: Endpoint, request: HttpRequest, options: SendOptions): Promise<UpstreamResponse>;
  /** Closes all open connections. */
  close(): Promise<void>;
}

/** Creates the upstream to providers: connections, deadlines, limits and keys. It follows no redirect and decodes no encoding. */
export function createUpstream({ log, ...options }: UpstreamOptions): Upstream {
  const defaults = { ...DEFAULT_TIMEOUTS, ...options.defaults };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { budget = createResponseBudget() } = options;
  /** By origin, route and connect timeout, which belongs to the socket. As many as the configuration has endpoints. */
  const pools = new Map<string, Connections>();
  const running = new RunningAttempts();
  let isClosed = false;

  return {
    send(endpoint, request, { signal, deadlines, heldUntil, maxBytes = limits.maxResponseBytes, ...by }) {
      if (isClosed) return Promise.reject(new UpstreamError(CLOSING, ABORTED));
      const own = endpoint.timeouts || deadlines;
      const set = own ? { ...defaults, ...endpoint.timeouts, ...deadlines } : defaults;
      const { websocket, transport = endpoint.transport } = by;
      const timeouts = websocket ? { ...set, totalMs: websocket.totalMs } : set;
      const options = { timeouts, signal, maxBytes: websocket ? Infinity : maxBytes, budget, heldUntil };
      return new Promise((resolve, reject) => {
        const attempt = new Attempt(options, running, resolve, reject);
        if (attempt.error) return;
        try {
          if (transport) void sendByTransport(transport, request, attempt);
          else if (websocket) void openWebsocket(endpoint, prepareRequest(endpoint, request), websocket, attempt);
          else {
            const prepared = prepareRequest(endpoint, request);
            const pool = `${timeouts.connectMs} ${prepared.place}`;
            const connections = pools.get(pool) ?? new Connections(prepared, timeouts.connectMs, limits);
            pools.set(pool, connections);
            const { credential } = endpoint;
            if (credential?.headers) void sendSigned(credential, prepared, connections, attempt, log);
            else new NetworkSource(prepared, connections, attempt, log).send();
          }
        } catch (error) {
          attempt.refuse(error);
        }
      });
    },
    async close() {
      isClosed = true;
      running.abort(CLOSING);
      await Promise.all([...pools.values()].map((connections) => connections.close()));
    },
  };
}

const CLOSING = 'the gateway is closing';
const ABORTED = Object.freeze({ failure: 'upstream_error', phase: 'aborted', sent: false } as const);

/** Lifetime of an idle socket if the vendor does not specify it (`keep-alive: timeout=`). */
const KEEP_ALIVE_MS = 30_000;

/** Keep-alive connection: undici's client for one socket, which carries one request at a time. */
interface Connection {
  readonly client: Client;
  /** Last connected socket; undefined before the first. */
  socket: Socket | undefined;
  openedMs: number;
  /** Bytes written before this connection was in use: those to and from a proxy. */
  writtenBefore: number;
  readBefore: number;
}

/**
 * Connections to one origin. Not undici's `Pool`, which queues where this rejects. `Pool` also does not report whether a request
 * used a reused socket: only then may a POST be sent again after the vendor closed it.
 */
class Connections {
  readonly #origin: string;
  readonly #limits: UpstreamLimits;
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];

  constructor({ origin, proxyRoute }: PreparedRequest, connectMs: number, limits: UpstreamLimits) {
    this.#origin = origin;
    this.#limits = limits;
    this.#connect =
      proxyRoute?.connector(connectMs) ?? buildConnector({ timeout: connectMs, rejectUnauthorized: true });
  }

  /** Returns the most recently used idle connection, or a new one (always a new one if `fresh`); undefined if all are in use. */
  take(fresh: boolean): Connection | undefined {
    const kept = fresh ? undefined : this.#idle.pop();
    return kept ?? (this.#all.size < this.#limits.maxConnections ? this.#open() : undefined);
  }

  /** Returns a connection to the pool if its response was read to the end and its socket is still open. */
  release(connection: Connection): void {
    const isOld = performance.now() - connection.openedMs >= this.#limits.maxAgeMs;
    if (!isOld && connection.socket?.destroyed === false && this.#all.has(connection)) this.#idle.push(connection);
    else this.drop(connection);
  }

  /** Closes a connection with its current request. A connecting socket has its own deadline. */
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
          connection.openedMs = performance.now();
          connection.writtenBefore = result[1]?.bytesWritten ?? 0;
          connection.readBefore = result[1]?.bytesRead ?? 0;
          callback(...result);
        }),
      maxHeaderSize: this.#limits.maxHeaderBytes,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
    const connection: Connection = { client, socket: undefined, openedMs: 0, writtenBefore: 0, readBefore: 0 };
    // A connection in use stays: undici reconnects by itself if it was closed before the request was written.
    client.on('disconnect', () => {
      if (this.#idle.includes(connection)) this.drop(connection);
    });
    this.#all.add(connection);
    return connection;
  }
}

/** Request in undici's form, with its destination. */
interface PreparedRequest {
  readonly origin: string;
  readonly proxyRoute: ProxyRoute | undefined;
  /** Origin and route. */
  readonly place: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}

/** Placeholder for a completed request. */
const NO_REQUEST: PreparedRequest = Object.freeze({
  origin: '',
  proxyRoute: undefined,
  place: '',
  method: 'GET',
  path: '',
  headers: Object.freeze({}),
  body: null,
});

/** Error codes of a socket or undici for a connection closed by the peer. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Error codes of undici for an invalid request: an error of configuration or codec. */
const MISUSE_CODES: ReadonlySet<unknown> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

/** Maximum unread bytes before reading from the vendor pauses. */
const MAX_WAITING_BYTES = 64 * 1024;

/**
 * One request over the network and its response, as undici's dispatcher reports it. If the vendor closes a reused connection before
 * any byte of a response, the request is sent again on a new one. This race is inherent in HTTP, and the vendor has not seen the
 * request. A `Readable` (`client.request`) costs a tenth of a call's CPU more.
 */
class NetworkSource implements Source, Dispatcher.DispatchHandler {
  #request: PreparedRequest;
  readonly #connections: Connections;
  #attempt: Attempt | undefined;
  readonly #log: Log;
  #connection: Connection | undefined;
  /** Previous socket of the connection. It may change: undici replaces a reused socket that closed. */
  #reusedSocket: Socket | undefined;
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
    const attempt = this.#attempt;
    if (!attempt) return;
    const { path, method, headers, body } = this.#request;
    const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = attempt.timeouts;
    const connection = this.#connections.take(this.#isRetry);
    if (!connection) {
      attempt.fail('all connections to the provider are in use', { failure: 'overloaded', phase: 'connect' });
      return;
    }
    this.#connection = connection;
    this.#reusedSocket = connection.socket;
    this.#bytesRead = this.#reusedSocket?.bytesRead ?? 0;
    this.#bytesWritten = this.#reusedSocket?.bytesWritten ?? 0;
    connection.client.dispatch({ path, method, headers, body, headersTimeout, bodyTimeout }, this);
  }

  isSent(): boolean {
    return (
      (this.#connection?.socket?.bytesWritten ?? 0) >
      (this.#isReused() ? this.#bytesWritten : (this.#connection?.writtenBefore ?? 0))
    );
  }

  stop(): void {
    if (this.#connection) this.#connections.drop(this.#connection);
  }

  /** Returns all bytes of one socket read together: a waiting reader resumes after it. */
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
    this.#clear();
    return undefined;
  }

  /** Releases the request and the attempt at the end: undici retains its handler until the connection carries the next request. */
  #clear(): void {
    if (this.#attempt) this.#attempt.source = undefined;
    this.#attempt = undefined;
    this.#request = NO_REQUEST;
    this.#connection = undefined;
    this.#reusedSocket = undefined;
    this.#controller = undefined;
    this.#wake = undefined;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // 1xx: the response follows later.
    if (status < 200) return;
    // Repeated headers are lists; here all values are texts.
    for (const name in headers) {
      const value = headers[name];
      if (Array.isArray(value)) headers[name] = value.join(', ');
    }
    this.#hasHead = true;
    this.#attempt?.open(status, headers as ResponseHeaders);
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
    if (!attempt) return;
    if (this.#hasHead) {
      this.#error = error;
      attempt.end();
      this.stop();
      this.#wake?.();
      return;
    }
    const isSent = this.isSent();
    const hasResponded =
      (this.#connection?.socket?.bytesRead ?? 0) >
      (this.#isReused() ? this.#bytesRead : (this.#connection?.readBefore ?? 0));
    const mayRetry = !this.#isRetry && !attempt.error && RESET_CODES.has(errorCode(error)) && this.#isReused();
    this.stop();
    if (MISUSE_CODES.has(errorCode(error))) attempt.refuse(new TypeError(error.message));
    else if (!mayRetry || hasResponded)
      attempt.explain(error, hasResponded ? 'body' : isSent ? 'firstByte' : 'connect');
    else {
      this.#log.debug(
        { origin: this.#request.origin },
        'a reused connection was closed during a request; the request is sent again',
      );
      this.#isRetry = true;
      this.send();
    }
  }

  #isReused(): boolean {
    return this.#reusedSocket !== undefined && this.#connection?.socket === this.#reusedSocket;
  }
}

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' });

/** Framing headers and the receiver's name cannot be overridden: `host` would even change whose certificate is checked. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  'accept-encoding connection content-length expect host keep-alive te trailer transfer-encoding upgrade'.split(' '),
);

const known = new WeakMap<Endpoint, ReturnType<typeof knowEndpoint>>();

/**
 * Prepares a request for sending: address, the endpoint's headers overridden by the request's, JSON, and last the key. Throws a
 * TypeError for a request that can't be sent.
 */
function prepareRequest(endpoint: Endpoint, request: HttpRequest): PreparedRequest {
  const { address, headers, credential, ofJson, place, fill } = known.get(endpoint) ?? knowEndpoint(endpoint);
  const { body: given = null } = request;
  // As bytes, which are outside V8's heap: a text would stay in it until the response arrives.
  const body = given === null || given instanceof Uint8Array ? given : Buffer.from(writeJson(given));
  const type = body === null ? {} : JSON_TYPE;
  return {
    origin: address.origin,
    proxyRoute: endpoint.proxyRoute,
    place,
    method: request.method ?? (body === null ? 'GET' : 'POST'),
    path: joinPath(address, request.path),
    headers:
      request.headers || body === null
        ? fill({ ...type, ...headers, ...readHeaders(request.headers), ...credential })
        : ofJson,
    body,
  };
}

/** Sends a request with the headers that its credential created for it. */
async function sendSigned(
  credential: Credential,
  request: PreparedRequest,
  connections: Connections,
  attempt: Attempt,
  log: Log,
): Promise<void> {
  try {
    const made = credential.headers?.({ ...request, url: request.origin + request.path });
    const headers = { ...request.headers, ...readHeaders(made instanceof Promise ? await made : made) };
    if (!attempt.error) new NetworkSource({ ...request, headers }, connections, attempt, log).send();
  } catch (error) {
    attempt.refuse(error);
  }
}

/**
 * Returns the parts of a request that depend only on its endpoint, cached. A request's own headers may override the endpoint's, but
 * not the key.
 */
function knowEndpoint(endpoint: Endpoint) {
  const address = parseBaseUrl(endpoint.baseUrl);
  const headers = { 'user-agent': 'tollgate', ...readHeaders(endpoint.headers), 'accept-encoding': 'identity' };
  const bound = bindCredential(endpoint, address);
  const credential: Readonly<Record<string, string>> = bound ? { [bound[0]]: bound[1] } : {};
  // All headers of a JSON request without headers of its own, which is nearly every request.
  const ofJson = { ...JSON_TYPE, ...headers, ...credential };
  const place = endpoint.proxyRoute === undefined ? address.origin : `${address.origin} ${endpoint.proxyRoute.id}`;
  const found = { address, headers, credential, ofJson, place, fill: fillerOf(endpoint.credential) };
  known.set(endpoint, found);
  return found;
}

type Headers = Readonly<Record<string, string>>;

const same = (headers: Headers): Headers => headers;

/** Puts the key in place of its placeholder. */
function fillerOf({ placeholder, value }: Partial<Credential> = {}): (headers: Headers) => Headers {
  if (placeholder === undefined || value === undefined) return same;
  return (headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, text.replaceAll(placeholder, value)]));
}

function readHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower))
      throw new TypeError(`the header ${lower} cannot be set by a plugin or the configuration`);
    read[lower] = value;
  }
  return read;
}

/**
 * Returns the header with the endpoint's key, for the one address it is sent to. Throws a TypeError if that host is neither the
 * base URL's nor declared. A key is sent only to hosts that its provider names. No other code adds a key.
 */
export function bindCredential(endpoint: Endpoint, to: Address): readonly [name: string, value: string] | undefined {
  const credential: Credential | undefined = endpoint.credential;
  if (credential?.value === undefined || credential.placeholder !== undefined) return undefined;
  if (to.host !== parseBaseUrl(endpoint.baseUrl).host && !endpoint.hosts?.includes(to.host)) {
    throw new TypeError('a provider key may only be sent to the hosts its provider declares');
  }
  return [credential.header.toLowerCase(), `${credential.prefix ?? ''}${credential.value}`];
}
