import http, { type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerClientError } from './error-answer.ts';

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** How long a request's body may take to arrive. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxConnections?: number;
}

/** Headers a request may have; counted before anything else looks at it. */
export const MAX_HEADERS = 100;

/** An HTTP server with bounds on slow and large requests (`docs/security.md` lists them). */
export function createHttpServer(listener: RequestListener, options: ServerOptions): Server {
  const server = http.createServer(
    {
      headersTimeout: Math.min(15_000, options.requestTimeoutMs),
      requestTimeout: options.requestTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, options.requestTimeoutMs),
      keepAliveTimeout: options.keepAliveMs,
      maxHeaderSize: 16 * 1024,
      requireHostHeader: true,
      insecureHTTPParser: false,
      noDelay: true,
    },
    listener,
  );
  // One more than is allowed, so that too many are seen and refused rather than silently dropped.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.maxRequestsPerSocket = 0;
  server.timeout = 0;
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  server.on('clientError', answerClientError);
  return server;
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
