import http, { type IncomingMessage, type Server } from 'node:http';
import https from 'node:https';
import { type Duplex, duplexPair, Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { OwnRequest } from '../../contract/route.ts';
import type { RequestState } from './lifecycle.ts';

/**
 * Requests that the gateway makes to itself in place of a caller's: they run on when the caller leaves, and what they respond is
 * seen whole. What the calls made for them come to is told to the caller's request.
 */
export class InnerRequests {
  #server: Server | undefined;
  #basePath = '';
  /** By its socket, the state of the caller's request that one was made for. */
  readonly outer = new WeakMap<object, RequestState>();

  /** Names the server that they go to. */
  attach(server: Server, basePath: string): void {
    this.#server = server;
    this.#basePath = basePath;
  }

  /** Resolves with the head of the response; `outer` is the state of the caller's request. */
  post(request: LocalRequest, outer: RequestState): Promise<IncomingMessage> {
    return postLocally(this.#attached(), this.#below(request), (socket) => this.outer.set(socket, outer));
  }

  /** Sends a request of its own right: it has its own line in the log, and what is booked for it is its own. */
  send(request: OwnRequest & Pick<LocalRequest, 'address'>): Promise<IncomingMessage> {
    return sendLocally(this.#attached(), this.#below(request));
  }

  /** Plugins and routes know paths without the base path. */
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
  /** The caller's address, as the server is to see it. */
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
 * Sends a request to a server of this process without a socket: all that HTTP requests pass (keys, limits, bodies, log, errors) holds for it.
 * `onSocket` gets the server's end of the connection. Node documents both ends: the server's `connection` event may be emitted with any Duplex, and a request may bring its own.
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
    // Also after the response: of a body that is no longer wanted nothing more is read.
    sent.on('error', reject);
    // A caller who leaves ends it by the signal; a server that wants no more of the body leaves the caller's request alone.
    if (body instanceof Readable) body.pipe(sent);
    else sent.end(body);
  });
}

/** The near end of a connection to a server of this process. */
function connectTo(server: Server, address: string, onSocket: (socket: Duplex) => void = () => {}): Duplex {
  const [near, far] = duplexPair();
  onSocket(far);
  // Not every Node does so: a caller who leaves would not be missed on the other side.
  near.once('close', () => far.destroy());
  feedConnection(server, Object.assign(far, { remoteAddress: address }));
  return near;
}

/** What a response of these must not have a body for. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Makes a request to a server of this process without a socket, as `fetch` would make it from this machine; resolves with the head of the
 * response.
 */
export async function injectRequest(server: Server, incoming: Request): Promise<Response> {
  const { pathname, search, host } = new URL(incoming.url);
  const body = incoming.body ? Buffer.from(await incoming.arrayBuffer()) : undefined;
  const response = await sendLocally(server, {
    ...{ method: incoming.method, path: pathname + search, signal: incoming.signal, address: '127.0.0.1', body },
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

/** Gives a server a connection that needs no handshake any more, as Node documents for its `connection` event. */
export function feedConnection(server: Server, connection: Duplex): void {
  server.emit(server instanceof https.Server ? 'secureConnection' : 'connection', connection);
}
