import { GatewayError, parseDuration } from '../../../contract/index.ts';
import { firstInstantOf, isTimeZone, wallAt } from '../kit/index.ts';

/** Days, months and hours by a zone's wall clock, for reports. */

const DAY_MS = 86_400_000;

/** First instant of the day `days` days after that of the wall clock. */
export function startOfDay(zone: string, wall: number, days = 0): number {
  return firstInstantOf(zone, (Math.floor(wall / DAY_MS) + days) * DAY_MS);
}

/** First instant of the month `months` months after that of the wall clock. */
export function startOfMonth(zone: string, wall: number, months = 0): number {
  const date = new Date(wall);
  return firstInstantOf(zone, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));
}

/** `2026-11-01T02:30` with the zone's offset at that time, such as `+10:30`, or `Z`. */
export function formatHour(zone: string, instant: number): string {
  const wall = wallAt(zone, instant);
  const minutes = Math.round((wall - instant) / 60_000);
  const text = new Date(wall).toISOString().slice(0, 16);
  if (zone === 'UTC') return `${text}Z`;
  const two = (value: number): string => String(Math.trunc(value)).padStart(2, '0');
  const away = Math.abs(minutes);
  return `${text}${minutes < 0 ? '-' : '+'}${two(away / 60)}:${two(away % 60)}`;
}

const HOUR_MS = 3_600_000;

/** From `from` (inclusive) to `to` (exclusive), in Unix milliseconds; days and months are those of the zone. */
export interface Range {
  readonly from: number;
  readonly to: number;
  readonly zone: string;
}

/** Parameters that select a range. `from`/`to`, `last` and `period` exclude each other. */
export interface RangeWords {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly last?: string | undefined;
  readonly period?: string | undefined;
  readonly tz?: string | undefined;
}

/** First instant of the week, which begins on Monday. */
function startOfWeek(zone: string, wall: number, weeks = 0): number {
  return startOfDay(zone, wall, weeks * 7 - ((new Date(wall).getUTCDay() + 6) % 7));
}

type PeriodStart = (zone: string, wall: number) => number;

/** Named periods: their first instant, and the first one after them. */
const PERIODS: Readonly<Record<string, readonly [PeriodStart, PeriodStart]>> = Object.freeze({
  today: [(zone, wall) => startOfDay(zone, wall), (zone, wall) => startOfDay(zone, wall, 1)],
  yesterday: [(zone, wall) => startOfDay(zone, wall, -1), (zone, wall) => startOfDay(zone, wall)],
  'this-week': [(zone, wall) => startOfWeek(zone, wall), (zone, wall) => startOfWeek(zone, wall, 1)],
  'last-week': [(zone, wall) => startOfWeek(zone, wall, -1), (zone, wall) => startOfWeek(zone, wall)],
  'last-7-days': [(zone, wall) => startOfDay(zone, wall, -6), (zone, wall) => startOfDay(zone, wall, 1)],
  'last-30-days': [(zone, wall) => startOfDay(zone, wall, -29), (zone, wall) => startOfDay(zone, wall, 1)],
  'this-month': [(zone, wall) => startOfMonth(zone, wall), (zone, wall) => startOfMonth(zone, wall, 1)],
  'last-month': [(zone, wall) => startOfMonth(zone, wall, -1), (zone, wall) => startOfMonth(zone, wall)],
});

export const PERIOD_NAMES: readonly string[] = Object.freeze(Object.keys(PERIODS));

/** Earliest accepted time: usage before it does not exist. */
const EARLIEST = Date.UTC(2000, 0, 1);
const LATEST = Date.UTC(2100, 0, 1);

/** Default length of a range in days. */
const DEFAULT_DAYS = 30;

/** Reads the parameters; throws a 400 that names an invalid one. Default: the last 30 days, today included. */
export function readRange(words: RangeWords, now: number): Range {
  const zone = readZone(words.tz);
  const { from, to } = chooseRange(words, zone, now);
  for (const [param, instant] of [
    ['to', to],
    ['from', from],
  ] as const)
    if (instant < EARLIEST || instant > LATEST) throw wrong(param, 'must be between the years 2000 and 2100.');
  if (from >= to)
    throw wrong(
      'from',
      'must be before "to", which is exclusive: from=2026-11-01 with to=2026-11-02 is the first of November.',
    );
  return { from, to, zone };
}

export function readZone(name = 'UTC'): string {
  if (isTimeZone(name)) return name;
  throw wrong('tz', 'is an unknown time zone; use an IANA name such as Europe/Berlin or UTC.');
}

function chooseRange(
  { from, to, last, period }: RangeWords,
  zone: string,
  now: number,
): { readonly from: number; readonly to: number } {
  const isBounded = from !== undefined || to !== undefined;
  if ([isBounded, last !== undefined, period !== undefined].filter(Boolean).length > 1)
    throw wrong(last === undefined ? 'period' : 'last', 'cannot be combined with another range.');
  const wall = wallAt(zone, now);
  // Includes calls settled in this very millisecond.
  if (last !== undefined) return { from: now - readLast(last, now), to: now + 1 };
  if (period !== undefined) {
    const [start, end] = (Object.hasOwn(PERIODS, period) ? PERIODS[period] : undefined) ?? [];
    if (!start || !end) throw wrong('period', `must be one of ${PERIOD_NAMES.join(', ')}.`);
    return { from: start(zone, wall), to: end(zone, wall) };
  }
  const end = to === undefined ? startOfDay(zone, wall, 1) : readInstant(to, 'to', zone);
  const start =
    from === undefined ? startOfDay(zone, wallAt(zone, end - 1), 1 - DEFAULT_DAYS) : readInstant(from, 'from', zone);
  return { from: start, to: end };
}

