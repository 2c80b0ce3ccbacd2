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
