import type { HedgeRule } from '../config/model-routes.ts';
import type { RetryState, Target } from '../contract/call.ts';
import type { FailureClass, UpstreamPhase } from '../contract/provider.ts';

/** Facts of a failed attempt. */
export interface FailureFacts {
  readonly class?: FailureClass | undefined;
  /** Status sent by the provider; undefined if there was none. */
  readonly status: number | undefined;
  /** Phase in which the connection failed; undefined if there was a response. */
  readonly phase?: UpstreamPhase | undefined;
  /** True if the request may have reached the vendor. */
  readonly isSent: boolean;
  readonly retryAfterMs?: number | undefined;
  readonly durationMs: number;
}

/** Statuses by which a vendor has not started to process the request. */
const NOT_BEGUN: ReadonlySet<number> = new Set([429, 503, 529]);

/** Failures of the account, or of this request, whatever their status: the same request fails again. */
const MEANT: ReadonlySet<FailureClass> = new Set([
  ...(['billing', 'authentication', 'permission', 'request_over_limit'] as const),
]);

/** Statuses after which the request may have been processed. */
const PERHAPS_BEGUN: ReadonlySet<number> = new Set([502, 504]);

/** Longest Retry-After for which a caller is kept waiting. */
export const LONGEST_WAIT_MS = 5_000;

/** Attempts that took longer are not retried: the caller has waited long enough. */
const LONGEST_ATTEMPT_MS = 10_000;

/** Random delay before a retry without a Retry-After. */
const JITTER_MS = Object.freeze({ least: 100, most: 400 });

/**
 * Delay before the same target gets the same request again; undefined if it must not. `isIdempotent`: the caller
 * declares repetition harmless.
 */
export function retryDelayMs(facts: FailureFacts, isIdempotent: boolean, random: () => number): number | undefined {
  const { retryAfterMs = 0, durationMs } = facts;
  if (!mayRetry(facts, isIdempotent) || retryAfterMs > LONGEST_WAIT_MS || durationMs > LONGEST_ATTEMPT_MS)
    return undefined;
  // Wait at least as long as the vendor requested, plus jitter so that callers do not retry at once.
  const jitterMs = JITTER_MS.least + random() * (JITTER_MS.most - JITTER_MS.least);
  return retryAfterMs + jitterMs;
}

function mayRetry({ class: kind, status, phase, isSent }: FailureFacts, isIdempotent: boolean): boolean {
  if (kind === undefined || MEANT.has(kind)) return false;
  if (phase !== undefined) {
    // One of our timeouts has passed, or our connections are exhausted.
    if (kind !== 'upstream_error') return false;
    return phase === 'connect' && !isSent ? true : isIdempotent;
  }
  if (kind === 'rate_limit' || kind === 'overloaded') return true;
  if (status === undefined) return false;
  return NOT_BEGUN.has(status) || (isIdempotent && PERHAPS_BEGUN.has(status));
}

/** Maximum concurrent retries: a share of the live calls, and at least the floor. */
const SHARE = 0.2;
const FLOOR = 3;

/** Limits the retries of this process, so that a failing provider does not get twice the calls. */
export class RetryBudget {
  /** Calls that have started and not ended. */
  live = 0;
  #running = 0;
  #refused = 0;

  /** Reserves one retry, to be released; returns false above the limit. */
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
    return { live: this.live, running: this.#running, allowed: this.#allowed, refused: this.#refused };
  }
}

/** Number of latest durations per target, and the least number for a percentile. */
const KEPT = 100;
const LEAST = 20;

/** Percentile of durations: 95 %. */
const QUANTILE = 0.95;

/** Maximum hedge tokens of an alias: this many consecutive calls may be hedged when its target becomes slow. */
const MOST_SAVED = 10;

/** Limits hedges to a share of an alias's calls, and measures targets to detect slow calls. It survives a reload. */
export class Hedges {
  /** Hedge tokens by alias. */
  readonly #saved = new Map<string, number>();
  /** Durations of the latest attempts in milliseconds, the oldest first. */
  readonly #times = new Map<string, number[]>();

  /** Adds hedge tokens for a new call of the alias. The first call starts with one token. */
  deposit(alias: string, { maxExtra }: HedgeRule): void {
    const saved = this.#saved.get(alias) ?? (maxExtra > 0 ? 1 : 0);
    this.#saved.set(alias, Math.min(saved + maxExtra, MOST_SAVED));
  }

  /** Consumes one hedge token; returns false if none is left. */
  withdraw(alias: string): boolean {
    const saved = this.#saved.get(alias) ?? 0;
    // Twenty times 0.05 is slightly less than one in floating point.
    if (saved < 1 - 1e-9) return false;
    this.#saved.set(alias, saved - 1);
    return true;
  }

  /**
   * Records the duration of an attempt. Abandoned attempts count with the time so far, since otherwise only fast ones
   * would count.
   */
  note(target: Target, stream: boolean, ms: number): void {
    const name = nameOf(target, stream);
    const times = this.#times.get(name) ?? [];
    this.#times.set(name, times);
    times.push(ms);
    if (times.length > KEPT) times.shift();
  }

  /** Delay before another target is tried concurrently; undefined while unknown. */
  afterMs({ after }: HedgeRule, target: Target, stream: boolean): number | undefined {
    if (after !== 'p95') return after;
    const times = this.#times.get(nameOf(target, stream)) ?? [];
    if (times.length < LEAST) return undefined;
    return times.toSorted((a, b) => a - b)[Math.floor(times.length * QUANTILE)];
  }
}

function nameOf({ provider, model }: Target, stream: boolean): string {
  return `${stream} ${provider}/${model}`;
}
