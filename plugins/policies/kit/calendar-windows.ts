import { type BudgetRule, type BudgetValues, formatUsd } from '../../../contract/index.ts';
import { WEEKDAYS } from '../../../contract/operators.ts';

/** Name of the records with the first key of a rotation chain, by the id of the key. */
export const KEY_ORIGINS = 'key-origins';

/** First of the keys that replaced one another; their spending is counted under it. */
export interface KeyOrigin {
  readonly first: string;
}

/** Budget in the form of files and requests, with amounts as decimal strings. */
export function writeBudget({
  amount,
  soft,
  startsOn,
  name,
  every,
  timezone,
  endUser,
  ...filter
}: BudgetRule): BudgetValues {
  return {
    name,
    amount_usd: formatUsd(amount),
    every,
    timezone,
    ...(startsOn !== undefined && { starts_on: startsOn }),
    ...(soft !== undefined && { soft_usd: formatUsd(soft) }),
    ...filter,
    ...(endUser !== undefined && { end_user: endUser }),
  };
}

/** Calendar periods of a budget. */
export type WindowRule = Pick<BudgetRule, 'every' | 'timezone' | 'startsOn'>;

/** Period in Unix milliseconds: from `start` to before `end`. For `total` both are infinite. */
export interface CalendarWindow {
  readonly start: number;
  readonly end: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const ALWAYS: CalendarWindow = Object.freeze({
  start: Number.NEGATIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
});

/**
 * Window that contains an instant. Days, weeks and months begin with the first instant of their first day, at whatever
 * time on a day of a clock change. They end where the next ones begin. An hour begins when the clock reaches a full
 * hour or changes to another hour. An hour that occurs twice is two windows; a half hour that occurs twice makes its
 * hour longer.
 */
export function windowAt({ every, timezone, startsOn }: WindowRule, instant: number): CalendarWindow {
  if (every === 'total') return ALWAYS;
  if (every === 'hour') return { start: hourStart(timezone, instant), end: hourEnd(timezone, instant) };
  const { first, next } = CALENDAR[every];
  let from = first(wallAt(timezone, instant), startsOn);
  let end = firstInstantOf(timezone, next(from));
  // A clock set back over midnight shows the day before, whose window is over.
  while (end <= instant) {
    from = next(from);
    end = firstInstantOf(timezone, next(from));
  }
  return { start: firstInstantOf(timezone, from), end };
}

/** Start of the period that contains a wall clock time, and of the next one; both as wall clock times. */
const CALENDAR: Readonly<
  Record<
    'day' | 'week' | 'month',
    {
      readonly first: (wall: number, startsOn: WindowRule['startsOn']) => number;
      readonly next: (first: number) => number;
    }
  >
> = Object.freeze({
  day: { first: startOfDay, next: (first) => first + DAY_MS },
  week: {
    first(wall, startsOn) {
      const day = startOfDay(wall);
      const weekday = WEEKDAYS.indexOf(typeof startsOn === 'string' ? startsOn : 'monday');
      return day - ((new Date(day).getUTCDay() - weekday + 7) % 7) * DAY_MS;
    },
    next: (first) => first + 7 * DAY_MS,
  },
  month: {
    first(wall, startsOn) {
      const date = new Date(wall);
      const day = typeof startsOn === 'number' ? startsOn : 1;
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - (date.getUTCDate() < day ? 1 : 0), day);
    },
    next(first) {
      const date = new Date(first);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate());
    },
  },
});

function startOfDay(wall: number): number {
  return Math.floor(wall / DAY_MS) * DAY_MS;
}

function hourStart(zone: string, instant: number): number {
  const offset = offsetAt(zone, instant);
  const full = Math.floor((instant + offset) / HOUR_MS) * HOUR_MS - offset;
  if (offsetAt(zone, full) === offset) return full;
  const change = changeBetween(zone, full, instant);
  return isSameHour(zone, change) ? hourStart(zone, change - 1) : change;
}

