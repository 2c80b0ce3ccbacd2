/** Durations, money and sizes as the configuration writes them: `30s`, `0.25`, `20mb`. Inside, whole milliseconds, nano-dollars and bytes. */

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
  if (!match || unit === undefined) throw new TypeError(`"${text}" is not a duration: ${describeDuration(text)}`);
  return Math.round(Number(match[1]) * unit);
}

/** Correct forms for a text that is not a duration; a bare number shows its two likely readings. */
function describeDuration(text: string): string {
  const number = text.trim();
  if (/^\d+(?:\.\d+)?$/.test(number))
    return `a unit is missing. Write "${number}s" for seconds or "${number}ms" for milliseconds`;
  return 'write 500ms, 30s, 2m, 1h or 30d';
}

/**
 * The bound of an `LRUCache` by its entries that lets it grow as it fills. By `max` the library lays them all out when it is made, which
 * was 20 of the 67 ms of CPU of a start.
 */
export function maxEntries(max: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: max, sizeCalculation: () => 1 };
}

/** All amounts inside are whole nano-dollars: JavaScript counts 9,007,199 US dollars of them exactly. */
const NANO_PER_USD = 1_000_000_000;
const MONEY = /^(-?)(\d{1,7})(?:\.(\d{1,9}))?$/;

/** Whole nano-dollars of a decimal string or number of US dollars; throws a TypeError for more than nine decimals or 9,000,000. */
export function parseUsd(amount: string | number): number {
  const fixed = typeof amount === 'number' ? amount.toFixed(9) : amount.trim();
  // What has more decimals is refused, not rounded.
  const match = Number(fixed) === Number(amount) ? MONEY.exec(fixed) : null;
  const nano = Number(match?.[2] ?? Number.NaN) * NANO_PER_USD + Number((match?.[3] ?? '').padEnd(9, '0'));
  if (!(nano <= 9_000_000 * NANO_PER_USD))
    throw new TypeError(`"${amount}" is not an amount of US dollars: write 25, 0.50 or "12.345678", at most 9000000`);
  return match?.[1] && nano !== 0 ? -nano : nano;
}

/** Whole nano-dollars as a decimal string, exact, with two to nine decimals: `25.00`, `0.0000001`. */
export function formatUsd(nano: number | bigint): string {
  const digits = String(nano).replace('-', '').padStart(10, '0');
  return `${nano < 0 ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9).replace(/0{1,7}$/, '')}`;
}

/** Whole pico-dollars a unit of a price in US dollars per million units: exact for prices with up to six decimals, so that sums are. */
export function picoRate(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * 1_000_000);
}

/** A million dollars: more than any call costs, so that sums of what a price or a caller makes up stay exact. */
const MAX_COST = 1_000_000_000_000_000;

/** What a call is charged: pico-dollars as whole nano-dollars, rounded once, upwards, so that nothing is free. Exact to 9,007 dollars. */
export function roundCost(pico: number): number {
  return Math.min(Math.ceil(pico / 1000), MAX_COST);
}

const UNIT_BYTES: Readonly<Record<string, number>> = Object.freeze({ b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 });
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)$/i;

/** Bytes of `20mb`, `512kb` or a plain number of bytes (1kb = 1024); throws a TypeError that shows the forms. */
export function parseSize(size: string | number): number {
  const match = SIZE.exec(String(size).trim());
  const unit = UNIT_BYTES[match?.[2]?.toLowerCase() ?? ''];
  if (match && unit !== undefined) return Math.floor(Number(match[1]) * unit);
  if (typeof size === 'number' && Number.isSafeInteger(size) && size >= 0) return size;
  throw new TypeError(`"${size}" is not a size: write 20mb, 512kb or a number of bytes`);
}

/** Unix milliseconds by a clock that neither jumps nor goes back when that of the machine is set: for windows, leases, and how long something lasts. */
export const steadyNow = (): number => Math.round(performance.timeOrigin + performance.now());

/** What calls may be booked under in addition to their user: `name=value`, from the list of the configuration (`tags:`). */

/** The values that each name may have; `*` takes any. */
export type TagRules = Readonly<Record<string, readonly string[] | '*'>>;

/** The most tags that a call carries, those of its key included. */
export const MAX_TAGS = 5;

/** What a name may be: short, for it stands in reports and rules. */
export const TAG_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** What a value may be: no comma, which stands between tags, and nothing that is not printed. */
export const TAG_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,62}[A-Za-z0-9._:/@+-])?$/;

/** The tag's name: what stands before the first `=`; all of it where there is none. */
export function tagName(tag: string): string {
  const at = tag.indexOf('=');
  return at === -1 ? tag : tag.slice(0, at);
}

/** Why a tag is not allowed and which are, as a whole sentence; undefined for one that is. */
export function refuseTag(tag: string, rules: TagRules): string | undefined {
  const name = tagName(tag);
  const value = tag.slice(name.length + 1);
  if (name === tag || name === '') return `${quote(tag)} is not a tag. Use name=value, such as team=search.`;
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

/** How many names an error lists, and how much it shows of what was sent. */
const MAX_LISTED = 20;
const MAX_SHOWN = 80;

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return names.slice(0, MAX_LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function quote(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1)}…` : text);
}

/** A number that operators see, read when somebody looks. */
export interface Figure {
  /** Words of `[a-z0-9_]`, its unit last: `held_usd`. Among the metrics it is `tollgate_held_usd`. */
  readonly name: string;
  /** One line. */
  readonly help: string;
  read(): number;
}

/** Told of each operation of the store when it is over: `ledger.reserve`, `counters.take`, `documents.get`. */
export type StoreWatcher = (operation: string, ms: number, isOk: boolean) => void;

/** Bytes of text that count as one token: the usual rule for English. Languages with longer encodings come out dearer, never free. */
export const BYTES_PER_TOKEN = 4;

/** The tokens that this many bytes of text are, estimated. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** The tokens of a text, estimated: for reservations, and for responses whose provider reported no usage. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Makes what says whether this process has used so much CPU since: for lists, whose pages take no more from others than that. */
export function cpuBudget(mostMs: number): () => boolean {
  const began = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(began);
    return user + system >= mostMs * 1000;
  };
}

/** What plugins log with: pino's call forms, nothing more. Fields are named one by one; never log whole requests. */
export interface Log {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  child(fields: object): Log;
}
