import { firstInstantOf, wallAt } from '../../../core/operators.ts';

/** Days, months and hours of a zone's wall clock, for reports. */

const DAY_MS = 86_400_000;

/** The first instant of the day that begins `days` days after the one that the wall clock shows. */
export function startOfDay(zone: string, wall: number, days = 0): number {
  return firstInstantOf(zone, (Math.floor(wall / DAY_MS) + days) * DAY_MS);
}

/** The first instant of the month that begins `months` months after the one that the wall clock shows. */
export function startOfMonth(zone: string, wall: number, months = 0): number {
  const date = new Date(wall);
  return firstInstantOf(zone, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));
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
