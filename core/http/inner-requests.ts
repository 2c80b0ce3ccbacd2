import http, { type IncomingMessage, type Server } from 'node:http';
import https from 'node:https';
import { type Duplex, duplexPair, Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { OwnRequest } from '../../contract/route.ts';
import type { RequestState } from './lifecycle.ts';

/**
 * Requests that the gateway sends to itself on behalf of a caller. They continue if the caller disconnects, and their responses are
 * read in full. The results of their calls are reported to the caller's request.
 */
export class InnerRequests {
  #server: Server | undefined;
  #basePath = '';
  /** State of the caller's request, by the socket of the inner request. */
  readonly outer = new WeakMap<object, RequestState>();

  /** Sets the server that receives them. */
  attach(server: Server, basePath: string): void {
    this.#server = server;
    this.#basePath = basePath;
  }

  /** Resolves with the head of the response; `outer` is the state of the caller's request. */
  post(request: LocalRequest, outer: RequestState): Promise<IncomingMessage> {
    return postLocally(this.#attached(), this.#below(request), (socket) => this.outer.set(socket, outer));
  }

  /** Sends an independent request, with its own log line and its own memory accounting. */
  send(request: OwnRequest & Pick<LocalRequest, 'address'>): Promise<IncomingMessage> {
    return sendLocally(this.#attached(), this.#below(request));
  }

  /** Adds the base path: plugins and routes use paths without it. */
  #below<R extends { readonly path: string }>(request: R): R {
    return { ...request, path: this.#basePath + request.path };
  }

  #attached(): Server {
    if (!this.#server) throw new TypeError('there is no server yet');
    return this.#server;
  }
}

interface LocalRequest {
  readonly path: string;
  readonly headers: http.OutgoingHttpHeaders;
  /** Caller's address for the server. */
  readonly address: string;
  readonly body: string | Buffer;
  readonly signal: AbortSignal;
}

/** Posts JSON to a server of this process without a socket. */
export function postLocally(
  server: Server,
  { headers, body, ...request }: LocalRequest,
  onSocket?: (socket: Duplex) => void,
): Promise<IncomingMessage> {
  const own = { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return sendLocally(server, { ...request, method: 'POST', headers: own, body }, onSocket);
}

/**
 * Sends a request to a server of this process without a socket. All checks of HTTP requests apply (keys, limits, bodies, log,
 * errors). `onSocket` gets the server's end of the connection. Node documents both ends: any Duplex may be emitted as a server's
 * `connection` event, and a request may bring its own connection.
 */
function sendLocally(
  server: Server,
  {
    address,
    body,
    ...request
  }: Omit<OwnRequest, 'body'> & { readonly address: string; readonly body: string | Buffer | Readable | undefined },
  onSocket: (socket: Duplex) => void = () => {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const near = connectTo(server, address, onSocket);
    const sent = http.request({ ...request, createConnection: () => near });
    sent.once('response', resolve);
    // Also after the response: an unneeded body is not read further.
    sent.on('error', reject);
    // A disconnecting caller ends it by the signal. A server that stops reading the body does not affect the caller's request.
    if (body instanceof Readable) body.pipe(sent);
    else sent.end(body);
  });
}

/** Returns the client end of a connection to a server of this process. */
function connectTo(server: Server, address: string, onSocket: (socket: Duplex) => void = () => {}): Duplex {
  const [near, far] = duplexPair();
  onSocket(far);
  // Some Node versions do not close the other end, which would then miss the disconnect of the caller.
  near.once('close', () => far.destroy());
  feedConnection(server, Object.assign(far, { remoteAddress: address }));
  return near;
}

/** Statuses whose responses must not have a body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Sends a request to a server of this process without a socket, as `fetch` would from this machine; resolves with the head of the
 * response.
 */
export async function injectRequest(server: Server, incoming: Request): Promise<Response> {
  const { pathname, search, host } = new URL(incoming.url);
  const body = incoming.body ? Buffer.from(await incoming.arrayBuffer()) : undefined;
  const response = await sendLocally(server, {
    method: incoming.method,
    path: pathname + search,
    signal: incoming.signal,
    address: '127.0.0.1',
    body,
    headers: { host, ...Object.fromEntries(incoming.headers), ...(body && { 'content-length': body.length }) },
  });
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(response.headersDistinct))
    for (const value of values) headers.append(name, value);
  const { statusCode: status = 200 } = response;
  if (BODILESS.has(status) || incoming.method === 'HEAD') {
    response.resume();
    return new Response(null, { status, headers });
  }
  return new Response(Readable.toWeb(response) as ReadableStream<Uint8Array>, { status, headers });
}

/** Passes a connection after its handshake to a server, as Node documents for its `connection` event. */
export function feedConnection(server: Server, connection: Duplex): void {
  server.emit(server instanceof https.Server ? 'secureConnection' : 'connection', connection);
}