function hourEnd(zone: string, instant: number): number {
  const offset = offsetAt(zone, instant);
  const full = Math.floor((instant + offset) / HOUR_MS) * HOUR_MS + HOUR_MS - offset;
  if (offsetAt(zone, full) === offset) return full;
  const change = changeBetween(zone, instant, full);
  return isSameHour(zone, change) ? hourEnd(zone, change) : change;
}

/** True if the clock, after a change, continues within the same hour, and not at its beginning. */
function isSameHour(zone: string, change: number): boolean {
  const wall = wallAt(zone, change);
  return wall % HOUR_MS !== 0 && Math.floor(wallAt(zone, change - 1) / HOUR_MS) === Math.floor(wall / HOUR_MS);
}

/** Ledger id of everything that a key and its predecessors have ever spent: a budget without an end. */
export function keyBudgetId(limitsId: string): string {
  return `key:${limitsId}`;
}

/** Ledger id of everything that a user has ever spent over all keys: a budget without an end. */
export function userBudgetId(userId: string): string {
  return `user:${userId}`;
}

/** Ledger prefix of a key's budgets; keys that replaced one another share that of the first. */
export function keyWindowPrefix(limitsId: string): string {
  return `key-window:${limitsId}`;
}

/** Ledger id of a budget in one of its windows. A budget with a changed period starts again. */
export function windowId(
  prefix: string,
  { name, every }: Pick<BudgetRule, 'name' | 'every'>,
  { start }: CalendarWindow,
): string {
  const id = `${prefix}:${name}:${every}`;
  return start === Number.NEGATIVE_INFINITY ? id : `${id}@${start}`;
}

/**
 * Wall clocks of IANA time zones, by Intl. A wall clock time is the Unix milliseconds at which a clock in UTC shows the
 * same.
 */

const MINUTE_MS = 60_000;

/** Larger than any zone's offset from UTC, and smaller than the time between two changes of an offset. */
const FURTHEST_MS = 15 * HOUR_MS;

const FORMATS = new Map<string, Intl.DateTimeFormat>();
/** Maximum cached formatters: operators use a few zones, and a formatter takes some kilobytes. */
const MAX_FORMATS = 200;

/** Offset of a zone from UTC at an instant, in milliseconds. */
export function offsetAt(zone: string, instant: number): number {
  if (zone === 'UTC') return 0;
  const second = Math.floor(instant / 1000) * 1000;
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(zone).formatToParts(second)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: shown = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, shown) - second;
}

/** Wall clock time of a zone at an instant. */
export function wallAt(zone: string, instant: number): number {
  return instant + offsetAt(zone, instant);
}

/** First instant at which a zone's clock shows `wall` or later; the end of the gap if it was skipped. */
export function firstInstantOf(zone: string, wall: number): number {
  const low = wall - FURTHEST_MS;
  const high = wall + FURTHEST_MS;
  const before = offsetAt(zone, low);
  const after = offsetAt(zone, high);
  if (before === after) return wall - before;
  const change = changeBetween(zone, low, high);
  if (wall - before < change) return wall - before;
  return Math.max(wall - after, change);
}

/** Instant after `low`, up to `high`, from which the offset of `high` applies. */
function changeBetween(zone: string, low: number, high: number): number {
  const offset = offsetAt(zone, high);
  // Offsets change on whole minutes.
  let former = Math.floor(low / MINUTE_MS);
  let latter = Math.ceil(high / MINUTE_MS);
  while (latter - former > 1) {
    const middle = Math.floor((former + latter) / 2);
    if (offsetAt(zone, middle * MINUTE_MS) === offset) latter = middle;
    else former = middle;
  }
  return latter * MINUTE_MS;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = FORMATS.get(zone);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-US-u-ca-iso8601-nu-latn', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (FORMATS.size >= MAX_FORMATS) FORMATS.clear();
  FORMATS.set(zone, made);
  return made;
}
