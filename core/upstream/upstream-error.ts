import type { FailureClass } from '../contract/provider.ts';

/**
 * Where an attempt failed. `connect` to `total` are the four clocks and what happens while they run; `body`: the answer
 * itself is at fault (broken off, too large, a redirect, encoded); `aborted`: the caller's signal fired.
 */
export type UpstreamPhase = 'connect' | 'firstByte' | 'idle' | 'total' | 'body' | 'aborted';

export interface UpstreamErrorOptions {
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  readonly sent: boolean;
  /** Whether the answer's status says that the vendor did nothing, so that nothing is owed. */
  readonly refused?: boolean;
  /** What happened underneath; for logs only, it may name hosts. */
  readonly cause?: unknown;
}

/** An attempt that came to no answer, or to half of one. Its message names no host, no key and no path. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  /** Whether the request may have reached the vendor, and so may cost something. */
  readonly sent: boolean;
  /** Whether the vendor answered that it did nothing (a redirect, no content), so that nothing is owed. */
  readonly refused: boolean;

  constructor(message: string, options: UpstreamErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.failure = options.failure;
    this.phase = options.phase;
    this.sent = options.sent;
    this.refused = options.refused ?? false;
  }
}

/** What a socket says when its other end is gone: on a reused one, the vendor closed it while we were writing. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether an error of undici or of a socket says that the connection went away. */
export function isReset(error: unknown): boolean {
  return RESET_CODES.has(errorCode(error));
}

/** Undici's own connect timer, which runs beside ours and may win. */
export function isTimeout(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT';
}

/** Whether undici refused the request as it was given: a fault of configuration or codec. */
export function isMisuse(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED';
}

function errorCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null ? (error as { readonly code?: unknown }).code : undefined;
}
