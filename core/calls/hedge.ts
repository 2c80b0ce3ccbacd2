import type { HedgeRule } from '../../config/model-routes.ts';
import type { Target } from '../../contract/call.ts';
import type { WaitingAttempt } from '../../routing/target-health.ts';
import { type Call, joinRecords, owedBy } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { meterUnfinished } from './meter.ts';

/** A target that is tried next, and how long to wait before when that is for the second time. */
export interface Step {
  readonly target: Target;
  readonly delayMs?: number;
}

/** One attempt: alone, or one of two that run at the same time on copies of the call. */
export interface RunningAttempt {
  readonly call: Call;
  readonly target: Target;
  /** Milliseconds from the start of the call. */
  readonly startedMs: number;
  /** Whether it was begun because another one takes long. */
  readonly isSecond: boolean;
  /** The attempts of the call that run now, itself among them; undefined where there is one only. */
  readonly rivals?: Set<RunningAttempt> | undefined;
  /** Its place among those that wait for a response. */
  readonly waiting: WaitingAttempt;
}

/** Sends the call to a target; where two attempts run at once, each gets a copy of the call. */
export type SendTo<T extends object> = (deps: CallDeps, call: Call, target: Target) => Promise<T>;

/** A target in a line of the log; callers make names up. */
export function nameOf({ provider, model }: Target): string {
  return `${provider}/${model.slice(0, 100)}`;
}

/** The targets of one call: what begins and ends its attempts. */
interface Attempts {
  begin(call: Call, target: Target, rivals: Set<RunningAttempt>): RunningAttempt;
  succeed(attempt: RunningAttempt, response: object): void;
  /** Returns what is tried now; an abort is thrown on. */
  fail(attempt: RunningAttempt, thrown: unknown): Step | undefined;
  /** The target to ask concurrently with one that takes long, if any. */
  secondTarget(): Target | undefined;
}

/** A response, or what is tried now. */
type Ended<T> = { readonly response: T } | { readonly next: Step | undefined };

/** An attempt on a copy of the call. */
interface Runner<T> {
  readonly attempt: RunningAttempt;
  /** Hangs up; the call goes on. */
  leave(): void;
  /** `thrown`: it was aborted. */
  readonly ended: Promise<Ended<T> | { readonly thrown: unknown }>;
}

/**
 * Asks a target, and another one when that takes long. The first response wins; the other attempt is left, and what its target has
 * done by then is owed too. What came of both is in the call's record afterwards.
 */
export async function hedge<T extends object>(
  deps: CallDeps,
  call: Call,
  rule: HedgeRule,
  attempts: Attempts,
  target: Target,
  send: SendTo<T>,
): Promise<Ended<T>> {
  const rivals = new Set<RunningAttempt>();
  const first = start(deps, call, attempts, target, rivals, send);
  const afterMs = deps.routing.hedges.afterMs(rule, target, call.stream);
  await endOrTime(first.ended, afterMs);
  // One that ended at the same moment has decided what is tried now.
  const other = rivals.size > 0 ? attempts.secondTarget() : undefined;
  if (!other) return settle(deps, call, first);
  const second = start(deps, call, attempts, other, rivals, send);
  const earlier = await Promise.race([first, second].map((each) => each.ended.then(() => each)));
  const later = earlier === first ? second : first;
  const winner = hasResponded(await earlier.ended) || !hasResponded(await later.ended) ? earlier : later;
  const hasWon = hasResponded(await winner.ended);
  // Of two that failed, the one that failed last knows what is tried now.
  const last = hasWon ? winner : later;
  const left = last === first ? second : first;
  left.leave();
  await left.ended;
  deps.log.info(
    {
      request_id: call.requestId,
      ...{ target: nameOf(target), beside: nameOf(other), after_ms: Math.round(afterMs ?? 0) },
      won: hasWon ? nameOf(winner.attempt.target) : 'none',
    },
    'hedged request: a second target was tried, since the first was slow',
  );
  return settle(deps, call, last, left);
}

function start<T extends object>(
  deps: CallDeps,
  call: Call,
  attempts: Attempts,
  target: Target,
  rivals: Set<RunningAttempt>,
  send: SendTo<T>,
): Runner<T> {
  const hangUp = new AbortController();
  const own = call.fork(AbortSignal.any([call.signal, hangUp.signal]));
  const attempt = attempts.begin(own, target, rivals);
  const run = async (): Promise<Ended<T>> => {
    try {
      const response = await send(deps, own, target);
      attempts.succeed(attempt, response);
      return { response };
    } catch (thrown) {
      return { next: attempts.fail(attempt, thrown) };
    }
  };
  return { attempt, leave: () => hangUp.abort(), ended: run().catch((thrown: unknown) => ({ thrown })) };
}

/** Puts together what came of the attempts; what was left without a failure is owed in addition to the last one. */
async function settle<T extends object>(
  deps: CallDeps,
  call: Call,
  last: Runner<T>,
  left?: Runner<T>,
): Promise<Ended<T>> {
  const { hedges, health } = deps.routing;
  const note = ({ attempt: { target, startedMs } }: Runner<T>): void =>
    hedges.note(target, call.stream, call.elapsedMs - startedMs);
  const leftEnd = await left?.ended;
  if (left && leftEnd && ('thrown' in leftEnd || hasResponded(leftEnd))) {
    if (hasResponded(leftEnd)) hangUp(leftEnd.response);
    const { record } = left.attempt.call;
    if (record.running) health.leave(record.running);
    meterUnfinished(deps, left.attempt.call);
    record.hedged = owedBy(record);
    record.sentTo.length = 0;
    note(left);
  }
  const end = await last.ended;
  const before = left ? [call.record, left.attempt.call.record] : [call.record];
  call.adopt(joinRecords(before, last.attempt.call.record));
  if ('thrown' in end) throw end.thrown;
  if (hasResponded(end)) note(last);
  return end;
}

function hasResponded<T>(ended: object): ended is { readonly response: T } {
  return 'response' in ended;
}

/** A response that came at the same moment as the one that won is not read. */
function hangUp(response: { destroy?(): void }): void {
  response.destroy?.();
}

/** Resolves when an attempt is over, or its time. */
function endOrTime(ended: Promise<unknown>, afterMs: number | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = afterMs === undefined ? undefined : setTimeout(resolve, afterMs);
    void ended.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
