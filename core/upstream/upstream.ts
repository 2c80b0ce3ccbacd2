import type { Log } from '../contract/plugin.ts';
import type { Credential, Endpoint, HttpRequest, Timeouts, Transport } from '../contract/provider.ts';
import {
  Attempt,
  createResponseBudget,
  type ResponseBudget,
  RunningAttempts,
  type Source,
  UpstreamError,
  type UpstreamPhase,
  type UpstreamResponse,
} from './attempt.ts';
import { Connections, NetworkSource, type PreparedRequest } from './network.ts';

export { UpstreamError, type UpstreamPhase, type UpstreamResponse };

/** Four clocks of one attempt, unless the endpoint or the call says otherwise. */
const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
});

interface UpstreamLimits {
  /** Of one response, streamed or not. */
  readonly maxResponseBytes: number;
  /** Of a response's head. */
  readonly maxHeaderBytes: number;
  /** Open sockets to one origin; a request beyond it fails as `overloaded`. */
  readonly maxConnections: number;
}

const DEFAULT_LIMITS: UpstreamLimits = Object.freeze({
  maxResponseBytes: 32 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  // As many as `server.maxConnections`, so that callers are bounded before their calls are.
  maxConnections: 10_000,
});

interface UpstreamOptions {
  readonly defaults?: Partial<Timeouts>;
  readonly limits?: Partial<UpstreamLimits>;
  /** The memory of answers that are read as a whole; one of this process's own unless set. */
  readonly budget?: ResponseBudget;
  readonly log: Log;
}

interface SendOptions {
  /** Ends the attempt at once, whatever it is doing. */
  readonly signal: AbortSignal;
  /** Replaces single clocks for this attempt. */
  readonly deadlines?: Partial<Timeouts>;
  /** Until when an answer that was read as a whole is kept; only while it is read unless set. */
  readonly heldUntil?: Promise<void>;
}

export interface Upstream {
  /**
   * Makes one attempt and resolves with the response's head. Rejects with an {@link UpstreamError}, or with a TypeError
   * when the endpoint or the request can't be sent as they are (an error of configuration or codec, never of a caller).
   */
  send(endpoint: Endpoint, request: HttpRequest, options: SendOptions): Promise<UpstreamResponse>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

/** The way out to the providers: connections, deadlines, bounds and keys. Follows no redirect and decodes no encoding. */
export function createUpstream({ log, ...options }: UpstreamOptions): Upstream {
  const defaults = { ...DEFAULT_TIMEOUTS, ...options.defaults };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { budget = createResponseBudget() } = options;
  const prepare = createRequestPreparer();
  /** By origin and connect deadline, which is the socket's. As many as the configuration has endpoints. */
  const pools = new Map<string, Connections>();
  const running = new RunningAttempts();
  let isClosed = false;

  function connectionsTo(origin: string, connectMs: number): Connections {
    const name = `${connectMs} ${origin}`;
    let connections = pools.get(name);
    if (!connections) {
      const { maxHeaderBytes, maxConnections: max } = limits;
      connections = new Connections(origin, { connectMs, maxHeaderBytes, max });
      pools.set(name, connections);
    }
    return connections;
  }

  return {
    send(endpoint, request, { signal, deadlines, heldUntil }) {
      if (isClosed) return Promise.reject(new UpstreamError(CLOSING, ABORTED));
      const own = endpoint.timeouts || deadlines;
      const timeouts = own ? { ...defaults, ...endpoint.timeouts, ...deadlines } : defaults;
      const options = { timeouts, signal, maxBytes: limits.maxResponseBytes, budget, heldUntil };
      return new Promise((resolve, reject) => {
        const attempt = new Attempt(options, running, resolve, reject);
        if (attempt.error) return;
        try {
          if (endpoint.transport) void sendByTransport(endpoint.transport, request, attempt);
          else {
            const prepared = prepare(endpoint, request);
            new NetworkSource(prepared, connectionsTo(prepared.origin, timeouts.connectMs), attempt, log).send();
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

/** Lets a provider's own {@link Transport} serve a request, with the same deadlines and abort as the network. */
async function sendByTransport(transport: Transport, request: HttpRequest, attempt: Attempt): Promise<void> {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  attempt.source = {
    isSent: () => true,
    async read() {
      const next = await inTime(chunks?.next(), 'idle', attempt);
      if (!next || next.done) return undefined;
      const { buffer, byteOffset, byteLength } = next.value;
      return Buffer.from(buffer, byteOffset, byteLength);
    },
    // Not waited for: a transport that hangs would never come to it.
    stop: () => void chunks?.return?.().catch(() => {}),
  } satisfies Source;
  try {
    const { status, headers, body } = await inTime(transport(request, attempt.signal), 'firstByte', attempt);
    chunks = body[Symbol.asyncIterator]();
    attempt.open(status, headers);
  } catch (error) {
    attempt.explain(error, 'firstByte');
  }
}

/** Waits for some work, until its deadline has passed or the attempt is stopped. */
function inTime<T>(work: T | Promise<T>, phase: 'firstByte' | 'idle', attempt: Attempt): Promise<T> {
  const { signal, timeouts } = attempt;
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => attempt.expire(phase), timeouts[`${phase}Ms`]).unref();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
    void Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      });
  });
}

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' });

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
    const { body: given = null } = request;
    const body = given === null || given instanceof Uint8Array ? given : JSON.stringify(given);
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
