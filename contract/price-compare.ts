import { priceAt } from './price-rows.ts';
import type { Prices } from './prices.ts';
import type { Price, PriceRow } from './provider.ts';

/** Comparison of prices: detects increases for any billable unit, so that callers need not learn them from a bill. */

type Rates = Omit<Price, 'tiers' | 'service_tiers' | 'fees' | 'regions'>;

const DAY_MS = 86_400_000;

/** Default of a rate that a price does not set. Undefined is unknown and charged to no one. */
const RATES: Readonly<Record<string, (rates: Rates) => number | undefined>> = Object.freeze({
  input: ({ input }) => input,
  output: ({ output }) => output,
  cached_input: ({ cached_input, input }) => cached_input ?? input,
  cache_write: ({ cache_write, input }) => cache_write ?? input,
  cache_write_1h: ({ cache_write_1h, cache_write, input }) => cache_write_1h ?? cache_write ?? input,
  audio_input: ({ audio_input }) => audio_input,
  cached_audio_input: ({ cached_audio_input, audio_input }) => cached_audio_input ?? audio_input,
  audio_output: ({ audio_output }) => audio_output,
  image_input: ({ image_input, input }) => image_input ?? input,
  cached_image_input: ({ cached_image_input, cached_input, input }) => cached_image_input ?? cached_input ?? input,
  image_output: ({ image_output }) => image_output,
  characters: ({ characters }) => characters,
  seconds: ({ seconds }) => seconds,
});

/**
 * Returns whether anything costs more after a change, now or later. Compares the most expensive hours, prompt length, tier and
 * region.
 */
export function isDearer(before: Prices, after: Prices, now = Date.now()): boolean {
  return instantsOf([before, after], now).some((at) => {
    const [was, is] = [priceAt(before, at), priceAt(after, at)];
    return was !== undefined && is !== undefined && costsMore(was, is);
  });
}

/** Returns the instants to compare: now, the start of each future row, and the ends of its hours on each day of the next week. */
function instantsOf(prices: readonly Prices[], now: number): readonly number[] {
  const rows = prices.flatMap((each): readonly PriceRow[] => (each && 'length' in each ? each : []));
  const turns = rows.flatMap(({ from, until }) =>
    [from, until].flatMap((day) => (day === undefined ? [] : Date.parse(day))),
  );
  const begins = [now, ...new Set(turns.filter((turn) => turn > now))];
  const times = [...new Set(rows.flatMap(({ hours = '' }) => hours.match(/\d\d:\d\d/g) ?? []))];
  if (times.length === 0) return begins;
  const minutes = times.map((time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3)));
  return begins.flatMap((begin) => {
    const midnight = Math.floor(begin / DAY_MS) * DAY_MS;
    const week = Array.from({ length: 8 }, (_, day) =>
      minutes.map((minute) => midnight + day * DAY_MS + minute * 60_000),
    );
    return [begin, ...week.flat().filter((at) => at >= begin)];
  });
}

function costsMore(was: Price, is: Price): boolean {
  const sizes = [0, ...[...(was.tiers ?? []), ...(is.tiers ?? [])].map(({ input_tokens_above: above }) => above + 1)];
  const tiers = Object.keys({ ...was.service_tiers, ...is.service_tiers });
  return (
    sizes.some((size) => {
      const [old, next] = [ratesFor(was, size), ratesFor(is, size)];
      return Object.values(RATES).some((read) => isMore(read(old), read(next)));
    }) ||
    tiers.some((tier) => {
      const [old, next] = [was.service_tiers?.[tier], is.service_tiers?.[tier]];
      return old !== undefined && next !== undefined && costsMore(old, next);
    }) ||
    feesAreMore(was.fees, is.fees) ||
    Object.entries(is.regions ?? {}).some(([region, factor]) => isMore(was.regions?.[region], factor))
  );
}

/** Returns whether a fee increased, or a fee per request was added. */
export function feesAreMore(was: Price['fees'] = {}, is: Price['fees'] = {}): boolean {
  return Object.entries(is).some(([unit, fee]) => isMore(was[unit] ?? (unit === 'requests' ? 0 : undefined), fee));
}

function isMore(was: number | undefined, is: number | undefined): boolean {
  return was !== undefined && is !== undefined && is > was;
}

/** Returns the rates for a prompt of this size: those of the highest matching tier. */
function ratesFor(price: Price, size: number): Rates {
  const reached = (price.tiers ?? []).filter(({ input_tokens_above: above }) => size > above);
  return reached.sort((a, b) => b.input_tokens_above - a.input_tokens_above)[0] ?? price;
}
