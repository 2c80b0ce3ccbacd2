import type { OpenCause, Target, TargetError, TargetState } from '../contract/call.ts';
import { type Linked, LinkedList } from '../contract/linked-list.ts';
import { steadyNow } from '../contract/units.ts';

/** Health of one target or provider. Immutable: every event creates another one. */
export interface Health {
  /** Unix milliseconds of its next try; undefined while it is closed. */
  readonly openUntil: number | undefined;
  readonly cause: OpenCause | undefined;
  /** Time of the last opening and closing. */
  readonly openedAt: number;
  readonly closedAt: number;
  /** Test attempt, and the time until which it keeps other calls away. */
  readonly test: { readonly id: number; readonly until: number } | undefined;
  /** Number of openings, reduced by healthy time since; each opening lasts longer. */
  readonly openings: number;
  /** Duration of the last opening. */
  readonly coolDownMs: number;
  /** Consecutive failures. */
  readonly failures: number;
  /** Interrupted streams since the last complete one. */
  readonly brokenStreams: number;
  /** Moving average of the share of failed attempts. */
  readonly errorRate: number;
  /** Duration of complete responses, and of streams until the first token. */
  readonly whole: Pace | undefined;
  readonly stream: Pace | undefined;
  readonly attempts: number;
  readonly lastError: TargetError | undefined;
}

/** Moving averages in milliseconds: recent, and over a much longer time. */
interface Pace {
  readonly ms: number;
  readonly usualMs: number;
}

/** Attempt at a target. */
export interface Attempt {
  readonly id: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
}

/** Outcome of an attempt as seen by the breaker. */
export type Verdict =
  /** A response has started, such as by a stream's first token; its end is still to come. */
  | { readonly kind: 'answered'; readonly stream: boolean; readonly durationMs: number }
  /** Complete response. Without a duration if it was measured at the start. */
  | { readonly kind: 'success'; readonly stream: boolean; readonly durationMs?: number }
  /** The vendor rejected the caller's request: neither success nor failure. */
  | { readonly kind: 'alive' }
  | {
      readonly kind: 'failure';
      readonly cause: Exclude<OpenCause, 'shared'>;
      readonly error: Omit<TargetError, 'at'>;
      /** Retry-After of the vendor in milliseconds. */
      readonly retryAfterMs?: number | undefined;
      /** True if it interrupted a stream that had started. */
      readonly isBroken?: boolean;
    };

export const UNKNOWN: Health = Object.freeze({
  openUntil: undefined,
  cause: undefined,
  openedAt: 0,
  closedAt: 0,
  test: undefined,
  openings: 0,
  coolDownMs: 0,
  failures: 0,
  brokenStreams: 0,
  errorRate: 0,
  whole: undefined,
  stream: undefined,
  attempts: 0,
  lastError: undefined,
});

/** Thresholds that open a target: consecutive failures, or an error rate over a minimum of attempts. */
const OPENS = Object.freeze({ inARow: 3, errorRate: 0.5, attempts: 20 });

/** Weight of the latest attempt in the averages. */
const WEIGHT = 0.1;

/** Weight of the latest attempt in the usual duration; it counts at most this multiple of the usual. */
const USUAL_WEIGHT = 0.01;
const MOST_TIMES = 2;

/** A target is slow if it takes this multiple of its usual time, or of another target's, and more than this minimum. */
const SLOW_TIMES = 8;
const SLOW_MS = 250;

/** Share of its calls for a slow target, so that it is still measured; also the initial share of a recovering one. */
export const LEAST_SHARE = 0.05;

/** A recovering target's share grows for as long as it was open, but at most this long. */
const LONGEST_GROWTH_MS = 10_000;

/** Time that a target stays open, by cause. It doubles with every opening that still counts, up to the longest. */
const COOL_DOWN_MS = Object.freeze({
  failures: { first: 5_000, longest: 60_000 },
  rate_limit: { first: 2_000, longest: 60_000 },
  credential: { first: 30_000, longest: 300_000 },
} as const satisfies Record<Exclude<OpenCause, 'shared'>, object>);

/** Cap for Retry-After. */
const LONGEST_RETRY_AFTER_MS = 300_000;

/** Time for which a test call keeps others away if its outcome is never reported. */
const LONGEST_TEST_MS = 60_000;