/** A range of a day or more begins at a full hour: only hourly sums are stored permanently. */
export function readLast(text: string, now: number, param = 'last'): number {
  let duration: number;
  try {
    duration = parseDuration(text);
  } catch (cause) {
    throw wrong(param, `is invalid: ${cause instanceof Error ? cause.message : 'not a duration'}.`, cause);
  }
  if (duration < 1000) throw wrong(param, 'is shorter than a second; use 30m, 24h or 30d, for example.');
  return duration < DAY_MS ? duration : duration + ((now - duration) % HOUR_MS);
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MONTH = /^\d{4}-\d{2}$/;
const INSTANT = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Parses an instant, or the first one of a day or month in the zone. */
export function readInstant(text: string, param: string, zone: string): number {
  if (DAY.test(text) || MONTH.test(text)) {
    const wall = Date.parse(text);
    if (isDay(text)) return firstInstantOf(zone, wall);
  }
  const [, day] = INSTANT.exec(text) ?? [];
  const instant = day !== undefined && isDay(day) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(instant)) return instant;
  throw wrong(param, 'must be a day (2026-11-01), a month (2026-11) or an instant (2026-11-01T08:00:00Z).');
}

/** True if the calendar has this day or month. */
function isDay(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

export type TimeUnit = 'hour' | 'day' | 'week' | 'month';

/** Intervals of a report: `edges[i]` to `edges[i + 1]`, each with its name. */
interface Intervals {
  readonly edges: readonly number[];
  readonly names: readonly string[];
}

/** Maximum intervals of one report: hours for 41 days, days for more than two years. */
const MAX_INTERVALS = 1000;

const NEXT: Readonly<Record<TimeUnit, (zone: string, at: number) => number>> = Object.freeze({
  // Hour of the wall clock; shorter if the clock changes within it.
  hour: (zone, at) => at + HOUR_MS - (wallAt(zone, at) % HOUR_MS),
  day: (zone, at) => firstAfter(at, (days) => startOfDay(zone, wallAt(zone, at), days)),
  week: (zone, at) => firstAfter(at, (weeks) => startOfWeek(zone, wallAt(zone, at), weeks)),
  month: (zone, at) => firstAfter(at, (months) => startOfMonth(zone, wallAt(zone, at), months)),
});

/** A clock set back over midnight shows the end of a day whose next one has already begun. */
function firstAfter(at: number, start: (steps: number) => number): number {
  const next = start(1);
  return next > at ? next : start(2);
}

/** Cuts a range at the hours, days, weeks or months of its zone; the first and last interval may be partial. */
export function cutRange({ from, to, zone }: Range, unit: TimeUnit | undefined): Intervals {
  if (unit === undefined) return { edges: [from, to], names: [''] };
  const edges = [from];
  let at = from;
  while (at < to) {
    at = Math.min(NEXT[unit](zone, at), to);
    edges.push(at);
    if (edges.length > MAX_INTERVALS + 1)
      throw wrong(
        'by',
        `has more than ${MAX_INTERVALS} intervals by ${unit}; choose a shorter range or a longer unit.`,
      );
  }
  return { edges, names: edges.slice(0, -1).map((start) => nameInterval(zone, start, unit)) };
}

function nameInterval(zone: string, start: number, unit: TimeUnit): string {
  if (unit === 'hour') return formatHour(zone, start);
  const wall = wallAt(zone, start);
  if (unit === 'week') return nameWeek(wall);
  return new Date(wall).toISOString().slice(0, unit === 'day' ? 10 : 7);
}

/** Week of ISO 8601, such as `2026-W48`: it belongs to the year of its Thursday. */
function nameWeek(wall: number): string {
  const day = Math.floor(wall / DAY_MS);
  // 1970-01-01 was a Thursday.
  const thursday = Math.floor((day + 3) / 7) * 7 * DAY_MS;
  const year = new Date(thursday).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0, 1)) / (7 * DAY_MS)) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}

/** Returns the range before this one: as many months or days of its zone, or as many milliseconds. */
export function rangeBefore({ from, to, zone }: Range): Range {
  const [start, end] = [wallAt(zone, from), wallAt(zone, to)];
  const months = (wall: number): number => new Date(wall).getUTCFullYear() * 12 + new Date(wall).getUTCMonth();
  if (startOfMonth(zone, start) === from && startOfMonth(zone, end) === to)
    return { from: startOfMonth(zone, start, months(start) - months(end)), to: from, zone };
  const days = Math.round((end - start) / DAY_MS);
  if (startOfDay(zone, start) === from && startOfDay(zone, end) === to)
    return { from: startOfDay(zone, start, -days), to: from, zone };
  return { from: from - (to - from), to: from, zone };
}

function wrong(param: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('invalid_request', `"${param}" ${reason}`, {
    param,
    ...(cause !== undefined && { cause }),
  });
}
