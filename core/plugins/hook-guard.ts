import type { HookName } from '../../contract/hooks.ts';

/** How long an asynchronous hook may take where its instance says nothing. */
export const HOOK_TIMEOUT_MS = 30_000;

/** After so many timeouts in a row a hook is left alone. */
const MAX_TIMEOUTS = 5;

/** For how long; then one call tries it. */
export const PAUSE_MS = 10_000;

/** How the hooks of one instance are bounded. */
export interface HookRules {
  readonly timeoutMs: number;
  /** `open`: a call goes on without a hook that fails. */
  readonly onFailure: 'open' | 'closed';
}

export const DEFAULT_RULES: HookRules = Object.freeze({ timeoutMs: HOOK_TIMEOUT_MS, onFailure: 'closed' });

/** What one instance did with one hook since the process started. */
export interface HookCounts {
  readonly plugin: string;
  readonly hook: HookName;
  calls: number;
  failures: number;
  /** Calls that it did its work for. */
  wentWell: number;
  /** Calls that went on, or failed, without it while it was left alone. */
  skipped: number;
  /** Calls that gave a promise, and what these took together. */
  timed: number;
  timedMs: number;
  failedInARow: number;
  timeoutsInARow: number;
  /** Of `performance.now()`; 0 while it is not left alone. */
  pausedUntilMs: number;
  /** The account whose call took too long last. */
  timedOutFor: string | undefined;
  /** Whether a call of another account tries it while it is left alone. */
  isTried: boolean;
}

/** The counts of all hooks of a process: they go on when the configuration changes. */
export class HookBook {
  readonly #counts = new Map<string, HookCounts>();

  countsOf(plugin: string, hook: HookName): HookCounts {
    const key = `${plugin} ${hook}`;
    let counts = this.#counts.get(key);
    if (!counts) {
      const zeros = { calls: 0, failures: 0, wentWell: 0, skipped: 0, timed: 0, timedMs: 0 };
      const pause = { timeoutsInARow: 0, pausedUntilMs: 0, timedOutFor: undefined, isTried: false };
      counts = { plugin, hook, ...zeros, failedInARow: 0, ...pause };
      this.#counts.set(key, counts);
    }
    return counts;
  }

  all(): readonly HookCounts[] {
    return [...this.#counts.values()];
  }
}

/** Counts a failure. */
export function countFailure(counts: HookCounts): void {
  counts.failures += 1;
  counts.failedInARow += 1;
  counts.isTried = false;
}

/**
 * Counts a timeout; returns whether the hook is left alone from now on. `wentWellBefore` is what {@link HookCounts.wentWell} was when
 * the work began: a hook that did others' work meanwhile does not hang, and what hangs is this caller's own.
 */
export function countTimeout(counts: HookCounts, wentWellBefore = counts.wentWell, account?: string): boolean {
  counts.timedOutFor = account;
  counts.timeoutsInARow = counts.wentWell > wentWellBefore ? 0 : counts.timeoutsInARow + 1;
  if (counts.timeoutsInARow < MAX_TIMEOUTS) return false;
  counts.pausedUntilMs = performance.now() + PAUSE_MS;
  return counts.timeoutsInARow === MAX_TIMEOUTS;
}

/**
 * Whether a hook is left alone now; counts who goes without it. Of those that come when the time is over one may try it, and before that
 * a call of another account than the one for which it took too long: it may hang for what that one sends alone.
 */
export function isLeftAlone(counts: HookCounts, account?: string): boolean {
  const now = performance.now();
  if (account !== undefined && account !== counts.timedOutFor && !counts.isTried) {
    counts.isTried = true;
    return false;
  }
  if (now >= counts.pausedUntilMs) {
    counts.pausedUntilMs = now + PAUSE_MS;
    return false;
  }
  counts.skipped += 1;
  return true;
}

/** Forgets failures after a call that went well; returns whether the hook was left alone before. */
export function forgetFailures(counts: HookCounts): boolean {
  const wasPaused = counts.pausedUntilMs > 0;
  counts.failedInARow = 0;
  counts.timeoutsInARow = 0;
  counts.pausedUntilMs = 0;
  counts.isTried = false;
  return wasPaused;
}
