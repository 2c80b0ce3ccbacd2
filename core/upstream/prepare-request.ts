import type { Credential, Endpoint, HttpRequest } from '../contract/provider.ts';

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' });

/** A request as undici takes it, and where it goes. */
export interface PreparedRequest {
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
