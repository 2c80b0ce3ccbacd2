import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { isGatewayError } from '../contract/errors.ts';
import type { AttemptResponse } from '../contract/operation.ts';
import type { Log } from '../contract/plugin.ts';
import type { Credential, Endpoint, HttpRequest, ResponseHeaders, TransportResponse } from '../contract/provider.ts';
import { type Attempt, errorCode } from './attempt.ts';
import type { Connection, Connections } from './connections.ts';
import { MEMORY_PER_BYTE, type ResponseBudget, type ResponseHold } from './response-budget.ts';

/** What a socket or undici says when the other end is gone. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** How undici refuses a request as it was given: an error of configuration or codec. */
const MISUSE_CODES: ReadonlySet<unknown> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

/**
 * Sends one request over the network. When the vendor closed a kept connection under it, before a byte of a response, it
 * is sent once more, on a fresh one: that race is HTTP's, and the vendor has not seen the request.
 */
export async function sendRequest(
  request: PreparedRequest,
  connections: Connections,
  attempt: Attempt,
  log: Log,
): Promise<TransportResponse> {
  const { path, method, headers, body } = request;
  const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = attempt.timeouts;
  for (let isRetry = false; ; isRetry = true) {
    const connection = connections.take(isRetry);
    if (!connection)
      throw attempt.fail('all connections to the provider are in use', { failure: 'overloaded', phase: 'connect' });
    const traffic = new Traffic(connection);
    attempt.isSent = () => traffic.isSent();
    attempt.onStop = () => connections.drop(connection);
    const response = new NetworkResponse((isWhole) => {
      attempt.end();
      if (isWhole) connections.release(connection);
      else connections.drop(connection);
    });
    try {
      connection.client.dispatch({ path, method, headers, body, headersTimeout, bodyTimeout }, response);
      return await response.head;
    } catch (error) {
      connections.drop(connection);
      const code = errorCode(error);
      if (error instanceof Error && MISUSE_CODES.has(code)) throw new TypeError(error.message);
      if (isRetry || attempt.error || !RESET_CODES.has(code) || !traffic.isKept() || traffic.hasResponded())
        throw attempt.explain(error, traffic.hasResponded() ? 'body' : traffic.isSent() ? 'firstByte' : 'connect');
      log.debug({ origin: request.origin }, 'a kept connection was closed under a request: sending it again');
    }
  }
}

