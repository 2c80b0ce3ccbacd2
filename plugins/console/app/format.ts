/** Formats of values, the same on every page. */

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : NUMBER.format(value);
}

/** Formats dollars exactly as the gateway sends them: grouped, never rounded. */
export function usd(text: string | null | undefined): string {
  if (text === null || text === undefined) return '–';
  const [, sign = '', whole = '', rest = ''] = /^(-?)(\d+)(\.\d+)?$/.exec(text) ?? [];
  return whole === '' ? text : `${sign}$${whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')}${rest}`;
}

/** Text for an unknown cost: nothing was charged, or the reserved amount. */
export function unknownCost({ cost_usd: charged }: { readonly cost_usd: string | null }): string {
  return charged === null ? 'not known' : `not known, ${usd(charged)} held`;
}

export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms >= 60_000) return `${(ms / 60_000).toFixed(1)} min`;
  return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${Math.round(ms)} ms`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' });
const WHOLE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** Time by this browser's clock; with the day if it is another one. */
export function time(iso: string | null | undefined): string {
  if (!iso) return '–';
  const date = new Date(iso);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? CLOCK.format(date) : `${DAY.format(date)} ${CLOCK.format(date)}`;
}

export function wholeTime(iso: string): string {
  return WHOLE.format(new Date(iso));
}

export function day(iso: string | null | undefined): string {
  return iso ? new Date(iso).toISOString().slice(0, 10) : '–';
}

/** Duration until a time, such as `in 4 min` or `in 7 days`. */
export function until(iso: string): string {
  const minutes = Math.round((Date.parse(iso) - Date.now()) / 60_000);
  if (minutes < 1) return 'in a moment';
  if (minutes >= 2880) return `in ${Math.round(minutes / 1440)} days`;
  return minutes < 120 ? `in ${minutes} min` : `in ${Math.round(minutes / 60)} h`;
}

export function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.1 ? 1 : 0)} %`;
}
