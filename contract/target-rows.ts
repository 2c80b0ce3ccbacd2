import type { RoutingState, TargetReport } from './call.ts';

/** Target in the JSON for operators: ISO times, milliseconds, fractions of 1. */
export type TargetRow = ReturnType<typeof targetRow>;

/** Returns the rows of all targets, by name. */
export function targetRows({ targets }: RoutingState): readonly TargetRow[] {
  return targets.map(targetRow).sort((a, b) => (a.target < b.target ? -1 : a.target > b.target ? 1 : 0));
}

/** Returns `provider/model`, or `provider#key/model` for one key. */
export function nameOf({ provider, key, model }: TargetReport): string {
  return `${provider}${key === undefined ? '' : `#${key}`}/${model}`;
}

function targetRow(report: TargetReport) {
  const { provider, model, key, state, cause, openUntil, lastError, errorRate, attempts } = report;
  const { wholeMs, firstTokenMs } = report;
  return {
    target: nameOf(report),
    provider,
    model,
    state,
    ...(key !== undefined && { key }),
    ...(cause && state !== 'closed' && { cause }),
    ...(openUntil !== undefined && state !== 'closed' && { open_until: iso(openUntil) }),
    error_ratio: round(errorRate, 4),
    attempts,
    ...(wholeMs !== undefined && { whole_ms: round(wholeMs, 1) }),
    ...(firstTokenMs !== undefined && { first_token_ms: round(firstTokenMs, 1) }),
    ...(lastError && {
      last_error: {
        at: iso(lastError.at),
        message: lastError.message,
        ...(lastError.class && { class: lastError.class }),
        ...(lastError.status !== undefined && { status: lastError.status }),
        ...(lastError.errno !== undefined && { errno: lastError.errno }),
        ...(lastError.requestId !== undefined && { request_id: lastError.requestId }),
      },
    }),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

function round(value: number, places: number): number {
  return Number(value.toFixed(places));
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
