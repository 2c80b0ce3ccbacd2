import type { HedgeRule } from '../../config/model-routes.ts';
import type { Target } from '../../contract/call.ts';
import type { WaitingAttempt } from '../../routing/target-health.ts';
import { type Call, joinRecords, owedBy } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { meterUnfinished } from './meter.ts';

/** Attempt that runs alone, or one of two concurrent attempts on copies of the call. */
export interface RunningAttempt {
  readonly call: Call;
  readonly target: Target;
  /** Milliseconds from the start of the call. */
  readonly startedMs: number;
  /** True if it was started because another one is slow. */
  readonly isSecond: boolean;
  /** Running attempts of the call, this one included; undefined if the call is not hedged. */
  readonly rivals?: Set<RunningAttempt> | undefined;
  /** Entry among the attempts that wait for a response. */
  readonly waiting: WaitingAttempt;
}

/** Sends the call to a target. Concurrent attempts each get a copy of the call. */
export type SendTo<T extends object> = (deps: CallDeps, call: Call, target: Target) => Promise<T>;

/** Name of a target in a log line, with a maximum length, since callers may invent names. */
export function nameOf({ provider, model }: Target): string {
  return `${provider}/${model.slice(0, 100)}`;
}

/** Begins and ends the attempts of one call. */
interface Attempts {
  begin(call: Call, target: Target, rivals: Set<RunningAttempt>): RunningAttempt;
  succeed(attempt: RunningAttempt): void;
  /** Returns the target to try next. Rethrows an abort. */
  fail(attempt: RunningAttempt, thrown: unknown): Target | undefined;
  /** Returns the target for a hedged request, if any. */
  secondTarget(): Target | undefined;
}

/** Response, or the target to try next. */
export type Ended<T> = { readonly response: T } | { readonly next: Target | undefined };

/** Attempt on a copy of the call. */
interface Runner<T> {
  readonly attempt: RunningAttempt;
  /** Aborts the attempt. The call continues. */
  leave(): void;
  /** `thrown`: the error of an aborted attempt. */
  readonly ended: Promise<Ended<T> | { readonly thrown: unknown }>;
}

/**
 * Sends the call to a target, and to another one if the first is slow. The first response wins. The other attempt is
 * aborted, and the work of its target is owed too. The record of the call contains the results of both afterwards.
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
  // An attempt that has just ended has already chosen the next target.
  const other = rivals.size > 0 ? attempts.secondTarget() : undefined;
  if (!other) return settle(deps, call, first);
  const second = start(deps, call, attempts, other, rivals, send);
  const earlier = await Promise.race([first, second].map((each) => each.ended.then(() => each)));
  const later = earlier === first ? second : first;
  const winner = hasResponded(await earlier.ended) || !hasResponded(await later.ended) ? earlier : later;
  const hasWon = hasResponded(await winner.ended);
  // If both failed, the later one has chosen the next target.
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
      attempts.succeed(attempt);
      return { response };
    } catch (thrown) {
      return { next: attempts.fail(attempt, thrown) };
    }
  };
  return { attempt, leave: () => hangUp.abort(), ended: run().catch((thrown: unknown) => ({ thrown })) };
}

/** Merges the records of the attempts. An aborted attempt without a failure is owed in addition to the last one. */
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

/** Closes a response that arrived at the same moment as the winner. */
function hangUp(response: { destroy?: unknown }): void {
  if (typeof response.destroy === 'function') response.destroy();
}

/** Resolves when an attempt has ended, or after the delay. */
function endOrTime(ended: Promise<unknown>, afterMs: number | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = afterMs === undefined ? undefined : setTimeout(resolve, afterMs);
    void ended.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
