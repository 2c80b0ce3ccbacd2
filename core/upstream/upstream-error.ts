import type { FailureClass } from '../contract/provider.ts';

/**
 * Where an attempt failed. `connect` to `total` are the four clocks and what happens while they run; `body`: the response
 * itself is wrong (broken off, too large, a redirect, encoded); `aborted`: the caller's signal fired.
 */
export type UpstreamPhase = 'connect' | 'firstByte' | 'idle' | 'total' | 'body' | 'aborted';

export interface UpstreamErrorOptions {
  readonly failure: FailureClass;
  readonly phase: UpstreamPhase;
  readonly sent: boolean;
  /** Whether the response's status says that the vendor did nothing, so that nothing is owed. */
  readonly refused?: boolean;
  /** What happened underneath; for logs only, it may name hosts. */
  readonly cause?: unknown;
}

/** An attempt that came to no response, or to half of one. Its message names no host, no key and no path. */
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
