import { isObject, readArray } from './json.ts';
import { childPointer, type ProblemAt } from './pointers.ts';
import type { Price, PriceRow } from './provider.ts';

/** Prices with a limited validity: selection of the current one, and validation of lists. */

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const DAY_MINUTES = 1440;
const WEEK_MINUTES = 7 * DAY_MINUTES;

/** Hours of a week in UTC: `mon-fri 01:00-04:00`, or `daily 16:30-00:30`; several are separated by commas. */
const WINDOW = new RegExp(
  `^(?:daily|(?:${DAYS.join('|')})(?:-(?:${DAYS.join('|')}))?) (?:[01]\\d|2[0-3]):[0-5]\\d-(?:(?:[01]\\d|2[0-3]):[0-5]\\d|24:00)$`,
);

const isHours = (hours: string): boolean => hours.split(/, ?/).every((window) => WINDOW.test(window));

/** Validity of a row, as numbers. */
interface Term {
  readonly from: number;
  readonly until: number;
  /** Minutes of the week since Monday, end excluded; undefined for a row without hours. */
  readonly windows: readonly (readonly [from: number, until: number])[] | undefined;
}

const terms = new WeakMap<object, Term>();

/** Returns the price at a time. A row with hours overrides one without. */
export function priceAt(prices: Price | readonly PriceRow[] | undefined, at = Date.now()): Price | undefined {
  if (prices === undefined || !('length' in prices)) return prices;
  const day = (new Date(at).getUTCDay() + 6) % DAYS.length;
  const minute = day * DAY_MINUTES + (Math.floor(at / 60_000) % DAY_MINUTES);
  let found: PriceRow | undefined;
  for (const row of prices) {
    const { from, until, windows } = termOf(row);
    if (at < from || at >= until || (windows === undefined && found)) continue;
    if (windows === undefined || windows.some(([begin, end]) => minute >= begin && minute < end)) found = row;
  }
  return found;
}

function termOf(row: PriceRow): Term {
  const known = terms.get(row);
  if (known) return known;
  const term = {
    from: row.from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(row.from),
    until: row.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(row.until),
    windows: row.hours === undefined ? undefined : windowsOf(row.hours),
  };
  terms.set(row, term);
  return term;
}

function windowsOf(hours: string): readonly (readonly [number, number])[] {
  return hours.split(/, ?/).flatMap((window) => {
    const [days = '', times = ''] = window.split(' ');
    const [begin = 0, end = 0] = times.split('-').map(minuteOf);
    const length = (end - begin + DAY_MINUTES) % DAY_MINUTES || DAY_MINUTES;
    return daysOf(days).flatMap((day) => {
      const from = day * DAY_MINUTES + begin;
      const until = from + length;
      // Sunday's last window may end on Monday.
      return until <= WEEK_MINUTES
        ? [[from, until] as const]
        : [[from, WEEK_MINUTES] as const, [0, until - WEEK_MINUTES] as const];
    });
  });
}

function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}

function daysOf(days: string): readonly number[] {
  if (days === 'daily') return DAYS.map((_, index) => index);
  const [first = 0, last = first] = days.split('-').map((day) => DAYS.indexOf(day));
  return DAYS.map((_, index) => (first + index) % DAYS.length).slice(
    0,
    ((last - first + DAYS.length) % DAYS.length) + 1,
  );
}

/** Returns the problems of an instance's prices with a limited validity; wrong types are reported by the schema. */
export function checkPrices({
  value,
  pointer,
}: {
  readonly value: unknown;
  readonly pointer: string;
}): readonly ProblemAt[] {
  const prices = isObject(value) && isObject(value['prices']) ? value['prices'] : {};
  return Object.entries(prices).flatMap(([model, rows]) => {
    const at = childPointer(childPointer(pointer, 'prices'), model);
    return problemsOfRows(readArray(rows)).map(({ index, message, hint = CONTIGUOUS }) => ({
      pointer: index === undefined ? at : childPointer(at, String(index)),
      message,
      hint,
    }));
  });
}

const CONTIGUOUS =
  'Use one row without "hours" for each time: the first without "from", each starting where another ends, the last without "until".';

interface RowProblem {
  /** Index of the invalid row. */
  readonly index?: number;
  readonly message: string;
  readonly hint?: string;
}

/** Returns invalid hours, gaps and overlaps of rows. */
export function problemsOfRows(list: readonly unknown[]): readonly RowProblem[] {
  const rows = list.map((row, index) => ({ row: row as PriceRow, index }));
  if (!rows.every(({ row }) => isObject(row) && isTerm(row))) return [];
  const unread = rows.find(({ row: { hours } }) => hours !== undefined && !isHours(hours));
  if (unread)
    return [
      {
        index: unread.index,
        message: 'has invalid "hours"',
        hint: 'Use hours of a week in UTC: mon-fri 01:00-04:00, daily 23:00-24:00.',
      },
    ];
  const wrong = rows.find(({ row }) => termOf(row).from >= termOf(row).until);
  if (wrong) return [{ index: wrong.index, message: 'ends before it begins' }];
  const problems: RowProblem[] = [];
  let end = Number.NEGATIVE_INFINITY;
  const always = rows
    .filter(({ row }) => row.hours === undefined)
    .sort((a, b) => termOf(a.row).from - termOf(b.row).from);
  for (const { row, index } of always) {
    const { from, until } = termOf(row);
    if (from > end) problems.push({ index, message: `leaves a gap: there is no price ${spanOf(end, from)}` });
    if (from < end) problems.push({ index, message: `overlaps another row ${spanOf(from, Math.min(end, until))}` });
    end = Math.max(end, until);
  }
  if (list.length > 0 && end !== Number.POSITIVE_INFINITY)
    problems.push({ message: `leaves a gap: there is no price ${spanOf(end, Number.POSITIVE_INFINITY)}` });
  const hourly = rows.filter(({ row }) => row.hours !== undefined);
  for (const [at, { row, index }] of hourly.entries())
    if (hourly.slice(0, at).some((other) => isTogether(termOf(row), termOf(other.row))))
      problems.push({ index, message: 'has hours that overlap another row' });
  return problems;
}

/** Returns whether a row has the types that the schema requires. */
function isTerm({ from, until, hours }: PriceRow): boolean {
  const isTime = (time: unknown): boolean => time === undefined || !Number.isNaN(Date.parse(String(time)));
  return isTime(from) && isTime(until) && (hours === undefined || typeof hours === 'string');
}

function isTogether(one: Term, other: Term): boolean {
  if (one.from >= other.until || other.from >= one.until) return false;
  return (one.windows ?? []).some(([from, until]) =>
    other.windows?.some(([begin, end]) => from < end && begin < until),
  );
}

function spanOf(from: number, until: number): string {
  const day = (time: number): string => new Date(time).toISOString().replace('T00:00:00.000Z', '');
  if (from === Number.NEGATIVE_INFINITY)
    return until === Number.POSITIVE_INFINITY ? 'at any time' : `before ${day(until)}`;
  return until === Number.POSITIVE_INFINITY ? `from ${day(from)} on` : `from ${day(from)} to ${day(until)}`;
}
