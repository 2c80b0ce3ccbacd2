import type { Target } from '../../contract/call.ts';
import type { AttemptReport } from '../../contract/hooks.ts';
import { attemptReport, type FailedAttempt } from '../attempt.ts';
import type { CallDeps } from '../call-deps.ts';
import { redact } from '../failures.ts';
import type { LiveCall } from '../live-call.ts';
import { type Lap, nameOf } from './lap.ts';
import { isOfTarget, reportFailure } from './verdicts.ts';

/** What came of an attempt, and what is done now. */
interface Ending {
  readonly startedMs: number;
  readonly failed?: FailedAttempt;
  readonly next: AttemptReport['next'];
  /** The target that is tried now. */
  readonly then?: Target | undefined;
}

/** Notes and tells what broke a response off that had begun: its attempt was told as one that responded. */
export function tellBroken(deps: CallDeps, call: LiveCall, target: Target, failed: FailedAttempt): void {
  if (!isOfTarget(failed)) return;
  reportFailure(deps.routing.health, target, failed, call.record.status, call.requestId);
  tellAttempt(deps, call, { call, target, isSecond: false, end: () => false }, { startedMs: 0, failed, next: 'end' });
}

/** Tells operators and observers of an attempt that is over. */
export function tellAttempt({ log }: CallDeps, call: LiveCall, lap: Lap, ending: Ending): void {
  const { target, isSecond, call: own } = lap;
  const { startedMs, failed, next, then } = ending;
  const number = call.targets.indexOf(target) + 1;
  // A missing key would be a line for each call, and a plugin's error has one of its own.
  if (failed && isOfTarget(failed))
    log.warn(
      {
        request_id: call.requestId,
        target: nameOf(target),
        status: own.record.status,
        errno: failed.errno,
        class: failed.class,
        reason: redact(failed.message),
        ms: Math.round(call.elapsedMs - startedMs),
        next: next === 'next target' && then ? nameOf(then) : next,
      },
      'an attempt failed',
    );
  void call.hooks.attempt?.(call, attemptReport(own, { target, number, isSecond, startedMs, failed, next, then }));
}
