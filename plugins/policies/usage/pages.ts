import { GatewayError, isObject, parseJson, readArray } from '../../../core/index.ts';
import { type By, isTimeUnit } from './dimensions.ts';
import type { UsageRow } from './report.ts';

/** How rows are ordered: by time and name, or the most expensive first. */
export type Sort = 'name' | 'cost';

/** Where a page ended: the range of the report, which words such as `last=30d` would move, and the last row's place. */
export interface Cursor {
  readonly from: number;
  readonly to: number;
  readonly interval: number;
  readonly cost: number;
  readonly names: readonly string[];
}

type Place = Pick<Cursor, 'interval' | 'cost' | 'names'>;

function placeOf({ interval, names, sums: { cost } }: UsageRow): Place {
  return { interval, cost, names };
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Compares rows in the order of the words; times by their instants, for an hour may come twice. */
function comparePlaces(by: readonly By[], sort: Sort): (a: Place, b: Place) => number {
  return (a, b) => {
    if (sort === 'cost' && a.cost !== b.cost) return b.cost - a.cost;
    for (const [i, word] of by.entries()) {
      const order = isTimeUnit(word) ? a.interval - b.interval : compareText(a.names[i] ?? '', b.names[i] ?? '');
      if (order !== 0) return order;
    }
    return 0;
  };
}

export function sortRows(rows: readonly UsageRow[], by: readonly By[], sort: Sort): readonly UsageRow[] {
  const compare = comparePlaces(by, sort);
  return rows.toSorted((a, b) => compare(placeOf(a), placeOf(b)));
}

/** One page of sorted rows, and the cursor of the next one where there are more. */
export function pageOf(
  sorted: readonly UsageRow[],
  {
    by,
    sort,
    limit,
    after,
  }: { readonly by: readonly By[]; readonly sort: Sort; readonly limit: number; readonly after?: Cursor | undefined },
  { from, to }: Pick<Cursor, 'from' | 'to'>,
): { readonly rows: readonly UsageRow[]; readonly next?: string } {
  const compare = comparePlaces(by, sort);
  const rest = after ? sorted.filter((row) => compare(placeOf(row), after) > 0) : sorted;
  const rows = rest.slice(0, limit);
  const last = rows.at(-1);
  return rest.length > limit && last ? { rows, next: writeCursor({ from, to, ...placeOf(last) }) } : { rows };
}

function writeCursor({ from, to, interval, cost, names }: Cursor): string {
  return Buffer.from(JSON.stringify({ from, to, interval, cost, names })).toString('base64url');
}

/** Longer than any that was given out. */
const MAX_CURSOR = 8192;

/** Reads a cursor of a report by these words; throws a 400 for anything else. */
export function readCursor(text: string, by: readonly By[]): Cursor {
  const value = text.length > MAX_CURSOR ? undefined : parseJson(Buffer.from(text, 'base64url').toString());
  if (isObject(value)) {
    const { from, to, interval, cost, names } = value;
    const numbers = { from: Number(from), to: Number(to), interval: Number(interval), cost: Number(cost) };
    const texts = readArray(names).filter((name) => typeof name === 'string');
    const areNumbers = Object.values(numbers).every(Number.isSafeInteger) && numbers.from < numbers.to;
    if (areNumbers && texts.length === by.length) return { ...numbers, names: texts };
  }
  throw new GatewayError(
    'invalid_request',
    '"after" is no cursor of this report; send what "next" of the page before holds, with the same words.',
    { param: 'after' },
  );
}
