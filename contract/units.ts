/**
 * Durations, money and sizes of the configuration: `30s`, `0.25`, `20mb`. Internally, whole milliseconds, nano-dollars and bytes.
 */

const UNIT_MS: Readonly<Record<string, number>> = Object.freeze({
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
});

/** Pattern of a duration, for schemas with `format: "duration"`. */
export const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Returns the milliseconds of `500ms`, `30s`, `2m`, `1h` or `30d`; throws a TypeError with examples. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text.trim());
  const unit = UNIT_MS[match?.[2] ?? ''];
  if (!match || unit === undefined) throw new TypeError(`"${text}" is not a duration: ${describeDuration(text)}`);
  return Math.round(Number(match[1]) * unit);
}

/** Returns examples for an invalid duration. */
function describeDuration(text: string): string {
  const meanings = bareDurationMeanings(text);
  if (meanings !== undefined) return `a unit is missing. ${meanings}`;
  return 'write 500ms, 30s, 2m, 1h or 30d';
}

/** Returns the two likely meanings of a duration without a unit; undefined for other texts. */
export function bareDurationMeanings(text: string): string | undefined {
  const number = text.trim();
  if (!/^\d+(?:\.\d+)?$/.test(number)) return undefined;
  return `Write "${number}s" for seconds or "${number}ms" for milliseconds`;
}

/**
 * Returns options of an `LRUCache` that limit its entries and let it grow on demand. With `max` the library allocates all entries
 * at once, which took 20 of the 67 ms of CPU at startup.
 */
export function maxEntries(max: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: max, sizeCalculation: () => 1 };
}

/** All internal amounts are whole nano-dollars: JavaScript represents 9,007,199 US dollars of them exactly. */
const NANO_PER_USD = 1_000_000_000;
const MONEY = /^(-?)(\d{1,7})(?:\.(\d{1,9}))?$/;

/**
 * Returns the whole nano-dollars of a decimal string or number of US dollars; throws a TypeError for more than nine decimals or
 * more than 9,000,000.
 */
export function parseUsd(amount: string | number): number {
  const fixed = typeof amount === 'number' ? amount.toFixed(9) : amount.trim();
  // More decimals are rejected, not rounded.
  const match = Number(fixed) === Number(amount) ? MONEY.exec(fixed) : null;
  const nano = Number(match?.[2] ?? Number.NaN) * NANO_PER_USD + Number((match?.[3] ?? '').padEnd(9, '0'));
  if (!(nano <= 9_000_000 * NANO_PER_USD))
    throw new TypeError(`"${amount}" is not an amount of US dollars: write 25, 0.50 or "12.345678", at most 9000000`);
  return match?.[1] && nano !== 0 ? -nano : nano;
}

/** Formats whole nano-dollars as an exact decimal string with two to nine decimals: `25.00`, `0.0000001`. */
export function formatUsd(nano: number | bigint): string {
  const digits = String(nano).replace('-', '').padStart(10, '0');
  return `${nano < 0 ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9).replace(/0{1,7}$/, '')}`;
}

/**
 * Converts a price in US dollars per million units to whole pico-dollars per unit: exact for up to six decimals, so sums are exact.
 */
export function picoRate(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * 1_000_000);
}

/** A million dollars: more than any call costs. It keeps sums of arbitrary prices and requests exact. */
const MAX_COST = 1_000_000_000_000_000;

/** Rounds pico-dollars up to whole nano-dollars, once, so that nothing is free. Exact up to 9,007 dollars. */
export function roundCost(pico: number): number {
  return Math.min(Math.ceil(pico / 1000), MAX_COST);
}

const UNIT_BYTES: Readonly<Record<string, number>> = Object.freeze({ b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 });
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)$/i;

