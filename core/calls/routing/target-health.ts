import type { OpenCause, TargetError, TargetState } from '../../contract/routing.ts';

/** What is known of one target, or of one provider. Never changed: every event makes another one. */
export interface Health {
  /** When it may be tried again; undefined while it is closed. Unix milliseconds. */
  readonly openUntil: number | undefined;
  readonly cause: OpenCause | undefined;
  /** Until when a live call tests it; others leave it alone meanwhile. */
  readonly probeUntil: number;
  /** How often it was opened in a row: each time for longer. */
  readonly openings: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** Moving averages: the share of attempts that failed, and milliseconds. */
  readonly errorRate: number;
  readonly wholeMs: number | undefined;
  readonly streamMs: number | undefined;
  readonly attempts: number;
  readonly lastError: TargetError | undefined;
}

/** What an attempt says about its target. `alive` is neither: the vendor refused what the caller sent. */
export type Verdict =
  | { readonly kind: 'success'; readonly durationMs: number; readonly stream: boolean }
  | { readonly kind: 'alive' }
  | {
      readonly kind: 'failure';
      readonly cause: Exclude<OpenCause, 'shared'>;
      readonly error: Omit<TargetError, 'at'>;
      /** How long the vendor told to wait. */
      readonly retryAfterMs?: number | undefined;
    };

export const UNKNOWN: Health = Object.freeze({
  openUntil: undefined,
  cause: undefined,
  probeUntil: 0,
  openings: 0,
  failures: 0,
  errorRate: 0,
  wholeMs: undefined,
  streamMs: undefined,
  attempts: 0,
  lastError: undefined,
});

/** When failures open a target: so many in a row, or more than this share of at least so many attempts. */
const OPENS = Object.freeze({ inARow: 3, errorRate: 0.5, attempts: 20 });

/** How much the latest attempt counts in the averages. */
const WEIGHT = 0.1;

/** How long a target is left alone, by why: doubled with every opening in a row, up to the longest. */
const COOL_DOWN_MS = Object.freeze({
  failures: { first: 5_000, longest: 60_000 },
  rate_limit: { first: 2_000, longest: 60_000 },
  credential: { first: 30_000, longest: 300_000 },
} as const satisfies Record<Exclude<OpenCause, 'shared'>, object>);

/** What a vendor tells is believed up to here. */
const LONGEST_TOLD_MS = 300_000;

/** How long a call that tests a target keeps others away, when it never tells what came of it. */
const LONGEST_PROBE_MS = 60_000;

export function stateOf({ openUntil }: Health, now: number): TargetState {
  if (openUntil === undefined) return 'closed';
  return now < openUntil ? 'open' : 'half-open';
}

/** Whether a call may go there: closed, or half open with nobody testing it. */
export function mayTry(health: Health, now: number): boolean {
  const state = stateOf(health, now);
  return state === 'closed' || (state === 'half-open' && now >= health.probeUntil);
}

/** A call goes there now: the first one to a half-open target tests it for all. */
export function begin(health: Health, now: number): Health {
  return stateOf(health, now) === 'half-open' ? { ...health, probeUntil: now + LONGEST_PROBE_MS } : health;
}

/** The call ended without a verdict, as when its caller left: the next one may test. */
export function forget(health: Health): Health {
  return health.probeUntil === 0 ? health : { ...health, probeUntil: 0 };
}

/** What an attempt makes of what was known. */
export function judge(health: Health, verdict: Verdict, now: number): Health {
  if (verdict.kind === 'failure') return fail(health, verdict, now);
  const next = isToldToWait(health, now) ? health : { ...health, ...CLOSED };
  if (verdict.kind === 'alive') return next;
  const { durationMs, stream } = verdict;
  const { wholeMs, streamMs, attempts } = health;
  return {
    ...next,
    errorRate: average(health, 0),
    attempts: attempts + 1,
    wholeMs: stream ? wholeMs : averageMs(wholeMs, durationMs),
    streamMs: stream ? averageMs(streamMs, durationMs) : streamMs,
  };
}

/** What another worker or node found: it is open at least until then. */
export function openByOthers(health: Health, until: number, now: number): Health {
  if (stateOf(health, now) === 'open' && health.cause !== 'shared') return health;
  return { ...health, openUntil: until, cause: 'shared', probeUntil: 0 };
}

/** What another key makes of it: openings that may be for the former key end. What is measured stays. */
export function tryNewKey(health: Health): Health {
  return health.cause === 'credential' || health.cause === 'shared' ? { ...health, ...CLOSED } : health;
}

const CLOSED = Object.freeze({ openUntil: undefined, cause: undefined, probeUntil: 0, openings: 0, failures: 0 });

/** One success among many calls does not end a wait that the vendor told, nor mends a key; what others found, they end. */
function isToldToWait(health: Health, now: number): boolean {
  return stateOf(health, now) === 'open' && health.cause !== 'failures';
}

function fail(health: Health, verdict: Verdict & { readonly kind: 'failure' }, now: number): Health {
  const { cause, error, retryAfterMs } = verdict;
  const failed: Health = {
    ...health,
    failures: cause === 'failures' ? health.failures + 1 : health.failures,
    errorRate: average(health, 1),
    attempts: health.attempts + 1,
    lastError: { at: now, ...error },
  };
  const state = stateOf(health, now);
  // Calls that ran beside the one that opened it say nothing new, but for a longer wait.
  if (state === 'open') return cause === 'rate_limit' ? later(failed, coolDownMs(cause, 1, retryAfterMs), now) : failed;
  const opens =
    state === 'half-open' ||
    cause !== 'failures' ||
    failed.failures >= OPENS.inARow ||
    (failed.attempts >= OPENS.attempts && failed.errorRate > OPENS.errorRate);
  if (!opens) return failed;
  const openings = health.openings + 1;
  const openUntil = now + coolDownMs(cause, openings, retryAfterMs);
  return { ...failed, openings, openUntil, cause, probeUntil: 0 };
}

function later(health: Health, ms: number, now: number): Health {
  return { ...health, openUntil: Math.max(health.openUntil ?? 0, now + ms) };
}

function coolDownMs(cause: keyof typeof COOL_DOWN_MS, openings: number, toldMs: number | undefined): number {
  if (toldMs !== undefined) return Math.min(Math.max(toldMs, 1), LONGEST_TOLD_MS);
  const { first, longest } = COOL_DOWN_MS[cause];
  return Math.min(first * 2 ** Math.min(openings - 1, 20), longest);
}

/** The first attempts count in full, so that a new target is not taken for a good one. */
function average({ errorRate, attempts }: Health, latest: 0 | 1): number {
  const weight = Math.max(WEIGHT, 1 / (attempts + 1));
  return errorRate + weight * (latest - errorRate);
}

function averageMs(known: number | undefined, latest: number): number {
  return known === undefined ? latest : known + 2 * WEIGHT * (latest - known);
}
