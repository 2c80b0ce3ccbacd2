/** Wall clocks of time zones: which instant a wall clock shows a time at, and what it shows at an instant. */

const DAY_MS = 86_400_000;

/** More than any zone is away from UTC, with room for what a change moves. */
const REACH_MS = 26 * 3_600_000;

const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known) return known;
  if (formats.size >= MAX_FORMATS) formats.clear();
  const made = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  formats.set(zone, made);
  return made;
}

/** Whether this is the name of an IANA time zone, such as `Europe/Berlin`; offsets such as `+01:00` are none. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** What the zone's wall clock shows at an instant, as the Unix milliseconds at which a clock of UTC shows the same. */
export function wallAt(zone: string, instant: number): number {
  if (zone === 'UTC') return instant;
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(instant)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) + mod(instant, 1000);
}

/** How far the zone's wall clock is ahead of UTC, in milliseconds. */
export function offsetAt(zone: string, instant: number): number {
  return wallAt(zone, instant) - instant;
}

/**
 * The first instant at which the zone's wall clock shows this time or, where it leaps over it, a later one. Of a time that it shows
 * twice, the first.
 */
export function instantOf(zone: string, wall: number): number {
  const before = offsetAt(zone, wall - REACH_MS);
  const after = offsetAt(zone, wall + REACH_MS);
  if (before === after) return wall - before;
  const change = changeBetween(zone, wall - REACH_MS, wall + REACH_MS, before);
  if (wall - before < change) return wall - before;
  return Math.max(wall - after, change);
}

/** The first instant after `low` at which the offset is no longer `before`. */
function changeBetween(zone: string, low: number, high: number, before: number): number {
  let last = low;
  let first = high;
  while (first - last > 1) {
    const middle = Math.floor((last + first) / 2);
    if (offsetAt(zone, middle) === before) last = middle;
    else first = middle;
  }
  return first;
}

/** The first instant of the day that begins `days` days after the one that the wall clock shows. */
export function startOfDay(zone: string, wall: number, days = 0): number {
  return instantOf(zone, (Math.floor(wall / DAY_MS) + days) * DAY_MS);
}

/** The first instant of the month that begins `months` months after the one that the wall clock shows. */
export function startOfMonth(zone: string, wall: number, months = 0): number {
  const date = new Date(wall);
  return instantOf(zone, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));
}

/** `2026-11-01T02:30` with the zone's offset then, such as `+10:30`, or `Z`. */
export function formatHour(zone: string, instant: number): string {
  const wall = wallAt(zone, instant);
  const minutes = Math.round((wall - instant) / 60_000);
  const text = new Date(wall).toISOString().slice(0, 16);
  if (zone === 'UTC') return `${text}Z`;
  const two = (value: number): string => String(Math.trunc(value)).padStart(2, '0');
  const away = Math.abs(minutes);
  return `${text}${minutes < 0 ? '-' : '+'}${two(away / 60)}:${two(away % 60)}`;
}

function mod(value: number, by: number): number {
  return ((value % by) + by) % by;
}
