import type { OpenCause, Target, TargetError, TargetState } from '../contract/call.ts';
import { type Linked, LinkedList } from '../contract/linked-list.ts';
import { steadyNow } from '../contract/units.ts';

/** What is known of one target, or of one provider. Never changed: every event makes another one. */
export interface Health {
  /** When it may be tried again; undefined while it is closed. Unix milliseconds. */
  readonly openUntil: number | undefined;
  readonly cause: OpenCause | undefined;
  /** When it was opened and closed last. */
  readonly openedAt: number;
  readonly closedAt: number;
  /** The attempt that tests it, and until when others leave it alone meanwhile. */
  readonly test: { readonly id: number; readonly until: number } | undefined;
  /** How often it was opened, less what it has worked since: each time for longer. */
  readonly openings: number;
  /** For how long the last of these openings was. */
  readonly coolDownMs: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** Streams that broke off after they had begun, since one came to its end. */
  readonly brokenStreams: number;
  /** The moving average of the share of attempts that failed. */
  readonly errorRate: number;
  /** What whole responses and first tokens take. */
  readonly whole: Pace | undefined;
  readonly stream: Pace | undefined;
  readonly attempts: number;
  readonly lastError: TargetError | undefined;
}

/** Moving averages, in milliseconds: of late, and over a much longer time. */
interface Pace {
  readonly ms: number;
  readonly usualMs: number;
}

/** One attempt at a target. */
export interface Attempt {
  readonly id: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
}

/** Outcome of an attempt as seen by the breaker. */
export type Verdict =
  /** A response has begun, such as by a stream's first token; its end is still to come. */
  | { readonly kind: 'answered'; readonly stream: boolean; readonly durationMs: number }
  /** A response that came to its end. What was measured when it began has no duration. */
  | { readonly kind: 'success'; readonly stream: boolean; readonly durationMs?: number }
  /** The vendor refused what the caller sent: neither a success nor a failure. */
  | { readonly kind: 'alive' }
  | {
      readonly kind: 'failure';
      readonly cause: Exclude<OpenCause, 'shared'>;
      readonly error: Omit<TargetError, 'at'>;
      /** How long the vendor asked to wait. */
      readonly retryAfterMs?: number | undefined;
      /** Whether it broke off a stream that had begun. */
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

/** When failures open a target: so many in a row, or more than this share of at least so many attempts. */
const OPENS = Object.freeze({ inARow: 3, errorRate: 0.5, attempts: 20 });

/** How much the latest attempt counts in the averages. */
const WEIGHT = 0.1;

/** How much it counts in what a target takes as a rule; and at most so many times the usual. */
const USUAL_WEIGHT = 0.01;
const MOST_TIMES = 2;

/** A target is slow that takes so many times as long as usual, or as another one, and not less than this. */
const SLOW_TIMES = 8;
const SLOW_MS = 250;

/** The share of its calls that a slow target keeps, so that it is measured, and with which one that returns begins. */
export const LEAST_SHARE = 0.05;

/** The share of a target that returns grows for as long as it was away, and for no longer than this. */
const LONGEST_GROWTH_MS = 10_000;

/** How long a target is left alone, by why: doubled with every opening that still counts, up to the longest. */
const COOL_DOWN_MS = Object.freeze({
  failures: { first: 5_000, longest: 60_000 },
  rate_limit: { first: 2_000, longest: 60_000 },
  credential: { first: 30_000, longest: 300_000 },
} as const satisfies Record<Exclude<OpenCause, 'shared'>, object>);

/** Cap for Retry-After. */
const LONGEST_RETRY_AFTER_MS = 300_000;

/** How long a call that tests a target keeps others away, when its outcome is never reported. */
const LONGEST_TEST_MS = 60_000;

export function stateOf({ openUntil }: Health, now: number): TargetState {
  if (openUntil === undefined) return 'closed';
  return now < openUntil ? 'open' : 'half-open';
}

/** Whether a call may go there: closed, or half open and no other call is testing it. */
export function mayTry(health: Health, now: number): boolean {
  const state = stateOf(health, now);
  return state === 'closed' || (state === 'half-open' && (health.test === undefined || now >= health.test.until));
}

/** The share of its calls that a closed target should get now, up to 1: less just after its return, and while it is slow. */
export function shareOf(health: Health, now: number, stream: boolean): number {
  const { openedAt, closedAt } = health;
  const pace = stream ? health.stream : health.whole;
  if (isSlowBeside(pace?.ms, pace?.usualMs)) return LEAST_SHARE;
  const growthMs = Math.min(closedAt - openedAt, LONGEST_GROWTH_MS);
  return closedAt <= openedAt ? 1 : Math.min(Math.max((now - closedAt) / growthMs, LEAST_SHARE), 1);
}

/** Whether a time is far above another one. */
export function isSlowBeside(ms: number | undefined, otherMs: number | undefined): boolean {
  return ms !== undefined && otherMs !== undefined && ms > SLOW_MS && ms > SLOW_TIMES * otherMs;
}

/** A call goes there now: the first one to a half-open target tests it for all. */
export function begin(health: Health, { id, startedAt }: Attempt): Health {
  return stateOf(health, startedAt) === 'half-open' && mayTry(health, startedAt)
    ? { ...health, test: { id, until: startedAt + LONGEST_TEST_MS } }
    : health;
}

/** The call ended without a verdict, as when its caller left: if it was the test, the next call may test. */
export function leave(health: Health, { id }: Pick<Attempt, 'id'>): Health {
  return health.test?.id === id ? { ...health, test: undefined } : health;
}

/** What an attempt makes of what was known of a model. */
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
      return noteResponse(health, verdict, now, attempt);
    case 'success':
      return succeed(health, verdict, now, attempt);
  }
}

