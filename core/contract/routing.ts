import type { Target } from './call.ts';

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
  /** The vendor's or the network's words of its last failure, with secrets taken out. */
  readonly lastError?: { readonly at: number; readonly message: string };
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
