import type { Endpoint, HttpRequest } from '../provider.ts';
import { type Address, bindCredential, joinPath, parseBaseUrl } from './address.ts';

/** A request as undici's `Client.dispatch` takes it, and where it goes. */
export interface PreparedRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array | null;
}

interface KnownEndpoint {
  readonly address: Address;
  readonly headers: Readonly<Record<string, string>>;
}

/** What frames a message or names its receiver is ours to say: `host` would even change whose certificate is checked. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Makes requests ready to send: the address, the endpoint's headers under the request's, JSON, and last the key. What
 * depends on the endpoint alone is worked out once. Throws a TypeError for what can't be sent.
 */
export function createRequestPreparer(): (endpoint: Endpoint, request: HttpRequest) => PreparedRequest {
  const known = new WeakMap<Endpoint, KnownEndpoint>();
  return (endpoint, request) => {
    let { address, headers: common } = known.get(endpoint) ?? {};
    if (!address) {
      address = parseBaseUrl(endpoint.baseUrl);
      common = { 'user-agent': 'tollgate', ...readHeaders(endpoint.headers) };
      known.set(endpoint, { address, headers: common });
    }
    const body = encodeBody(request.body);
    const headers: Record<string, string> = { ...common, ...readHeaders(request.headers) };
    headers['accept-encoding'] = 'identity';
    if (body) headers['content-type'] ??= 'application/json';
    const credential = bindCredential(endpoint, address);
    if (credential) headers[credential[0]] = credential[1];
    const method = request.method ?? (body ? 'POST' : 'GET');
    return { origin: address.origin, method, path: joinPath(address, request.path), headers, body };
  };
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

function encodeBody(body: HttpRequest['body']): Uint8Array | null {
  if (body === undefined || body instanceof Uint8Array) return body ?? null;
  return Buffer.from(JSON.stringify(body));
}
