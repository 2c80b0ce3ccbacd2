import { isGatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/log.ts';
import type { AttemptResponse } from '../contract/operation.ts';
import type { ResponseHeaders, TransportResponse } from '../contract/provider.ts';
import { type Attempt, errorCode } from './attempt.ts';
import type { Connection, Connections } from './connections.ts';
import { NetworkResponse } from './network-response.ts';
import type { PreparedRequest } from './prepare-request.ts';
import { MEMORY_PER_BYTE, type ResponseBudget, type ResponseHold } from './response-budget.ts';

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
  const { path, method, headers, body } = request;
  const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = attempt.timeouts;
  for (let isRetry = false; ; isRetry = true) {
    const connection = connections.take(isRetry);
    if (!connection)
      throw attempt.fail('all connections to the provider are in use', { failure: 'overloaded', phase: 'connect' });
    const traffic = new Traffic(connection);
    attempt.isSent = () => traffic.isSent();
    attempt.onStop = () => connections.drop(connection);
    const response = new NetworkResponse((isWhole) => {
      attempt.end();
      if (isWhole) connections.release(connection);
      else connections.drop(connection);
    });
    try {
      connection.client.dispatch({ path, method, headers, body, headersTimeout, bodyTimeout }, response);
      return await response.head;
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

/** What goes over a connection from now on. Its socket may be another then: undici replaces a kept one that closed. */
class Traffic {
  readonly #connection: Connection;
  readonly #kept: Connection['socket'];
  readonly #read: number;
  readonly #written: number;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#kept = connection.socket;
    this.#read = this.#kept?.bytesRead ?? 0;
    this.#written = this.#kept?.bytesWritten ?? 0;
  }

  isKept(): boolean {
    return this.#kept !== undefined && this.#connection.socket === this.#kept;
  }

  isSent(): boolean {
    return (this.#connection.socket?.bytesWritten ?? 0) > (this.isKept() ? this.#written : 0);
  }

  hasResponded(): boolean {
    return (this.#connection.socket?.bytesRead ?? 0) > (this.isKept() ? this.#read : 0);
  }
}

/** A response as an operation sees it, and also one of a bad status, 400 to 599. Errors are {@link UpstreamError}s. */
export interface UpstreamResponse extends AttemptResponse {
  /** Read once. Who stops reading stops the vendor, who leaves hangs up. */
  readonly body: AsyncIterable<Buffer>;
  /** Reserves so much more memory than `readAll` did, for what is made of its bytes; throws where there is none. */
  reserve(bytes: number): void;
  /** Gives back the memory of what was read, when nothing is made of it after all. */
  release(): void;
}

export interface ResponseRules {
  readonly maxBytes: number;
  readonly budget: ResponseBudget;
  /** Until when what was read as a whole is kept; only while it is read when undefined. */
  readonly heldUntil: Promise<void> | undefined;
}

/** Makes the response whose head is there; throws when that head makes it useless whatever its body says. */
export function openResponse(
  { status, headers, body }: TransportResponse,
  attempt: Attempt,
  { maxBytes, budget, heldUntil }: ResponseRules,
): UpstreamResponse {
  // Both say that the vendor did no work.
  const refused = { ...USELESS, refused: true };
  if (status >= 300 && status < 400)
    throw attempt.fail(`the provider answered with a redirect (${status}); none is followed`, refused);
  if (status === 204 || status === 205)
    throw attempt.fail(`the provider answered with status ${status}, which has no content`, refused);
  if (Number(headers['content-length']) > maxBytes) throw tooLong(attempt, maxBytes);
  if (isEncoded(headers)) {
    if (status < 400) throw attempt.fail('the provider answered with a content-encoding nobody asked for', USELESS);
    // An encoded error page is still an error: its status counts, its text is dropped.
    attempt.leave();
  }
  let hold: ResponseHold | undefined;
  return {
    status,
    headers,
    body: readBody(body, attempt, maxBytes),
    async readAll(limit = maxBytes) {
      const held = budget.open();
      hold = held;
      try {
        return await readAll(body, attempt, Math.min(limit, maxBytes), held);
      } catch (error) {
        held.release();
        throw error;
      } finally {
        if (heldUntil) void heldUntil.then(() => held.release());
        else held.release();
      }
    },
    reserve: (bytes) => hold?.grow(bytes),
    release: () => hold?.release(),
    destroy: () => attempt.leave(),
  };
}

async function* readBody(body: AsyncIterable<Uint8Array>, attempt: Attempt, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const { buffer, byteOffset, byteLength } of body) {
      if (attempt.wasLeft) return;
      size += byteLength;
      if (size > maxBytes) throw tooLong(attempt, maxBytes);
      yield Buffer.from(buffer, byteOffset, byteLength);
    }
    attempt.end();
  } catch (error) {
    if (!attempt.wasLeft) throw attempt.explain(error, 'body');
  } finally {
    attempt.leave();
  }
}

async function readAll(
  body: AsyncIterable<Uint8Array>,
  attempt: Attempt,
  maxBytes: number,
  hold: ResponseHold,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of body) {
      if (attempt.wasLeft) break;
      size += part.byteLength;
      if (size > maxBytes) throw tooLong(attempt, maxBytes);
      hold.grow(part.byteLength * MEMORY_PER_BYTE);
      parts.push(part);
    }
    attempt.end();
  } catch (error) {
    if (isGatewayError(error)) throw error;
    if (!attempt.wasLeft) throw attempt.explain(error, 'body');
  } finally {
    attempt.leave();
  }
  return Buffer.concat(parts, size);
}

/** Whether a body is compressed. We ask for `identity`; nothing here decodes anything. */
function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

const USELESS = Object.freeze({ failure: 'upstream_error', phase: 'body' } as const);

function tooLong(attempt: Attempt, maxBytes: number): Error {
  return attempt.fail(`the answer is longer than ${maxBytes} bytes`, USELESS);
}
