import type { OpenCause, Target } from '../contract/call.ts';
import type { AttemptReport } from '../contract/hooks.ts';
import type { FailureClass } from '../contract/provider.ts';
import type { RunningAttempt, Scope } from '../routing/health-book.ts';
import type { Verdict } from '../routing/target-health.ts';
import { attemptReport, type FailedAttempt, redact } from './attempt.ts';
import { type Call, noteAttemptEnd } from './call.ts';
import type { CallDeps } from './call-deps.ts';

/** One attempt: alone, or one of two that run at the same time on copies of the call. */
export interface Lap {
  readonly call: Call;
  readonly target: Target;
  /** Whether it was begun because another one takes long. */
  readonly isSecond: boolean;
  /** To be told that it is over; answers whether another one still runs. */
  end(): boolean;
}

/** A target in a line of the log; callers make names up. */
export function nameOf({ provider, model }: Target): string {
  return `${provider}/${model.slice(0, 100)}`;
}

/** What came of an attempt, and what is done now. */
interface Ending {
  readonly startedMs: number;
  readonly failed?: FailedAttempt;
  readonly next: AttemptReport['next'];
  /** The target that is tried now. */
  readonly then?: Target | undefined;
}

/** Notes and tells what broke a response off that had begun: its attempt was told as one that responded. */
export function tellBroken(deps: CallDeps, call: Call, target: Target, failed: FailedAttempt): void {
  if (!isOfTarget(failed)) return;
  const { running, status } = call.record;
  if (running) reportFailure(running, failed, { status, requestId: call.requestId, isBroken: true });
  tellAttempt(deps, call, { call, target, isSecond: false, end: () => false }, { startedMs: 0, failed, next: 'end' });
}

/** Tells operators and observers of an attempt that is over. */
export function tellAttempt({ log }: CallDeps, call: Call, lap: Lap, ending: Ending): void {
  const { target, isSecond, call: own } = lap;
  const { startedMs, failed, next, then } = ending;
  const number = call.targets.indexOf(target) + 1;
  const reason = failed ? redact(failed.message) : next === 'left' ? 'another target responded first' : undefined;
  noteAttemptEnd(own, target, reason === undefined ? undefined : { class: failed?.class, reason });
  // A missing key would be a line for each call, and a plugin's error has one of its own.
  if (failed && isOfTarget(failed))
    log.warn(
      {
        request_id: call.requestId,
        target: nameOf(target),
        status: own.record.status,
        errno: failed.errno,
        class: failed.class,
        reason,
        ms: Math.round(call.elapsedMs - startedMs),
        next: next === 'next target' && then ? nameOf(then) : next,
      },
      'an attempt failed',
    );
  void call.hooks.attempt?.(call, attemptReport(own, { target, number, isSecond, startedMs, failed, next, then }));
}

/** What a class of failure says about its target; undefined for what a caller sent, or for how long a caller waits. */
const CAUSES: Readonly<Record<FailureClass, Exclude<OpenCause, 'shared'> | undefined>> = Object.freeze({
  authentication: 'credential',
  billing: 'credential',
  rate_limit: 'rate_limit',
  overloaded: 'failures',
  upstream_error: 'failures',
  timeout: 'failures',
  model_not_found: undefined,
  context_length: undefined,
  request_over_limit: undefined,
  content_filter: undefined,
  invalid_request: undefined,
});

/** Errors of core's own about a response that is none. */
const BROKEN: ReadonlySet<string> = new Set(['provider_invalid_response', 'provider_unavailable']);

/** Whether an attempt failed by what its target did, not by a plugin or because nothing could be sent. */
function isOfTarget({ class: kind, error }: FailedAttempt): boolean {
  return kind !== undefined || BROKEN.has(error.code);
}

/** What is known beside the failure itself. */
interface FailureFacts {
  readonly status: number | undefined;
  readonly requestId: string;
  /** Whether a stream had begun that it broke off. */
  readonly isBroken: boolean;
}

/** Notes what a failed attempt says about its target: nothing when the caller, or a plugin, is why it failed. */
export function reportFailure(
  attempt: RunningAttempt,
  failed: FailedAttempt,
  { status, requestId, isBroken }: FailureFacts,
): void {
  const { class: kind, phase, message, errno, error } = failed;
  // Our own bound on connections, and a caller's slowness that the vendor tells.
  if (!isOfTarget(failed) || status === 408 || (phase === 'connect' && kind === 'overloaded')) return;
  const cause = kind === undefined ? 'failures' : CAUSES[kind];
  const verdict: Verdict =
    cause === undefined
      ? { kind: 'alive' }
      : {
          ...{ kind: 'failure', cause, retryAfterMs: error.retryAfterMs, isBroken },
          error: {
            ...{ message: redact(message), requestId },
            ...(kind && { class: kind }),
            ...(status !== undefined && { status }),
            ...(errno !== undefined && { errno }),
          },
        };
  attempt.report(verdict, scopeOf(failed, status));
}

/** Nothing of a provider works without connection, key or credit; a 403 may be about one model. */
function scopeOf({ class: kind, phase }: FailedAttempt, status: number | undefined): Scope {
  const isWhole = phase === 'connect' || kind === 'billing' || (kind === 'authentication' && status !== 403);
  return isWhole ? 'provider' : 'model';
}