/**
 * What an attempt makes of the other name: of the provider where it is about a model, of the model where it is about the provider.
 * Any response ends what was found of a provider, which is opened only by connections and keys that do not work.
 */
export function judgeOther(health: Health, verdict: Verdict, now: number, attempt?: Attempt): Health {
  const judged =
    verdict.kind === 'success' ? judge(health, verdict, now, attempt) : attempt ? leave(health, attempt) : health;
  // What opens the provider is shown with the model that met it, which has a place for that.
  if (verdict.kind === 'failure') return { ...judged };
  if (judged === UNKNOWN) return judged;
  if (judged.openUntil === undefined) return { ...judged, failures: 0 };
  return mustWait(judged, now) ? judged : { ...close(judged, now), failures: 0 };
}

/** What another worker or node found: it is open at least until then. */
export function openByOthers(health: Health, until: number, now: number): Health {
  if (stateOf(health, now) === 'open' && health.cause !== 'shared') return health;
  const openedAt = health.cause === 'shared' ? health.openedAt : now;
  return { ...health, openUntil: until, openedAt, cause: 'shared', test: undefined };
}

/** What another key makes of it: openings that may be for the former key end. What is measured stays. */
export function tryNewKey(health: Health): Health {
  if (health.cause !== 'credential' && health.cause !== 'shared') return health;
  const { errorRate, whole, stream, attempts, lastError } = health;
  return { ...UNKNOWN, errorRate, whole, stream, attempts, lastError };
}

/**
 * A stream has begun. That ends what a vendor says before it works (a rate limit, a refused key); whether it works is known at the
 * stream's end. Until then a stream that tests keeps others away for as long as the target was left alone last.
 */
function noteResponse(
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
  // One copy: every call makes two of them.
  const counted: { -readonly [Field in keyof Health]: Health[Field] } = { ...health };
  if (health.test?.id === attempt.id) counted.test = undefined;
  if (durationMs !== undefined) Object.assign(counted, measure(health, stream, durationMs));
  counted.errorRate = average(health, 0);
  counted.attempts = health.attempts + 1;
  // What comes of an attempt that began before the target was opened is no news.
  if (attempt.startedAt < health.openedAt) return counted;
  counted.failures = 0;
  if (stream) counted.brokenStreams = 0;
  const steady: Health = counted;
  // One success among many calls does not end a wait that the vendor asked for, nor mends a key; what others found, they end.
  if (health.openUntil === undefined || mustWait(health, now)) return steady;
  // What was opened by streams that break off is tested by a stream, as long as one may come.
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
  // Calls that ran at the same time as the one that opened it say nothing new, but for a longer wait.
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

/** For each time as long as it was last left alone that a target has been closed since, one opening less counts. */
function openingsLeft({ openings, coolDownMs, openUntil, closedAt }: Health, now: number): number {
  if (openUntil !== undefined || coolDownMs === 0) return openings;
  return Math.max(openings - Math.floor((now - closedAt) / coolDownMs), 0);
}

function later(health: Health, ms: number, now: number): Health {
  return { ...health, openUntil: Math.max(health.openUntil ?? 0, now + ms) };
}

/** What a vendor asked for, within bounds. */
function boundedMs(retryAfterMs: number | undefined): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.min(Math.max(retryAfterMs, 1), LONGEST_RETRY_AFTER_MS);
}

/** The first attempts count in full, so that a new target is not taken for a good one. */
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

/** As many attempts without a response make a target one that hangs. */
const MANY_WAITING = 3;

/** No response takes so many times its usual time, nor less than this is called long. */
const TIMES_USUAL = 4;
const LEAST_MS = Object.freeze({ stream: 2_000, whole: 10_000 });

/** Of a target whose usual time is not known. */
const UNKNOWN_MS = Object.freeze({ stream: 5_000, whole: 20_000 });

/** An attempt that waits for a response. */
export interface WaitingAttempt extends Linked<WaitingAttempt> {
  readonly name: string;
  readonly at: number;
}

/** Maximum number of names that are kept without an attempt: callers may make up names of models. */
const MAX_IDLE_NAMES = 1000;

interface Waiting {
  /** The oldest first. */
  readonly attempts: LinkedList<WaitingAttempt>;
  respondedAt: number;
}

/**
 * The attempts that wait for a response. Under load a target that hangs would take every call until the first timeout has passed;
 * when several wait for long and none gets a response, later calls go elsewhere at once.
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

  /** Whether calls hang there; `usualMs` is what a response takes lately. */
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
