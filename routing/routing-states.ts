import type { RoutingState, TargetReport } from '../contract/call.ts';
import { nameOf } from '../contract/target-rows.ts';

/** Topic under which the processes of one gateway share target states. */
export const ROUTING_TOPIC = 'core.routing';

/** Combined state of all processes of this gateway. */
export async function gatherStates(gatherer: {
  gather(topic: string): Promise<readonly unknown[]>;
}): Promise<RoutingState> {
  return mergeStates((await gatherer.gather(ROUTING_TOPIC)) as readonly RoutingState[]);
}

/** Severity of states. */
const STATES = Object.freeze({ closed: 0, 'half-open': 1, open: 2, drained: 3 });

/**
 * Merges the states of several processes: the worst state of each target, its latest error, and averages weighted by
 * attempts.
 */
export function mergeStates(states: readonly RoutingState[]): RoutingState {
  const byName = new Map<string, TargetReport>();
  for (const { targets } of states)
    for (const target of targets) {
      const name = nameOf(target);
      const known = byName.get(name);
      byName.set(name, known ? mergeReports(known, target) : target);
    }
  const sum = (field: 'live' | 'running' | 'allowed' | 'refused'): number =>
    states.reduce((total, { retries }) => total + retries[field], 0);
  return {
    targets: [...byName.values()],
    drained: [...new Set(states.flatMap(({ drained }) => drained))].sort(),
    retries: { live: sum('live'), running: sum('running'), allowed: sum('allowed'), refused: sum('refused') },
  };
}

function mergeReports(one: TargetReport, other: TargetReport): TargetReport {
  const severity = ({ state, openUntil = 0 }: TargetReport): number => STATES[state] * 1e15 + openUntil;
  const [worse] = [one, other].sort((a, b) => severity(b) - severity(a));
  const { state, cause, openUntil } = worse ?? one;
  const latest = (one.lastError?.at ?? 0) >= (other.lastError?.at ?? 0) ? one.lastError : other.lastError;
  const attempts = one.attempts + other.attempts;
  const average = (field: 'wholeMs' | 'firstTokenMs'): number | undefined => {
    const [a, b] = [one[field], other[field]];
    if (a === undefined || b === undefined || attempts === 0) return a ?? b;
    return (a * one.attempts + b * other.attempts) / attempts;
  };
  const [wholeMs, firstTokenMs] = [average('wholeMs'), average('firstTokenMs')];
  return {
    provider: one.provider,
    model: one.model,
    state,
    attempts,
    ...(one.key !== undefined && { key: one.key }),
    ...(cause && { cause }),
    ...(openUntil !== undefined && { openUntil }),
    errorRate:
      attempts === 0
        ? Math.max(one.errorRate, other.errorRate)
        : (one.errorRate * one.attempts + other.errorRate * other.attempts) / attempts,
    ...(wholeMs !== undefined && { wholeMs }),
    ...(firstTokenMs !== undefined && { firstTokenMs }),
    ...(latest && { lastError: latest }),
  };
}
