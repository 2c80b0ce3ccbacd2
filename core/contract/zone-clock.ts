/** Wall clocks of IANA time zones, by Intl. A wall clock's time is told as the Unix milliseconds at which a clock in UTC shows the same. */

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

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
export function changeBetween(zone: string, low: number, high: number): number {
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
