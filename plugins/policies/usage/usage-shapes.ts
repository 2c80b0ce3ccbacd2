import { formatUsd } from '../../../core/index.ts';
import { type Cell, formatCsv } from '../kit/csv.ts';
import type { By } from './dimensions.ts';
import { NONE, type Sums } from './report.ts';
import type { UsagePage, UsageQuery } from './usage-query.ts';

/** The columns behind the names, in their order. */
export const COLUMNS = Object.freeze({
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  prompt_tokens: ({ prompt_tokens }) => prompt_tokens,
  cached_tokens: ({ cached_tokens }) => cached_tokens,
  completion_tokens: ({ completion_tokens }) => completion_tokens,
  reasoning_tokens: ({ reasoning_tokens }) => reasoning_tokens,
  characters: ({ characters }) => characters,
  cost_usd: ({ cost }) => formatUsd(cost),
  saved_usd: ({ saved }) => formatUsd(saved),
  estimated_requests: ({ estimated }) => estimated,
  unpriced_requests: ({ unpriced }) => unpriced,
} satisfies Readonly<Record<string, (sums: Sums) => Cell>>);

/** The sums of a row as they are told. */
export function tellSums(sums: Sums): Readonly<Record<string, Cell>> {
  return Object.fromEntries(Object.entries(COLUMNS).map(([name, read]) => [name, read(sums)]));
}

/** A page of a report as JSON. */
export function tellReport({ page, rows, totals, shared, next }: UsagePage, { range, by }: UsageQuery): object {
  return {
    object: 'list',
    from: new Date(range.from).toISOString(),
    to: new Date(range.to).toISOString(),
    tz: range.zone,
    by,
    currency: 'USD',
    data: page.map(({ names, sums }) => ({
      ...Object.fromEntries(by.map((word, i) => [word, names[i] ?? NONE])),
      ...tellSums(sums),
    })),
    rows: rows.length,
    totals: tellSums(totals),
    ...(shared && {
      shared: {
        ...{ requests: shared.calls.requests, cost_usd: formatUsd(shared.calls.cost) },
        ...{ repeated_requests: shared.repeated.requests, repeated_cost_usd: formatUsd(shared.repeated.cost) },
      },
    }),
    has_more: next !== undefined,
    ...(next !== undefined && { next }),
  };
}

/** What of several tags stands in more rows than one, taken off again in a row of its own. */
const REPEATED = '(in several rows)';

/** All rows as CSV, whatever the page; every column sums to the totals. */
export function csvOfReport({ rows, shared }: UsagePage, by: readonly By[]): string {
  const cells = (sums: Sums): readonly Cell[] => Object.values(tellSums(sums));
  const lines = rows.map(({ names, sums }) => [...names.map((name) => (name === NONE ? '' : name)), ...cells(sums)]);
  if (shared && shared.repeated.requests > 0)
    lines.push([...by.map((word) => (word === 'tag' ? REPEATED : '')), ...cells(negate(shared.repeated))]);
  return formatCsv([...by, ...Object.keys(COLUMNS)], lines);
}

function negate(sums: Sums): Sums {
  return Object.fromEntries(Object.entries(sums).map(([name, value]) => [name, value === 0 ? 0 : -value])) as Record<
    keyof Sums,
    number
  >;
}
