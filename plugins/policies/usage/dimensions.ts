import { GatewayError, nearest, type ReportDimension } from '../../../contract/index.ts';
import type { TimeUnit } from './range.ts';

/** Groupings of a report: the store's dimension for each word. */
const DIMENSIONS = Object.freeze({
  user: 'user',
  key: 'key',
  tag: 'tags',
  // A tag that the gateway sets.
  end_user: 'tags',
  provider: 'provider',
  model: 'model',
  operation: 'operation',
  session: 'session',
  account: 'account',
} as const satisfies Record<string, ReportDimension>);

const TIME_UNITS: readonly TimeUnit[] = Object.freeze(['hour', 'day', 'week', 'month']);

export type Dimension = keyof typeof DIMENSIONS;
export type By = Dimension | TimeUnit;

/** All values of `by` in a report. */
export const BY_WORDS: readonly By[] = Object.freeze([...(Object.keys(DIMENSIONS) as Dimension[]), ...TIME_UNITS]);

/** Store dimension of a word; undefined for a unit of time. */
export function dimensionOf(by: By): ReportDimension | undefined {
  return isTimeUnit(by) ? undefined : DIMENSIONS[by];
}

export function isTimeUnit(by: By): by is TimeUnit {
  return TIME_UNITS.some((unit) => unit === by);
}

/**
 * Parses a comma-separated list, without duplicates, in order; throws a 400 for unknown words and for two units of
 * time.
 */
export function readBy(text: string, param = 'by'): readonly By[] {
  const words = text.split(',').map((word) => word.trim());
  const by = words.map((word) => {
    const found = BY_WORDS.find((known) => known === word);
    if (found) return found;
    const [near] = nearest(word, BY_WORDS);
    const hint = near === undefined ? `use one or more of ${BY_WORDS.join(', ')}.` : `did you mean ${near}?`;
    throw wrong(param, `cannot be ${JSON.stringify(word.slice(0, 40))}; ${hint}`);
  });
  const unique = [...new Set(by)];
  const units = unique.filter(isTimeUnit);
  if (units.length > 1) throw wrong(param, `has ${units.join(' and ')}; choose one unit of time.`);
  return unique;
}

function wrong(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `"${param}" ${reason}`, { param });
}
