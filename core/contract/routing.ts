import type { Target } from './call.ts';
import type { FailureClass } from './provider.ts';

/** Whether calls go to a target: `open` is left alone until its time is over, `half-open` is tested by one live call. */
export type TargetState = 'closed' | 'open' | 'half-open';

/**
 * Why a target is open: its vendor's rate limit, the operator's key or account, failures in a row, or what another worker or node
 * found out.
 */
export type OpenCause = 'rate_limit' | 'credential' | 'failures' | 'shared';

/** What is known of a target, as operators see it. */
export interface TargetReport extends Target {
  readonly state: TargetState;
  readonly cause?: OpenCause;
  /** Unix milliseconds until which it is left alone; absent when it is closed. */
  readonly openUntil?: number;
  /** The share of its latest attempts that failed, 0 to 1; later ones count more. */
  readonly errorRate: number;
  /** Attempts that were judged. */
  readonly attempts: number;
  /** Milliseconds to a whole response, and to the first token of a stream; later ones count more. */
  readonly wholeMs?: number;
  readonly firstTokenMs?: number;
  readonly lastError?: TargetError;
}

/** The last failure of a target. */
export interface TargetError {
  readonly at: number;
  /** The vendor's or the network's words, with secrets taken out. */
  readonly message: string;
  readonly class?: FailureClass;
  /** What the vendor sent; absent when it sent nothing. */
  readonly status?: number;
  /** What the system says of a connection that failed, such as `ECONNREFUSED`. */
  readonly errno?: string;
  /** The request that met it. */
  readonly requestId?: string;
}

/** What the gateway knows of its targets and its retries, in this process. */
export interface RoutingState {
  /** Those that were tried, the latest first. */
  readonly targets: readonly TargetReport[];
  readonly retries: RetryState;
}

/** The retries of this process: never more at once than a share of its live calls. */
export interface RetryState {
  readonly running: number;
  readonly allowed: number;
  /** Retries that were not made because too many ran. */
  readonly refused: number;
}
