import {
  type CallFilter,
  GatewayError,
  type Principal,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { BY_WORDS } from './dimensions.ts';
import { PERIOD_NAMES } from './range.ts';
import { FILTERS, type FilterWord, MAX_LIMIT, MAX_WORD, type Words } from './words.ts';

/** Descriptions of range parameters, for OpenAPI and help. */
export const RANGE_WORDS = Object.freeze({
  from: 'Start: a day (2026-11-01), a month (2026-11) or an instant (2026-11-01T08:00:00Z).',
  to: 'End, exclusive: from=2026-11-01 with to=2026-11-02 is one day.',
  last: 'Alternative to from and to: duration until now, such as 24h or 30d. A day or more starts at a full hour.',
  period: `Instead: ${PERIOD_NAMES.join(', ')}.`,
  tz: 'Time zone of days and months, an IANA name such as Europe/Berlin. Default: UTC.',
} as const);

const REPORT_WORDS = Object.freeze({
  by: `Grouping, comma-separated: one or more of ${BY_WORDS.join(', ')}. Default: day.`,
  group_by: 'Former name of `by`.',
  sort: 'name (by time and name) or cost (highest first). Default: name.',
  format: 'json, or csv with all rows. Default: json.',
  compare: 'previous adds the sums of the range before, of the same length, to each row and the totals.',
  latency: 'true adds latency (p50 and p95) of the latest 5,000 successful calls to each row. Not with format=csv.',
  limit: `Maximum number of rows per page, 1 to ${MAX_LIMIT}. Default: 100.`,
  after: '`next` of the previous page.',
} as const);

/** Query schema of a report that can be filtered by these words. */
export function reportQuery(filters: readonly FilterWord[]): Schema {
  return querySchema({ ...RANGE_WORDS, ...REPORT_WORDS, ...descriptions(filters) });
}

export function descriptions(filters: readonly FilterWord[]): Readonly<Record<string, string>> {
  return Object.fromEntries(filters.map((word) => [word, FILTERS[word]]));
}

/** Query schema of words: texts, each validated with a message when it is read. */
export function querySchema(words: Readonly<Record<string, string>>): Schema {
  const properties = Object.entries(words).map(([word, description]) => [
    word,
    { type: 'string', minLength: 1, maxLength: word === 'after' ? 8192 : MAX_WORD, description },
  ]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

/** Query as seen by the validator: the last value of a repeated name. */
export function wordsOf({ querystring }: Pick<RouteContext, 'querystring'>): Words {
  return Object.fromEntries(new URLSearchParams(querystring));
}

/** Restricts a filter to the caller's view: a key's own calls, or all of a token's account. */
export function ownCalls({ credential, keyId, account }: Principal, filter: CallFilter): CallFilter {
  if (credential !== 'key' || keyId === undefined) return { ...filter, account };
  if (filter.key !== undefined && filter.key !== keyId)
    throw new GatewayError(
      'invalid_request',
      '"key" must be the key of the request. Use a token to see the whole account.',
      {
        param: 'key',
      },
    );
  return { ...filter, account, key: keyId };
}