/** Returns the bytes of `20mb`, `512kb` or a plain number of bytes (1kb = 1024); throws a TypeError with examples. */
export function parseSize(size: string | number): number {
  const match = SIZE.exec(String(size).trim());
  const unit = UNIT_BYTES[match?.[2]?.toLowerCase() ?? ''];
  if (match && unit !== undefined) return Math.floor(Number(match[1]) * unit);
  if (typeof size === 'number' && Number.isSafeInteger(size) && size >= 0) return size;
  throw new TypeError(`"${size}" is not a size: write 20mb, 512kb or a number of bytes`);
}

/** Returns Unix milliseconds by a monotonic clock, which ignores changes of the system clock. For windows, leases and durations. */
export const steadyNow = (): number => Math.round(performance.timeOrigin + performance.now());

/** Tags of calls in addition to their user: `name=value`, from the configured list (`tags:`). */

/** Allowed values of each name; `*` allows any. */
export type TagRules = Readonly<Record<string, readonly string[] | '*'>>;

/** Maximum number of tags per call, including those of its key. */
export const MAX_TAGS = 5;

/** Pattern of a tag name: short, because it appears in reports and rules. */
export const TAG_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** Pattern of a tag value: no comma, which separates tags, and only printable characters. */
export const TAG_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,62}[A-Za-z0-9._:/@+-])?$/;

/**
 * Name of the tag that core sets to the end user of a call with `endUsers.report`. Callers and keys cannot set it. As a tag it needs
 * no column of its own in stores.
 */
export const END_USER_TAG = 'end_user';

/** Returns the name of a tag: the text before the first `=`, or all of it. */
export function tagName(tag: string): string {
  const at = tag.indexOf('=');
  return at === -1 ? tag : tag.slice(0, at);
}

/** Returns why a tag is not allowed and which are, as a whole sentence; undefined if it is allowed. */
export function refuseTag(tag: string, rules: TagRules): string | undefined {
  const name = tagName(tag);
  const value = tag.slice(name.length + 1);
  if (name === tag || name === '') return `${quote(tag)} is not a tag. Use name=value, such as team=search.`;
  if (name === END_USER_TAG) return `The tag "${name}" is set by the gateway. Use "end_user" in place of a tag.`;
  const allowed = Object.hasOwn(rules, name) ? rules[name] : undefined;
  const names = Object.keys(rules);
  if (allowed === undefined)
    return names.length === 0
      ? 'No tags are configured. The operator adds them to "tags" in the configuration.'
      : `The tag ${quote(name)} does not exist. Use one of ${listed(names)}.`;
  if (allowed === '*')
    return TAG_VALUE.test(value)
      ? undefined
      : `${quote(value)} is not a valid value of the tag "${name}". Use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit.`;
  return allowed.includes(value)
    ? undefined
    : `${quote(value)} is not an allowed value of the tag "${name}". Use one of ${listed(allowed)}.`;
}

/** Maximum number of names in an error, and maximum length of the quoted input. */
const MAX_LISTED = 20;
const MAX_SHOWN = 80;

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return names.slice(0, MAX_LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function quote(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1)}…` : text);
}

/** Metric for operators, read on demand. */
export interface GaugeDefinition {
  /** Words of `[a-z0-9_]`, the unit last: `held_usd`. The metric is `tollgate_held_usd`. */
  readonly name: string;
  /** One line. */
  readonly help: string;
  read(): number;
}

/** Receives each operation of the store at its end: `ledger.reserve`, `counters.take`, `documents.get`. */
export type StoreWatcher = (operation: string, ms: number, isOk: boolean) => void;

/** Bytes of text per token: the usual rule for English. Languages with longer encodings are overestimated, never free. */
export const BYTES_PER_TOKEN = 4;

/** Estimates the tokens of a number of bytes. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Estimates the tokens of a text: for reservations, and for responses without reported usage. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/**
 * Returns a function that reports whether this process has used that much CPU since. Limits the effect of list pages on other
 * requests.
 */
export function cpuBudget(mostMs: number): () => boolean {
  const began = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(began);
    return user + system >= mostMs * 1000;
  };
}

/** Log for plugins: pino's call signatures, nothing more. Name fields one by one; never log whole requests. */
export interface Log {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  child(fields: object): Log;
}
