import type { HedgeRule } from '../config/model-routes.ts';
import type { RetryState, Target } from '../contract/call.ts';
import type { FailureClass, UpstreamPhase } from '../contract/provider.ts';

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

/** The longest wait that a vendor asks for and that a caller is kept waiting for. */
export const LONGEST_WAIT_MS = 5_000;

/** An attempt that took longer is not tried again: its caller has waited enough. */
const LONGEST_ATTEMPT_MS = 10_000;

/** How long to wait where the vendor does not say: somewhere between. */
const JITTER_MS = Object.freeze({ least: 100, most: 400 });

/**
 * How long to wait before the same target is sent the same request once more; undefined when it must not be. `isIdempotent`: the
 * caller says that doing it twice does no harm.
 */
export function retryDelayMs(facts: FailureFacts, isIdempotent: boolean, random: () => number): number | undefined {
  const { retryAfterMs = 0, durationMs } = facts;
  if (!mayRetry(facts, isIdempotent) || retryAfterMs > LONGEST_WAIT_MS || durationMs > LONGEST_ATTEMPT_MS)
    return undefined;
  // Never sooner than the vendor asked for, and not all callers at the same moment.
  const jitterMs = JITTER_MS.least + random() * (JITTER_MS.most - JITTER_MS.least);
  return retryAfterMs + jitterMs;
}

function mayRetry({ class: kind, status, phase, isSent }: FailureFacts, isIdempotent: boolean): boolean {
  if (kind === undefined || MEANT.has(kind)) return false;
  if (phase !== undefined) {
    // A timeout of ours has passed, or our connections are used up.
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

/** Bounds the retries of this process, so that a provider that fails does not get twice the calls. */
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
    return { live: this.live, running: this.#running, allowed: this.#allowed, refused: this.#refused };
  }
}

/** Of how many of the latest attempts it is known what they took, and of how many it must be before that says something. */
const KEPT = 100;
const LEAST = 20;

/** What nineteen of twenty do not exceed. */
const QUANTILE = 0.95;

/** What an alias may save up: as many calls may be asked twice in a row when its target becomes slow. */
const MOST_SAVED = 10;

/** A share of an alias's calls may be asked twice; and what its targets take, to know which calls take long. It outlives a change of the configuration. */
export class Hedges {
  /** How many calls may be asked twice now, by alias. */
  readonly #saved = new Map<string, number>();
  /** Milliseconds of the latest attempts, the oldest first. */
  readonly #times = new Map<string, number[]>();

  /** A call of the alias begins, which saves up. The first one of all may be asked twice already. */
  deposit(alias: string, { maxExtra }: HedgeRule): void {
    const saved = this.#saved.get(alias) ?? (maxExtra > 0 ? 1 : 0);
    this.#saved.set(alias, Math.min(saved + maxExtra, MOST_SAVED));
  }

  /** Consumes one hedge token; false when none is left. */
  withdraw(alias: string): boolean {
    const saved = this.#saved.get(alias) ?? 0;
    // Twenty times 0.05 is a little less than one.
    if (saved < 1 - 1e-9) return false;
    this.#saved.set(alias, saved - 1);
    return true;
  }

  /** Notes what an attempt took; of one that was left, as long as it lasted: else only the quick ones would count. */
  note(target: Target, stream: boolean, ms: number): void {
    const name = nameOf(target, stream);
    const times = this.#times.get(name) ?? [];
    this.#times.set(name, times);
    times.push(ms);
    if (times.length > KEPT) times.shift();
  }

  /** How long a target may take before another one is asked concurrently; undefined while that is not known. */
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