export function stateOf({ openUntil }: Health, now: number): TargetState {
  if (openUntil === undefined) return 'closed';
  return now < openUntil ? 'open' : 'half-open';
}

/** True if a call may go there: closed, or half open without a running test. */
export function mayTry(health: Health, now: number): boolean {
  const state = stateOf(health, now);
  return state === 'closed' || (state === 'half-open' && (health.test === undefined || now >= health.test.until));
}

/** Share of its calls for a closed target, up to 1: less just after recovery, and while it is slow. */
export function shareOf(health: Health, now: number, stream: boolean): number {
  const { openedAt, closedAt } = health;
  const pace = stream ? health.stream : health.whole;
  if (isSlowerThan(pace?.ms, pace?.usualMs)) return LEAST_SHARE;
  const growthMs = Math.min(closedAt - openedAt, LONGEST_GROWTH_MS);
  return closedAt <= openedAt ? 1 : Math.min(Math.max((now - closedAt) / growthMs, LEAST_SHARE), 1);
}

/** True if a duration is far above another one. */
export function isSlowerThan(ms: number | undefined, otherMs: number | undefined): boolean {
  return ms !== undefined && otherMs !== undefined && ms > SLOW_MS && ms > SLOW_TIMES * otherMs;
}

/** Starts a call: the first one at a half-open target tests it. */
export function begin(health: Health, { id, startedAt }: Attempt): Health {
  return stateOf(health, startedAt) === 'half-open' && mayTry(health, startedAt)
    ? { ...health, test: { id, until: startedAt + LONGEST_TEST_MS } }
    : health;
}

/** Ends a call without a verdict, as when its caller disconnected: if it was the test, the next call may test. */
export function leave(health: Health, { id }: Pick<Attempt, 'id'>): Health {
  return health.test?.id === id ? { ...health, test: undefined } : health;
}

/** Applies the outcome of an attempt to a model's health. */
export function judge(
  health: Health,
  verdict: Verdict,
  now: number,
  attempt: Attempt = { id: 0, startedAt: now },
): Health {
  switch (verdict.kind) {
    case 'failure':
      return fail(health, verdict, now, attempt);
    case 'alive':
      return leave(health, attempt);
    case 'answered':
      return recordResponse(health, verdict, now, attempt);
    case 'success':
      return succeed(health, verdict, now, attempt);
  }
}

/**
 * Applies the outcome of an attempt to the other name: the provider for a verdict on the model, and the reverse. Any
 * response closes a provider, which is opened only by connection and key failures.
 */
export function judgeOther(health: Health, verdict: Verdict, now: number, attempt?: Attempt): Health {
  const judged =
    verdict.kind === 'success' ? judge(health, verdict, now, attempt) : attempt ? leave(health, attempt) : health;
  // A failure that opens the provider is shown with the model that had it, so the model gets an entry.
  if (verdict.kind === 'failure') return { ...judged };
  if (judged === UNKNOWN) return judged;
  if (judged.openUntil === undefined) return { ...judged, failures: 0 };
  return mustWait(judged, now) ? judged : { ...close(judged, now), failures: 0 };
}

/** Applies an opening found by another worker or node: open at least until then. */
export function openByOthers(health: Health, until: number, now: number): Health {
  if (stateOf(health, now) === 'open' && health.cause !== 'shared') return health;
  const openedAt = health.cause === 'shared' ? health.openedAt : now;
  return { ...health, openUntil: until, openedAt, cause: 'shared', test: undefined };
}

/** Ends openings that may be due to a replaced key; measurements stay. */
export function tryNewKey(health: Health): Health {
  if (health.cause !== 'credential' && health.cause !== 'shared') return health;
  const { errorRate, whole, stream, attempts, lastError } = health;
  return { ...UNKNOWN, errorRate, whole, stream, attempts, lastError };
}

/**
 * Records the start of a stream. It ends causes that a vendor reports before processing (a rate limit, a rejected key);
 * the stream's end shows whether it succeeded. Until then a test stream keeps others away for the duration of the last
 * opening.
 */
