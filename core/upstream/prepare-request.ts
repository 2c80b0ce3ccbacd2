import type { Endpoint, HttpRequest } from '../contract/provider.ts';
import { type Address, bindCredential, joinPath, parseBaseUrl } from './address.ts';

/** A request as undici takes it, and where it goes. */
export interface PreparedRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array | null;
}

/** What of a request depends on its endpoint alone. */
interface KnownEndpoint {
  readonly address: Address;
  /** In lower case. A request's own may replace them, but not the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly credential: Readonly<Record<string, string>>;
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
    const { address, headers, credential } = known.get(endpoint) ?? knowEndpoint(endpoint, known);
    const body = encodeBody(request.body);
    const type = body === null ? {} : { 'content-type': 'application/json' };
    return {
      origin: address.origin,
      method: request.method ?? (body === null ? 'GET' : 'POST'),
      path: joinPath(address, request.path),
      headers: { ...type, ...headers, ...readHeaders(request.headers), ...credential },
      body,
    };
  };
}

function knowEndpoint(endpoint: Endpoint, known: WeakMap<Endpoint, KnownEndpoint>): KnownEndpoint {
  const address = parseBaseUrl(endpoint.baseUrl);
  const headers = { 'user-agent': 'tollgate', ...readHeaders(endpoint.headers), 'accept-encoding': 'identity' };
  const credential = bindCredential(endpoint, address);
  const found = { address, headers, credential: credential ? { [credential[0]]: credential[1] } : {} };
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
