import { computed, effect, signal } from '@preact/signals';

/** Formats of values, the same on every page. */

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : NUMBER.format(value);
}

const CENTS = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat('en', { minimumFractionDigits: 4, maximumFractionDigits: 4 });
/** Smallest amount that four decimals show. */
const LEAST = 0.00005;

/** Formats dollars in cents; less than a cent with four decimals. {@link exactUsd} has all decimals. */
export function usd(text: string | null | undefined): string {
  if (text === null || text === undefined) return '–';
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value)) return text;
  const sign = value < 0 ? '-' : '';
  const size = Math.abs(value);
  if (size > 0 && size < LEAST) return `${sign}<$0.0001`;
  return `${sign}$${size === 0 || size >= 0.01 ? CENTS.format(size) : SMALL.format(size)}`;
}

/** Formats dollars with all decimals, as the gateway sends them. */
export function exactUsd(text: string): string {
  const [, sign = '', whole = '', rest = ''] = /^(-?)(\d+)(\.\d+)?$/.exec(text) ?? [];
  return whole === '' ? text : `${sign}$${whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')}${rest}`;
}

/** Text for an unknown cost: nothing was charged, or the reserved amount. */
export function unknownCost({ cost_usd: charged }: { readonly cost_usd: string | null }): string {
  return charged === null ? 'unknown' : `unknown, ${usd(charged)} reserved`;
}

export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms >= 60_000) return `${(ms / 60_000).toFixed(1)} min`;
  return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${Math.round(ms)} ms`;
}

export function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.1 ? 1 : 0)} %`;
}

/** Time zone of this browser. */
const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone;
const KEPT = 'tollgate-zone';

/** Clock of all pages: that of this browser, or UTC. */
export const isUtc = signal(localStorage.getItem(KEPT) === 'UTC');
effect(() => localStorage.setItem(KEPT, isUtc.value ? 'UTC' : 'local'));

/** Time zone of all pages. */
export const zone = computed(() => (isUtc.value ? 'UTC' : LOCAL));

type Style = 'clock' | 'minute' | 'day' | 'whole';
const STYLES: Readonly<Record<Style, Intl.DateTimeFormatOptions>> = Object.freeze({
  clock: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  minute: { hour: '2-digit', minute: '2-digit' },
  day: { day: '2-digit', month: 'short' },
  whole: { dateStyle: 'medium', timeStyle: 'medium' },
});
const formats = new Map<string, Intl.DateTimeFormat>();

function format(style: Style, date: Date): string {
  const key = `${style} ${zone.value}`;
  const known = formats.get(key) ?? new Intl.DateTimeFormat('en-GB', { ...STYLES[style], timeZone: zone.value });
  formats.set(key, known);
  return known.format(date);
}

/** Hour and minute. */
export function clock(iso: string): string {
  return format('minute', new Date(iso));
}

/** Time of day; with the day if it is another one. */
export function time(iso: string | null | undefined): string {
  if (!iso) return '–';
  const date = new Date(iso);
  const ofDay = format('clock', date);
  return day(iso) === day(new Date().toISOString()) ? ofDay : `${format('day', date)} ${ofDay}`;
}

/** Time with day and zone. */
export function wholeTime(iso: string): string {
  return `${format('whole', new Date(iso))} ${zone.value}`;
}

/** Day of a time, such as `2026-11-30`. */
export function day(iso: string | null | undefined): string {
  return iso ? new Intl.DateTimeFormat('sv', { timeZone: zone.value }).format(new Date(iso)) : '–';
}

/** First instant of a day such as `2026-11-30`, or of a later one, as ISO 8601. */
export function startOfDay(text: string, later = 0): string {
  const [year = 0, month = 1, date = 1] = text.split('-').map(Number);
  const at = zone.value === 'UTC' ? Date.UTC(year, month - 1, date + later) : new Date(year, month - 1, date + later);
  return new Date(at).toISOString();
}

/** Day and minute of a time in the chosen zone, as a field for a time takes them: `2026-11-30T08:15`. */
export function wallClock(iso: string): string {
  const options = { dateStyle: 'short', timeStyle: 'short', timeZone: zone.value } as const;
  return new Intl.DateTimeFormat('sv', options).format(new Date(iso)).replace(' ', 'T');
}

/** Instant of a {@link wallClock}, as ISO 8601; the text itself if it is not one. */
export function instantOf(text: string): string {
  const at = new Date(zone.value === 'UTC' ? `${text}Z` : text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** Duration until a time, such as `in 4 min` or `in 7 days`. */
export function until(iso: string): string {
  const minutes = Math.round((Date.parse(iso) - Date.now()) / 60_000);
  if (minutes < 1) return 'in a moment';
  if (minutes >= 2880) return `in ${Math.round(minutes / 1440)} days`;
  return minutes < 120 ? `in ${minutes} min` : `in ${Math.round(minutes / 60)} h`;
}
