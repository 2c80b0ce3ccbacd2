import type { Endpoint, HttpRequest } from '../contract/provider.ts';
import { type Address, bindCredential, joinPath, parseBaseUrl } from './address.ts';

/** A request as undici's `Client.dispatch` takes it, and where it goes. */
export interface PreparedRequest {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
}

/** What of a request depends on its endpoint alone. */
interface KnownEndpoint {
  readonly address: Address;
  /** In lower case. A request's own may replace them, but not the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly credential: readonly [name: string, value: string] | undefined;
  /** All of them, for a request with a body and no headers of its own: most. */
  readonly usual: Readonly<Record<string, string>>;
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
    let found = known.get(endpoint);
    if (!found) {
      found = knowEndpoint(endpoint);
      known.set(endpoint, found);
    }
    const { address } = found;
    const body = encodeBody(request.body);
    const headers = body && !request.headers ? found.usual : headersOf(found, request.headers, body !== null);
    const method = request.method ?? (body ? 'POST' : 'GET');
    return { origin: address.origin, method, path: joinPath(address, request.path), headers, body };
  };
}

function knowEndpoint(endpoint: Endpoint): KnownEndpoint {
  const address = parseBaseUrl(endpoint.baseUrl);
  const headers = { 'user-agent': 'tollgate', ...readHeaders(endpoint.headers), 'accept-encoding': 'identity' };
  const own = { headers, credential: bindCredential(endpoint, address) };
  return { address, ...own, usual: headersOf(own, undefined, true) };
}

function headersOf(
  { headers, credential }: Pick<KnownEndpoint, 'headers' | 'credential'>,
  own: HttpRequest['headers'],
  hasBody: boolean,
): Readonly<Record<string, string>> {
  const all: Record<string, string> = { ...headers, ...readHeaders(own) };
  if (hasBody) all['content-type'] ??= 'application/json';
  if (credential) all[credential[0]] = credential[1];
  return all;
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