/** What goes over a connection from now on. Its socket may be another then: undici replaces a kept one that closed. */
class Traffic {
  readonly #connection: Connection;
  readonly #kept: Connection['socket'];
  readonly #read: number;
  readonly #written: number;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#kept = connection.socket;
    this.#read = this.#kept?.bytesRead ?? 0;
    this.#written = this.#kept?.bytesWritten ?? 0;
  }

  isKept(): boolean {
    return this.#kept !== undefined && this.#connection.socket === this.#kept;
  }

  isSent(): boolean {
    return (this.#connection.socket?.bytesWritten ?? 0) > (this.isKept() ? this.#written : 0);
  }

  hasResponded(): boolean {
    return (this.#connection.socket?.bytesRead ?? 0) > (this.isKept() ? this.#read : 0);
  }
}

/** A response as an operation sees it, and also one of a bad status, 400 to 599. Errors are {@link UpstreamError}s. */
export interface UpstreamResponse extends AttemptResponse {
  /** Read once. Who stops reading stops the vendor, who leaves hangs up. */
  readonly body: AsyncIterable<Buffer>;
  /** Reserves so much more memory than `readAll` did, for what is made of its bytes; throws where there is none. */
  reserve(bytes: number): void;
  /** Gives back the memory of what was read, when nothing is made of it after all. */
  release(): void;
}

interface ResponseRules {
  readonly maxBytes: number;
  readonly budget: ResponseBudget;
  /** Until when what was read as a whole is kept; only while it is read when undefined. */
  readonly heldUntil: Promise<void> | undefined;
}

/** Makes the response whose head is there; throws when that head makes it useless whatever its body says. */
export function openResponse(
  { status, headers, body }: TransportResponse,
  attempt: Attempt,
  { maxBytes, budget, heldUntil }: ResponseRules,
): UpstreamResponse {
  // Both say that the vendor did no work.
  const refused = { ...USELESS, refused: true };
  if (status >= 300 && status < 400)
    throw attempt.fail(`the provider answered with a redirect (${status}); none is followed`, refused);
  if (status === 204 || status === 205)
    throw attempt.fail(`the provider answered with status ${status}, which has no content`, refused);
  if (Number(headers['content-length']) > maxBytes) throw tooLong(attempt, maxBytes);
  if (isEncoded(headers)) {
    if (status < 400) throw attempt.fail('the provider answered with a content-encoding nobody asked for', USELESS);
    // An encoded error page is still an error: its status counts, its text is dropped.
    attempt.leave();
  }
  let hold: ResponseHold | undefined;
  return {
    status,
    headers,
    body: readBody(body, attempt, maxBytes),
    async readAll(limit = maxBytes) {
      const held = budget.open();
      hold = held;
      try {
        return await readAll(body, attempt, Math.min(limit, maxBytes), held);
      } catch (error) {
        held.release();
        throw error;
      } finally {
        if (heldUntil) void heldUntil.then(() => held.release());
        else held.release();
      }
    },
    reserve: (bytes) => hold?.grow(bytes),
    release: () => hold?.release(),
    destroy: () => attempt.leave(),
  };
}

async function* readBody(body: AsyncIterable<Uint8Array>, attempt: Attempt, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const { buffer, byteOffset, byteLength } of body) {
      if (attempt.wasLeft) return;
      size += byteLength;
      if (size > maxBytes) throw tooLong(attempt, maxBytes);
      yield Buffer.from(buffer, byteOffset, byteLength);
    }
    attempt.end();
  } catch (error) {
    if (!attempt.wasLeft) throw attempt.explain(error, 'body');
  } finally {
    attempt.leave();
  }
}

async function readAll(
  body: AsyncIterable<Uint8Array>,
  attempt: Attempt,
  maxBytes: number,
  hold: ResponseHold,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of body) {
      if (attempt.wasLeft) break;
      size += part.byteLength;
      if (size > maxBytes) throw tooLong(attempt, maxBytes);
      hold.grow(part.byteLength * MEMORY_PER_BYTE);
      parts.push(part);
    }
    attempt.end();
  } catch (error) {
    if (isGatewayError(error)) throw error;
    if (!attempt.wasLeft) throw attempt.explain(error, 'body');
  } finally {
    attempt.leave();
  }
  return Buffer.concat(parts, size);
}

/** Whether a body is compressed. We ask for `identity`; nothing here decodes anything. */
function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

const USELESS = Object.freeze({ failure: 'upstream_error', phase: 'body' } as const);

function tooLong(attempt: Attempt, maxBytes: number): Error {
  return attempt.fail(`the answer is longer than ${maxBytes} bytes`, USELESS);
}

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' });

/** A request as undici takes it, and where it goes. */
interface PreparedRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** What of a request depends on its endpoint alone. */
interface KnownEndpoint {
  readonly address: Address;
  /** In lower case. A request's own may replace them, but not the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly credential: Readonly<Record<string, string>>;
  /** All that a JSON body is sent with where the request has no headers of its own, as almost all have none. */
  readonly ofJson: Readonly<Record<string, string>>;
}

/** What frames a message or names its receiver is ours to say: `host` would even change whose certificate is checked. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  'accept-encoding connection content-length expect host keep-alive te trailer transfer-encoding upgrade'.split(' '),
);

/**
 * Makes requests ready to send: the address, the endpoint's headers under the request's, JSON, and last the key. What
 * depends on the endpoint alone is worked out once. Throws a TypeError for what can't be sent.
 */
export function createRequestPreparer(): (endpoint: Endpoint, request: HttpRequest) => PreparedRequest {
  const known = new WeakMap<Endpoint, KnownEndpoint>();
  return (endpoint, request) => {
    const { address, headers, credential, ofJson } = known.get(endpoint) ?? knowEndpoint(endpoint, known);
    const body = encodeBody(request.body);
    const type = body === null ? {} : JSON_TYPE;
    return {
      origin: address.origin,
      method: request.method ?? (body === null ? 'GET' : 'POST'),
      path: joinPath(address, request.path),
      headers:
        request.headers || body === null
          ? { ...type, ...headers, ...readHeaders(request.headers), ...credential }
          : ofJson,
      body,
    };
  };
}

