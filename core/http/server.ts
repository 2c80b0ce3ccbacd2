import http, { type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TlsConfig } from '../config/tls.ts';
import { answerClientError } from './error-answer.ts';
import { tlsOptions } from './tls.ts';

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** How long a request's body may take to arrive. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxConnections?: number;
  /** Undefined for plain HTTP. */
  readonly tls?: TlsConfig;
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
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
