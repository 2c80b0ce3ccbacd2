import http, { type IncomingMessage, type RequestListener, type Server } from 'node:http';
import https, { type ServerOptions as TlsServerOptions } from 'node:https';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { TlsConfig } from '../../config/tls.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import { requestIdOf } from '../calls/call.ts';
import { answerClientError } from './error-answer.ts';
import { closeOwnPort, type Listener } from './lifecycle.ts';

interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** How long a request's body may take to arrive. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxConnections?: number;
  /** Undefined for plain HTTP. */
  readonly tls?: TlsConfig;
}

/** Gives a listener the requests below a base path, which it sees without that; what is elsewhere is not found. */
export function listenBelow(basePath: string, listener: RequestListener): RequestListener {
  if (basePath === '') return listener;
  return (request, response) => {
    if (cutBasePath(request, basePath)) return listener(request, response);
    const requestId = requestIdOf(request.headers['x-request-id']);
    const error = outsideError(basePath);
    response.writeHead(error.status, { 'content-type': 'application/json; charset=utf-8', 'x-request-id': requestId });
    response.end(JSON.stringify(error.toBody(requestId)));
  };
}

/** Takes the base path off the URL of a request; false where it does not begin with that. */
export function cutBasePath(request: IncomingMessage, basePath: string): boolean {
  const { url = '/' } = request;
  const rest = url.slice(basePath.length);
  if (!url.startsWith(basePath) || !/^(?:[/?]|$)/.test(rest)) return false;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  return true;
}

export function outsideError(basePath: string): GatewayError {
  return new GatewayError(
    'unknown_url',
    `The paths of this gateway begin with ${basePath}. A client's base URL is {gateway}${basePath}/v1, or {gateway}${basePath} where the client adds /v1 itself.`,
  );
}

/** Headers a request may have; counted before anything else looks at it. */
export const MAX_HEADERS = 100;

/** An HTTP or HTTPS server with bounds on slow and large requests (`docs/security.md` lists them). */
export function createHttpServer(listener: RequestListener, options: ServerOptions): Server {
  const settings = {
    connectionsCheckingInterval: Math.min(5_000, options.requestTimeoutMs),
    maxHeaderSize: 16 * 1024,
    requireHostHeader: true,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const server = options.tls
    ? https.createServer({ ...settings, ...tlsOptions(options.tls) }, listener)
    : http.createServer(settings, listener);
  // One more than is allowed, so that too many are seen and refused rather than silently dropped.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.maxRequestsPerSocket = 0;
  server.timeout = 0;
  setServerOptions(server, options);
  server.on('clientError', answerClientError);
  return server;
}

/** What may change while it listens: from the next connection on. */
export function setServerOptions(
  server: Server,
  { requestTimeoutMs, keepAliveMs, maxConnections }: Omit<ServerOptions, 'host' | 'port' | 'tls'>,
): void {
  server.headersTimeout = Math.min(15_000, requestTimeoutMs);
  server.requestTimeout = requestTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
  if (maxConnections !== undefined) server.maxConnections = maxConnections;
}

/** Connections that wait to be taken; with Node's 511 a burst on a busy machine waits for its clients' second try, a second later and more. */
const BACKLOG = 4096;

/** Listens, and answers the port that was bound. Rejects when the port is taken or not allowed. */
export function listen(server: NetServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

export const OWN_PORT: Listener = Object.freeze({
  listen,
  close: closeOwnPort,
});

/** No port at all: connections are made within the process. */
export const NO_PORT: Listener = Object.freeze({
  listen: () => Promise.resolve(0),
  close: closeOwnPort,
});

/** How long a client may take to agree on a key; as long as it may take for the headers of a request. */
const HANDSHAKE_MS = 15_000;

/** The options of a server with TLS. */
function tlsOptions(tls: TlsConfig): TlsServerOptions {
  const { clientCa, clientAuth } = tls;
  return {
    ...contextOptions(tls),
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined && clientAuth === 'required',
  };
}

function contextOptions({ cert, key, passphrase, minVersion, clientCa: ca }: TlsConfig): TlsServerOptions {
  return { cert, key, minVersion, ...(passphrase !== undefined && { passphrase }), ...(ca !== undefined && { ca }) };
}

/**
 * Goes on with other files: connections that are open stay, the next ones get these. Whether there is TLS at all, and whether clients
 * are asked for certificates, stays as it was at the start: without an authority of ours any authority that Node knows would do.
 */
export function renewTls(server: Server, started: TlsConfig | undefined, next: TlsConfig | undefined): void {
  if (!(server instanceof https.Server) || started === undefined || next === undefined) return;
  const { clientCa: _next, ...rest } = next;
  const clientCa = started.clientCa === undefined ? undefined : (next.clientCa ?? started.clientCa);
  server.setSecureContext(contextOptions({ ...rest, ...(clientCa !== undefined && { clientCa }) }));
}

/** Looks after connections of a server with TLS until their handshake is over: the HTTP server does not know them before. */
interface Handshakes {
  /** Cuts those that are not over. */
  drain(): void;
}

export function watchHandshakes(server: Server, log: Log): Handshakes {
  const open = new Map<string, Socket>();
  if (server instanceof https.Server) {
    server.on('connection', (socket: Socket) => {
      const name = nameOf(socket);
      open.set(name, socket);
      socket.once('close', () => open.get(name) === socket && open.delete(name));
    });
    server.prependListener('secureConnection', (socket: Duplex) => {
      if (!(socket instanceof TLSSocket)) return;
      open.delete(nameOf(socket));
      // Where certificates are optional, a wrong one is none all the same.
      if (!socket.authorized && Object.keys(socket.getPeerCertificate()).length > 0) {
        log.debug({ ip: socket.remoteAddress, code: socket.authorizationError }, 'client certificate rejected');
        socket.destroy();
      }
    });
    server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: TLSSocket) => {
      open.delete(nameOf(socket));
      log.debug({ ip: socket.remoteAddress, code }, 'a TLS handshake failed');
    });
  }
  return {
    drain() {
      for (const socket of open.values()) socket.destroy();
      open.clear();
    },
  };
}

/** The far end of a connection: the same for a socket and for what TLS makes of it. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
