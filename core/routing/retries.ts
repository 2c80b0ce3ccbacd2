import type { RetryState } from '../contract/call.ts';
import type { FailureClass } from '../contract/provider.ts';
import type { UpstreamPhase } from '../upstream/upstream.ts';

/** What is known of an attempt that failed. */
export interface FailureFacts {
  readonly class?: FailureClass | undefined;
  /** The status that the provider sent; undefined when it sent none. */
  readonly status: number | undefined;
  /** Where the connection failed; undefined when there was a response. */
  readonly phase?: UpstreamPhase | undefined;
  /** Whether the request may have reached the vendor. */
  readonly isSent: boolean;
  readonly retryAfterMs?: number | undefined;
  readonly durationMs: number;
}

/** What the vendor says by these: it has not begun to work. */
const NOT_BEGUN: ReadonlySet<number> = new Set([429, 503, 529]);

/** What a vendor says of the account, or of this request, whatever its status: the same request fails again. */
const MEANT: ReadonlySet<FailureClass> = new Set(['billing', 'authentication', 'request_over_limit']);

/** What may have been worked on. */
const PERHAPS_BEGUN: ReadonlySet<number> = new Set([502, 504]);

/** The longest wait that a vendor tells and that a caller is kept waiting for. */
export const LONGEST_WAIT_MS = 5_000;

/** An attempt that took longer is not tried again: its caller has waited enough. */
const LONGEST_ATTEMPT_MS = 10_000;

/** How long to wait where nothing is told: somewhere between. */
const JITTER_MS = Object.freeze({ least: 100, most: 400 });

/**
 * How long to wait before the same target is sent the same request once more; undefined when it must not be. `isIdempotent`: the
 * caller says that doing it twice does no harm.
 */
export function retryDelayMs(facts: FailureFacts, isIdempotent: boolean, random: () => number): number | undefined {
  const { retryAfterMs = 0, durationMs } = facts;
  if (!mayRetry(facts, isIdempotent) || retryAfterMs > LONGEST_WAIT_MS || durationMs > LONGEST_ATTEMPT_MS)
    return undefined;
  // Never sooner than told, and not all callers at the same moment.
  const jitterMs = JITTER_MS.least + random() * (JITTER_MS.most - JITTER_MS.least);
  return retryAfterMs + jitterMs;
}

function mayRetry({ class: kind, status, phase, isSent }: FailureFacts, isIdempotent: boolean): boolean {
  if (kind === undefined || MEANT.has(kind)) return false;
  if (phase !== undefined) {
    // A clock of ours ran out, or the connections of ours.
    if (kind !== 'upstream_error') return false;
    return phase === 'connect' && !isSent ? true : isIdempotent;
  }
  if (kind === 'rate_limit' || kind === 'overloaded') return true;
  if (status === undefined) return false;
  return NOT_BEGUN.has(status) || (isIdempotent && PERHAPS_BEGUN.has(status));
}

/** How many retries may run at once: a share of the live calls, and never fewer than the floor. */
const SHARE = 0.2;
const FLOOR = 3;

/** Bounds the retries of the whole process, so that a provider that fails does not get twice the calls. */
export class RetryBudget {
  /** Calls that have begun and not ended. */
  live = 0;
  #running = 0;
  #refused = 0;

  /** Takes the place of one retry, to be released; false when too many run. */
  reserve(): boolean {
    if (this.#running < this.#allowed) this.#running += 1;
    else {
      this.#refused += 1;
      return false;
    }
    return true;
  }

  release(): void {
    this.#running -= 1;
  }

  get #allowed(): number {
    return Math.max(FLOOR, Math.floor(this.live * SHARE));
  }

  get state(): RetryState {
    return { running: this.#running, allowed: this.#allowed, refused: this.#refused };
  }
}
