import http, { type IncomingMessage, type RequestListener, type Server } from 'node:http';
import https, { type ServerOptions as TlsServerOptions } from 'node:https';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { TlsConfig } from '../../config/tls.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import { requestIdOf } from '../calls/ids.ts';
import { answerClientError } from './error-answer.ts';
import { closeOwnPort, type Listener } from './lifecycle.ts';

interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** Time limit for the arrival of a request's body. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxConnections?: number;
  /** Undefined for plain HTTP. */
  readonly tls?: TlsConfig;
}

/** Limits a listener to requests below a base path, which is removed from their URLs; others get 404. */
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

/** Removes the base path from the URL of a request; returns false if the URL does not start with it. */
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

/** Maximum number of request headers, checked before all else. */
export const MAX_HEADERS = 100;

/** Creates an HTTP or HTTPS server with limits on slow and large requests (listed in `docs/security.md`). */
export function createHttpServer(listener: RequestListener, options: ServerOptions): Server {
  const settings = {
    connectionsCheckingInterval: Math.min(1_000, options.requestTimeoutMs),
    maxHeaderSize: 16 * 1024,
    requireHostHeader: true,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const server = options.tls
    ? https.createServer({ ...settings, ...tlsOptions(options.tls) }, listener)
    : http.createServer(settings, listener);
  // One above the limit, so that excess headers are rejected instead of silently dropped.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.maxRequestsPerSocket = 0;
  server.timeout = 0;
  setServerOptions(server, options);
  server.on('clientError', answerClientError);
  return server;
}

/** Changes options of a listening server, from the next connection on. */
export function setServerOptions(
  server: Server,
  { requestTimeoutMs, keepAliveMs, maxConnections }: Omit<ServerOptions, 'host' | 'port' | 'tls'>,
): void {
  server.headersTimeout = Math.min(15_000, requestTimeoutMs);
  server.requestTimeout = requestTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
  if (maxConnections !== undefined) server.maxConnections = maxConnections;
}

/**
 * Maximum pending connections. With Node's 511, a burst on a busy machine waits for the clients' second attempt, a second or more
 * later.
 */
const BACKLOG = 4096;

/** Listens and returns the bound port. Rejects if the port is in use or forbidden. */
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

/** No port: connections are made within the process. */
export const NO_PORT: Listener = Object.freeze({
  listen: () => Promise.resolve(0),
  close: closeOwnPort,
});

/** Time limit of a TLS handshake; equal to that of the request headers. */
const HANDSHAKE_MS = 15_000;

/** Returns the TLS options of a server. */
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
 * Replaces the TLS files: open connections stay, new ones use them. Enabling TLS or client certificates requires a restart: without
 * our own CA, any CA known to Node would be accepted.
 */
export function renewTls(server: Server, started: TlsConfig | undefined, next: TlsConfig | undefined): void {
  if (!(server instanceof https.Server) || started === undefined || next === undefined) return;
  const { clientCa: _next, ...rest } = next;
  const clientCa = started.clientCa === undefined ? undefined : (next.clientCa ?? started.clientCa);
  server.setSecureContext(contextOptions({ ...rest, ...(clientCa !== undefined && { clientCa }) }));
}

/** Tracks TLS connections until the end of their handshake, because the HTTP server does not know them before. */
interface Handshakes {
  /** Closes connections with an unfinished handshake. */
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
      // A wrong certificate is an error even if certificates are optional.
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

/** Returns the remote end of a connection, equal for a socket and its TLS wrapper. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
