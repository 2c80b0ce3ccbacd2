/** Durations and money as the configuration writes them: `30s`, `2m`, `0.25`. Inside, whole milliseconds and micro-dollars. */

const UNIT_MS: Readonly<Record<string, number>> = Object.freeze({
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
});

/** The pattern of a duration, for schemas with `format: "duration"`. */
export const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Milliseconds of `500ms`, `30s`, `2m`, `1h` or `30d`; throws a TypeError that shows the forms. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text.trim());
  const unit = UNIT_MS[match?.[2] ?? ''];
  if (!match || unit === undefined) throw new TypeError(`"${text}" is not a duration: write 500ms, 30s, 2m, 1h or 30d`);
  return Math.round(Number(match[1]) * unit);
}

const MICRO = 1_000_000;
const MONEY = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/;

/** Whole micro-dollars of a decimal string or number of US dollars; throws a TypeError for more than six decimals. */
export function parseUsd(amount: string | number): number {
  const text = typeof amount === 'number' ? numberText(amount) : amount.trim();
  const match = MONEY.exec(text);
  if (!match) throw new TypeError(`"${amount}" is not an amount of US dollars: write 25, 0.50 or "12.345678"`);
  const micro = Number(match[2]) * MICRO + Number((match[3] ?? '').padEnd(6, '0'));
  return match[1] && micro !== 0 ? -micro : micro;
}

/** Micro-dollars as a decimal string with two to six decimals: `25.00`, `0.000125`. */
export function formatUsd(micro: number): string {
  const whole = Math.trunc(Math.abs(micro) / MICRO);
  const rest = String(Math.abs(micro) % MICRO)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${micro < 0 ? '-' : ''}${whole}.${rest}`;
}

function numberText(amount: number): string {
  const text = String(amount);
  return text.includes('e') ? amount.toFixed(6) : text;
}
