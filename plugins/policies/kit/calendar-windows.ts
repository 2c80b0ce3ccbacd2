import { type BudgetRule, type BudgetValues, formatUsd } from '../../../contract/index.ts';
import { WEEKDAYS } from '../../../contract/operators.ts';

/** The name of the records that say of rotated keys which was the first, by the id of the key. */
export const KEY_ORIGINS = 'key-origins';

/** The first of the keys that replaced one another: what they spend is counted under it. */
export interface KeyOrigin {
  readonly first: string;
}

/** A budget as files and requests write it, amounts as decimal strings. */
export function writeBudget({ amount, soft, startsOn, name, every, timezone, ...filter }: BudgetRule): BudgetValues {
  return {
    ...{ name, amount_usd: formatUsd(amount), every, timezone },
    ...(startsOn !== undefined && { starts_on: startsOn }),
    ...(soft !== undefined && { soft_usd: formatUsd(soft) }),
    ...filter,
  };
}

/** Which calendar periods a budget is counted in. */
export type WindowRule = Pick<BudgetRule, 'every' | 'timezone' | 'startsOn'>;

/** A period as instants, in Unix milliseconds: from `start` to before `end`. Of `total` both are infinite. */
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
 * The window that an instant is in. Days, weeks and months begin with the first instant of their first day, whichever time that
 * is on a day when clocks change, and end where the next ones begin. An hour begins whenever the clock comes to a full hour or is set
 * into another one: an hour that is shown twice is two windows, and half an hour that is shown twice makes its hour longer.
 */
export function windowAt({ every, timezone, startsOn }: WindowRule, instant: number): CalendarWindow {
  if (every === 'total') return ALWAYS;
  if (every === 'hour') return { start: hourStart(timezone, instant), end: hourEnd(timezone, instant) };
  const { first, next } = CALENDAR[every];
  let from = first(wallAt(timezone, instant), startsOn);
  let end = firstInstantOf(timezone, next(from));
  // A clock that was set back over midnight shows the day before, whose window is over.
  while (end <= instant) {
    from = next(from);
    end = firstInstantOf(timezone, next(from));
  }
  return { start: firstInstantOf(timezone, from), end };
}

/** The first moment of the period that a wall clock's time is in, and of the one after it; both as a wall clock shows them. */
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

/** Whether the clock goes on in the hour that it was in before it was set, and not at its beginning. */
function isSameHour(zone: string, change: number): boolean {
  const wall = wallAt(zone, change);
  return wall % HOUR_MS !== 0 && Math.floor(wallAt(zone, change - 1) / HOUR_MS) === Math.floor(wall / HOUR_MS);
}

/** The ledger's id of all that a key, and the keys that it replaced, have ever spent: a budget without an end. */
export function keyBudgetId(limitsId: string): string {
  return `key:${limitsId}`;
}

/** The ledger's id of all that a user has ever spent over all keys: a budget without an end. */
export function userBudgetId(userId: string): string {
  return `user:${userId}`;
}

/** What the ledger counts the budgets of a key under; of keys that replaced one another, by the first of them. */
export function keyWindowPrefix(limitsId: string): string {
  return `key-window:${limitsId}`;
}

/** The ledger's id of a budget in one of its windows. One that is counted by another period begins anew. */
export function windowId(
  prefix: string,
  { name, every }: Pick<BudgetRule, 'name' | 'every'>,
  { start }: CalendarWindow,
): string {
  const id = `${prefix}:${name}:${every}`;
  return start === Number.NEGATIVE_INFINITY ? id : `${id}@${start}`;
}

/** Wall clocks of IANA time zones, by Intl. A wall clock's time is told as the Unix milliseconds at which a clock in UTC shows the same. */

const MINUTE_MS = 60_000;

/** No zone is further from UTC, and no two changes of its offset are nearer to one another. */
const FURTHEST_MS = 15 * HOUR_MS;

const FORMATS = new Map<string, Intl.DateTimeFormat>();
/** Operators name a few zones; a formatter is some kilobytes. */
const MAX_FORMATS = 200;

/** How far a zone's clock is ahead of UTC at an instant, in milliseconds. */
export function offsetAt(zone: string, instant: number): number {
  if (zone === 'UTC') return 0;
  const second = Math.floor(instant / 1000) * 1000;
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(zone).formatToParts(second)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: shown = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, shown) - second;
}

/** What a zone's clock shows at an instant. */
export function wallAt(zone: string, instant: number): number {
  return instant + offsetAt(zone, instant);
}

/** The first instant at which a zone's clock shows `wall` or later: where that was skipped, the end of the gap. */
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

/** The instant after `low`, and no later than `high`, from which the offset of `high` holds. */
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
