import { type BudgetRule, WEEKDAYS } from './budgets.ts';
import { changeBetween, firstInstantOf, offsetAt, wallAt } from './zone-clock.ts';

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
