import type { HookName } from '../../contract/hooks.ts';

/** Default time limit of an asynchronous hook. */
export const HOOK_TIMEOUT_MS = 30_000;

/** Consecutive timeouts after which a hook is paused. */
const MAX_TIMEOUTS = 5;

/** Duration of the pause; one call then tests the hook. */
export const PAUSE_MS = 10_000;

/** Limits of the hooks of one instance. */
export interface HookRules {
  readonly timeoutMs: number;
  /** `open`: a call continues without a failed hook. */
  readonly onFailure: 'open' | 'closed';
}

export const DEFAULT_RULES: HookRules = Object.freeze({ timeoutMs: HOOK_TIMEOUT_MS, onFailure: 'closed' });

/** Counts of one hook of one instance since the process started. */
export interface HookCounts {
  readonly plugin: string;
  readonly hook: HookName;
  calls: number;
  failures: number;
  /** Successful runs. */
  wentWell: number;
  /** Calls that continued, or failed, without it while it was paused. */
  skipped: number;
  /** Asynchronous runs, and their total duration. */
  timed: number;
  timedMs: number;
  failedInARow: number;
  timeoutsInARow: number;
  /** By `performance.now()`; 0 if not paused. */
  pausedUntilMs: number;
  /** Account of the last call that timed out. */
  timedOutFor: string | undefined;
  /** True if a call of another account is testing it during the pause. */
  isTried: boolean;
}

/** Counts of all hooks of a process; they survive a change of the configuration. */
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

export function countFailure(counts: HookCounts): void {
  counts.failures += 1;
  counts.failedInARow += 1;
  counts.isTried = false;
}

/**
 * Counts a timeout; returns whether the hook is now paused. `wentWellBefore` is {@link HookCounts.wentWell} at the start of the
 * work. A hook with successes since then is not hanging, so the timeout is specific to this caller.
 */
export function countTimeout(counts: HookCounts, wentWellBefore = counts.wentWell, account?: string): boolean {
  counts.timedOutFor = account;
  counts.timeoutsInARow = counts.wentWell > wentWellBefore ? 0 : counts.timeoutsInARow + 1;
  if (counts.timeoutsInARow < MAX_TIMEOUTS) return false;
  counts.pausedUntilMs = performance.now() + PAUSE_MS;
  return counts.timeoutsInARow === MAX_TIMEOUTS;
}

/**
 * Returns whether a hook is paused, and counts the skipped call. After the pause one call may test it. During the pause, one call
 * of another account may also test it, because the timeouts may be specific to an account.
 */
export function isPaused(counts: HookCounts, account?: string): boolean {
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

/** Resets the failures after a success; returns whether the hook was paused. */
export function forgetFailures(counts: HookCounts): boolean {
  const wasPaused = counts.pausedUntilMs > 0;
  counts.failedInARow = 0;
  counts.timeoutsInARow = 0;
  counts.pausedUntilMs = 0;
  counts.isTried = false;
  return wasPaused;
}