function recordResponse(
  health: Health,
  { stream, durationMs }: Verdict & { readonly kind: 'answered' },
  now: number,
  { id }: Attempt,
): Health {
  const measured = { ...health, ...measure(health, stream, durationMs) };
  if (stateOf(health, now) !== 'half-open') return measured;
  if (health.cause === 'rate_limit' || health.cause === 'credential') return close(measured, now);
  if (health.test?.id !== id) return measured;
  const holdMs = Math.max(health.coolDownMs, COOL_DOWN_MS.failures.first);
  return { ...measured, test: { id, until: now + Math.min(holdMs, LONGEST_TEST_MS) } };
}

function succeed(
  health: Health,
  verdict: Verdict & { readonly kind: 'success' },
  now: number,
  attempt: Attempt,
): Health {
  const { stream, durationMs } = verdict;
  // Copy only once: every call does this twice.
  const counted: { -readonly [Field in keyof Health]: Health[Field] } = { ...health };
  if (health.test?.id === attempt.id) counted.test = undefined;
  if (durationMs !== undefined) Object.assign(counted, measure(health, stream, durationMs));
  counted.errorRate = average(health, 0);
  counted.attempts = health.attempts + 1;
  // Ignore outcomes of attempts that started before the target was opened.
  if (attempt.startedAt < health.openedAt) return counted;
  counted.failures = 0;
  if (stream) counted.brokenStreams = 0;
  const steady: Health = counted;
  // One success among many calls ends neither a Retry-After nor a key failure, but it ends openings by other processes.
  if (health.openUntil === undefined || mustWait(health, now)) return steady;
  // A target opened by interrupted streams is tested by a stream, as long as one may come.
  const waitsForStream = health.brokenStreams >= OPENS.inARow && !stream && now < health.openUntil + LONGEST_TEST_MS;
  return waitsForStream ? steady : { ...close(steady, now), brokenStreams: 0 };
}

function close(health: Health, now: number): Health {
  const closedAt = health.openUntil === undefined ? health.closedAt : now;
  return { ...health, openUntil: undefined, cause: undefined, test: undefined, closedAt };
}

function mustWait(health: Health, now: number): boolean {
  return stateOf(health, now) === 'open' && health.cause !== 'failures';
}

function fail(health: Health, verdict: Verdict & { readonly kind: 'failure' }, now: number, attempt: Attempt): Health {
  const { cause, error, retryAfterMs, isBroken } = verdict;
  const isNews = cause !== 'failures' || attempt.startedAt >= health.openedAt;
  const counts = cause === 'failures' && isNews;
  const failed: Health = {
    ...leave(health, attempt),
    failures: health.failures + (counts ? 1 : 0),
    brokenStreams: health.brokenStreams + (counts && isBroken ? 1 : 0),
    errorRate: average(health, 1),
    attempts: health.attempts + 1,
    lastError: { at: now, ...error },
  };
  const state = stateOf(health, now);
  // Calls concurrent with the one that opened it add nothing, except a longer wait.
  if (state === 'open')
    return cause === 'rate_limit' ? later(failed, boundedMs(retryAfterMs) ?? COOL_DOWN_MS[cause].first, now) : failed;
  if (!isNews) return failed;
  const opens =
    state === 'half-open' ||
    cause !== 'failures' ||
    failed.failures >= OPENS.inARow ||
    failed.brokenStreams >= OPENS.inARow ||
    (failed.attempts >= OPENS.attempts && failed.errorRate > OPENS.errorRate);
  if (!opens) return failed;
  const opened: Health = { ...failed, cause, openedAt: now, test: undefined, openings: openingsLeft(health, now) };
  const waitMs = boundedMs(retryAfterMs);
  if (waitMs !== undefined) return { ...opened, openUntil: now + waitMs };
  const { first, longest } = COOL_DOWN_MS[cause];
  const coolDownMs = Math.min(first * 2 ** Math.min(opened.openings, 20), longest);
  return { ...opened, openUntil: now + coolDownMs, coolDownMs, openings: opened.openings + 1 };
}

/** Number of openings that still count: one less for each period of the last opening's length since it was closed. */
function openingsLeft({ openings, coolDownMs, openUntil, closedAt }: Health, now: number): number {
  if (openUntil !== undefined || coolDownMs === 0) return openings;
  return Math.max(openings - Math.floor((now - closedAt) / coolDownMs), 0);
}

