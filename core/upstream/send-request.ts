import type { Dispatcher } from 'undici';
import type { Log } from '../contract/log.ts';
import type { TransportResponse } from '../contract/provider.ts';
import { type Attempt, errorCode } from './attempt.ts';
import type { Connection, Connections } from './connections.ts';
import type { PreparedRequest } from './prepare-request.ts';

/** What a socket or undici says when the other end is gone. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** How undici refuses a request as it was given: an error of configuration or codec. */
const MISUSE_CODES: ReadonlySet<unknown> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

/**
 * Sends one request over the network. When the vendor closed a kept connection under it, before a byte of a response, it
 * is sent once more, on a fresh one: that race is HTTP's, and the vendor has not seen the request.
 */
export async function sendRequest(
  request: PreparedRequest,
  connections: Connections,
  attempt: Attempt,
  log: Log,
): Promise<TransportResponse> {
  const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = attempt.timeouts;
  for (let isRetry = false; ; isRetry = true) {
    const connection = connections.take(isRetry);
    if (!connection)
      throw attempt.fail('all connections to the provider are in use', { failure: 'overloaded', phase: 'connect' });
    const traffic = watchTraffic(connection);
    attempt.isSent = traffic.isSent;
    attempt.onStop = () => connections.drop(connection);
    try {
      const response = await connection.client.request({ ...request, headersTimeout, bodyTimeout });
      return receive(response, connection, connections, attempt);
    } catch (error) {
      connections.drop(connection);
      const code = errorCode(error);
      if (error instanceof Error && MISUSE_CODES.has(code)) throw new TypeError(error.message);
      if (isRetry || attempt.error || !RESET_CODES.has(code) || !traffic.isKept() || traffic.hasResponded())
        throw attempt.explain(error, traffic.hasResponded() ? 'body' : traffic.isSent() ? 'firstByte' : 'connect');
      log.debug({ origin: request.origin }, 'a kept connection was closed under a request: sending it again');
    }
  }
}

/** The response whose head is there. Its connection is kept when it is read to the end, and cut otherwise. */
function receive(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  connection: Connection,
  connections: Connections,
  attempt: Attempt,
): TransportResponse {
  // The reader is told by its iteration; without a listener an error would end the process.
  body.on('error', () => {});
  body.on('close', () => {
    if (body.readableEnded) connections.release(connection);
    else connections.drop(connection);
    attempt.end();
  });
  // Undici gives a header that came more than once as a list; ours are text.
  const joined = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : value,
  ]);
  return { status: statusCode, headers: Object.fromEntries(joined), body };
}

/** Tells what goes over a connection from now on. Its socket may be another then: undici replaces a kept one that closed. */
function watchTraffic(connection: Connection) {
  const kept = connection.socket;
  const before = { read: kept?.bytesRead ?? 0, written: kept?.bytesWritten ?? 0 };
  const isKept = () => kept !== undefined && connection.socket === kept;
  return {
    isKept,
    isSent: () => (connection.socket?.bytesWritten ?? 0) > (isKept() ? before.written : 0),
    hasResponded: () => (connection.socket?.bytesRead ?? 0) > (isKept() ? before.read : 0),
  };
}