function knowEndpoint(endpoint: Endpoint, known: WeakMap<Endpoint, KnownEndpoint>): KnownEndpoint {
  const address = parseBaseUrl(endpoint.baseUrl);
  const headers = { 'user-agent': 'tollgate', ...readHeaders(endpoint.headers), 'accept-encoding': 'identity' };
  const bound = bindCredential(endpoint, address);
  const credential = bound ? { [bound[0]]: bound[1] } : {};
  const found = { address, headers, credential, ofJson: { ...JSON_TYPE, ...headers, ...credential } };
  known.set(endpoint, found);
  return found;
}

function readHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower)) throw new TypeError(`the header ${lower} can't be set: the gateway sets it itself`);
    read[lower] = value;
  }
  return read;
}

function encodeBody(body: HttpRequest['body']): string | Uint8Array | null {
  if (body === undefined || body instanceof Uint8Array) return body ?? null;
  return JSON.stringify(body);
}

/** A base URL taken apart once; requests add to the path and can change nothing else. */
interface Address {
  /** Scheme, host and port, such as `https://api.example.com`. */
  readonly origin: string;
  /** `name` or `name:port`. */
  readonly host: string;
  /** The base URL's own path without a trailing slash; `''` for none. */
  readonly basePath: string;
}

/** Visible ASCII without what RFC 3986 leaves out of paths and queries; so no `\`, no `#`, no blank, no control. */
const TARGET = /^\/[\w.~!$&'()*+,;=:@%/[\]-]*(?:\?[\w.~!$&'()*+,;=:@%/?[\]|-]*)?$/;
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?;]|$)/i;

/** Takes a base URL apart; throws a TypeError that shows no userinfo for one that is not plain http(s). */
export function parseBaseUrl(baseUrl: string): Address {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') {
    throw new TypeError('a base URL must be an absolute http:// or https:// URL');
  }
  if (url.username || url.password) throw new TypeError('a base URL must not hold a user name or password');
  if (url.search || url.hash || /[?#]/.test(baseUrl)) throw new TypeError('a base URL must not hold ? or #');
  // The URL parser repairs these in silence, so that two readers may see two hosts or paths.
  if (/[\\\s]/.test(baseUrl) || DOT_SEGMENT.test(baseUrl)) {
    throw new TypeError('a base URL must not hold backslashes, blanks or dot segments');
  }
  return { origin: url.origin, host: url.host, basePath: url.pathname.replace(/\/+$/, '') };
}

/**
 * The request target for a codec's path. It can't leave the base: the origin is never read from it, and `//`, dot
 * segments, backslashes, fragments and unencoded characters are refused as an error of the codec (TypeError).
 */
export function joinPath(address: Address, path: string): string {
  if (!TARGET.test(path) || path.startsWith('//') || DOT_SEGMENT.test(path)) {
    throw new TypeError('a request path must begin with one slash and be percent-encoded, without dot segments');
  }
  return address.basePath + path;
}

/**
 * The header with the endpoint's key, for the one address it is about to be sent to. Throws a TypeError when that host
 * is neither the base URL's nor declared: a key leaves only for the hosts its provider names. The only place that adds one.
 */
export function bindCredential(endpoint: Endpoint, to: Address): readonly [name: string, value: string] | undefined {
  const credential: Credential | undefined = endpoint.credential;
  if (credential?.value === undefined) return undefined;
  if (to.host !== parseBaseUrl(endpoint.baseUrl).host && !endpoint.hosts?.includes(to.host)) {
    throw new TypeError('a provider key may only be sent to the hosts its provider declares');
  }
  return [credential.header.toLowerCase(), `${credential.prefix ?? ''}${credential.value}`];
}

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
class NetworkResponse implements Dispatcher.DispatchHandler, AsyncIterableIterator<Buffer, undefined> {
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
