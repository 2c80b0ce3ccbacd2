import type { Target } from '../../contract/call.ts';
import type { CallDeps } from '../call-deps.ts';
import { joinRecords, owedBy } from '../call-record.ts';
import type { LiveCall } from '../live-call.ts';
import { meterUnfinished } from '../meter.ts';
import { type Lap, nameOf } from './tell-attempt.ts';

/** How two targets are asked. */
export interface HedgePlan<R> {
  /** How long the first one has; undefined: for ever. */
  readonly afterMs: number | undefined;
  /** Resolves with what is to be done when the attempt failed; rejects when it was left. */
  attempt(lap: Lap): Promise<R>;
  /** The target to ask beside, when there is one now and the call may be asked twice. */
  second(): Target | undefined;
}

type Ended<R> = { readonly result: R } | { readonly thrown: unknown };

/** An attempt that runs. */
interface Runner<R> {
  readonly lap: Lap;
  readonly startedMs: number;
  /** Hangs up; the call goes on. */
  leave(): void;
  readonly ended: Promise<Ended<R>>;
}

/**
 * Asks a target, and another one when that takes long. The first response wins; the other attempt is left, and what its target has
 * done by then is owed too. What became of both is in the call's record afterwards.
 */
export async function hedge<R extends object>(
  deps: CallDeps,
  call: LiveCall,
  target: Target,
  plan: HedgePlan<R>,
): Promise<R> {
  const running = new Set<Lap>();
  const first = start(call, target, false, running, plan);
  await endOrTime(first.ended, plan.afterMs);
  // Whoever was done at the same moment has decided what is tried now.
  const other = running.size > 0 ? plan.second() : undefined;
  if (!other) return settle(deps, call, first, []);
  const second = start(call, other, true, running, plan);
  const both = [first, second];
  const earlier = await Promise.race(both.map((each) => each.ended.then(() => each)));
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
      ...{ target: nameOf(target), beside: nameOf(other), after_ms: Math.round(plan.afterMs ?? 0) },
      won: hasWon ? nameOf(winner.lap.target) : 'none',
    },
    'a second target was asked beside a slow one',
  );
  return settle(deps, call, last, [left]);
}

function start<R extends object>(
  call: LiveCall,
  target: Target,
  isSecond: boolean,
  running: Set<Lap>,
  plan: HedgePlan<R>,
): Runner<R> {
  const own = new AbortController();
  const lap: Lap = {
    ...{ target, isSecond },
    call: call.fork(AbortSignal.any([call.signal, own.signal])),
    end() {
      running.delete(lap);
      return running.size > 0;
    },
  };
  running.add(lap);
  const ended = plan.attempt(lap).then(
    (result): Ended<R> => ({ result }),
    (thrown: unknown): Ended<R> => ({ thrown }),
  );
  return { lap, startedMs: call.elapsedMs, leave: () => own.abort(), ended };
}

/** Puts together what came of the attempts; what was left without a failure is owed beside the last one. */
async function settle<R extends object>(
  deps: CallDeps,
  call: LiveCall,
  last: Runner<R>,
  others: readonly Runner<R>[],
): Promise<R> {
  for (const { lap, startedMs, ended } of others) {
    const end = await ended;
    if (!('thrown' in end) && !hasResponded(end)) continue;
    if (hasResponded(end)) hangUp(end.result);
    const { record } = lap.call;
    record.running?.leave();
    meterUnfinished(deps, lap.call);
    record.beside = owedBy(record);
    record.sentTo.length = 0;
    deps.routing.hedges.note(lap.target, call.stream, call.elapsedMs - startedMs);
  }
  const end = await last.ended;
  call.adopt(joinRecords([call.record, ...others.map(({ lap }) => lap.call.record)], last.lap.call.record));
  if ('thrown' in end) throw end.thrown;
  if (hasResponded(end)) deps.routing.hedges.note(last.lap.target, call.stream, call.elapsedMs - last.startedMs);
  return end.result;
}

function hasResponded<R extends object>(ended: Ended<R>): ended is { readonly result: R } {
  return 'result' in ended && 'response' in ended.result;
}

/** A response that came at the same moment as the one that won: nobody reads it. */
function hangUp(result: object): void {
  const { response } = result as { readonly response?: { destroy?(): void } };
  response?.destroy?.();
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