function later(health: Health, ms: number, now: number): Health {
  return { ...health, openUntil: Math.max(health.openUntil ?? 0, now + ms) };
}

/** Retry-After of a vendor, within bounds. */
function boundedMs(retryAfterMs: number | undefined): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.min(Math.max(retryAfterMs, 1), LONGEST_RETRY_AFTER_MS);
}

/** The first attempts have full weight, so that a new target does not count as healthy. */
function average({ errorRate, attempts }: Health, latest: 0 | 1): number {
  const weight = Math.max(WEIGHT, 1 / (attempts + 1));
  return errorRate + weight * (latest - errorRate);
}

function measure(health: Health, stream: boolean, ms: number): Partial<Health> {
  const kind = stream ? 'stream' : 'whole';
  const { ms: known, usualMs } = health[kind] ?? { ms, usualMs: ms };
  const growth = Math.min(ms, MOST_TIMES * usualMs) - usualMs;
  return { [kind]: { ms: known + 2 * WEIGHT * (ms - known), usualMs: usualMs + USUAL_WEIGHT * growth } };
}

/** Number of attempts without a response that make a target stuck. */
const MANY_WAITING = 3;

/** A wait is long if it exceeds this multiple of the usual time, and this minimum. */
const TIMES_USUAL = 4;
const LEAST_MS = Object.freeze({ stream: 2_000, whole: 10_000 });

/** Limits for targets of unknown duration. */
const UNKNOWN_MS = Object.freeze({ stream: 5_000, whole: 20_000 });

/** Attempt that waits for a response. */
export interface WaitingAttempt extends Linked<WaitingAttempt> {
  readonly name: string;
  readonly at: number;
}

/** Maximum number of names without an attempt: callers may invent model names. */
const MAX_IDLE_NAMES = 1000;

interface Waiting {
  /** Ordered by age, the oldest first. */
  readonly attempts: LinkedList<WaitingAttempt>;
  respondedAt: number;
}

/**
 * Attempts that wait for a response. Under load an unresponsive target would get every call until the first timeout.
 * Once several attempts have waited too long without any response, later calls go elsewhere at once.
 */
export class WaitingAttempts {
  readonly #waiting = new Map<string, Waiting>();
  readonly #now: () => number;

  constructor(now: () => number = steadyNow) {
    this.#now = now;
  }

  begin({ provider, model }: Target, stream: boolean): WaitingAttempt {
    const name = `${stream} ${provider}/${model}`;
    let waiting = this.#waiting.get(name);
    if (!waiting) {
      if (this.#waiting.size >= MAX_IDLE_NAMES) this.#forgetIdle();
      waiting = { attempts: new LinkedList(), respondedAt: 0 };
      this.#waiting.set(name, waiting);
    }
    const attempt: WaitingAttempt = { name, at: this.#now(), previous: undefined, next: undefined, isLinked: false };
    waiting.attempts.add(attempt);
    return attempt;
  }

  end(attempt: WaitingAttempt, hasResponded: boolean): void {
    const waiting = this.#waiting.get(attempt.name);
    if (!waiting?.attempts.remove(attempt)) return;
    if (waiting.attempts.size === 0) waiting.respondedAt = 0;
    else if (hasResponded) waiting.respondedAt = this.#now();
  }

  #forgetIdle(): void {
    for (const [name, { attempts }] of this.#waiting) if (attempts.size === 0) this.#waiting.delete(name);
  }

  /** True if calls are stuck there; `usualMs` is the recent response time. */
  isStuck({ provider, model }: Target, stream: boolean, usualMs: number | undefined): boolean {
    const waiting = this.#waiting.get(`${stream} ${provider}/${model}`);
    if (!waiting || waiting.attempts.size < MANY_WAITING) return false;
    const kind = stream ? 'stream' : 'whole';
    const limitMs = usualMs === undefined ? UNKNOWN_MS[kind] : Math.max(LEAST_MS[kind], TIMES_USUAL * usualMs);
    const latest = this.#now() - limitMs;
    if (waiting.respondedAt >= latest) return false;
    let old = 0;
    for (let each = waiting.attempts.first; each && each.at < latest && old < MANY_WAITING; each = each.next) old += 1;
    return old === MANY_WAITING;
  }
}
