import { isIP } from 'node:net';

/** Durations, money, sizes and other formats as the configuration writes them: `30s`, `0.25`, `20mb`. Inside, whole milliseconds, micro-dollars and bytes. */

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

/** A format of our own: what it accepts, and how to say so. */
interface Format {
  /** As `must be …`. */
  readonly noun: string;
  readonly hint: string;
  readonly accepts: (value: string | number) => boolean;
}

/** The formats a configuration schema may name; `money` and `size` also check numbers. */
export const FORMATS: Readonly<Record<string, Format>> = Object.freeze({
  duration: {
    noun: 'a duration',
    hint: 'Write 500ms, 30s, 2m, 1h or 30d.',
    accepts: (value) => parses(parseDuration, String(value)),
  },
  money: {
    noun: 'an amount of US dollars',
    hint: 'Write 25, 0.50 or "12.345678": at most six decimals.',
    accepts: (value) => parses(parseUsd, value),
  },
  url: {
    noun: 'an http or https URL',
    hint: 'Write it whole, such as https://api.example/v1.',
    accepts: (value) => isHttpUrl(String(value)),
  },
  size: {
    noun: 'a size',
    hint: 'Write 20mb, 512kb or a number of bytes.',
    accepts: (value) => parses(parseSize, value),
  },
  host: {
    noun: 'an address or the name of a machine',
    hint: 'Write 127.0.0.1, ::1, 0.0.0.0 or localhost, without a scheme and a port.',
    accepts: (value) => isIP(String(value)) !== 0 || /^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,252})$/.test(String(value)),
  },
  origin: {
    noun: 'the origin of a web page',
    hint: 'Write scheme and host as browsers send them, such as https://chat.example or http://localhost:3000, without a path; * allows all.',
    accepts: (value) => value === '*' || isOrigin(String(value)),
  },
  model: {
    noun: 'a model',
    hint: 'Write "provider/model", or an alias of "models".',
    accepts: (value) => typeof value === 'string' && /^[^\s\p{C}]{1,200}$/u.test(value),
  },
  'header-value': {
    noun: 'the value of a header',
    hint: 'Write visible characters of Latin script in one line.',
    accepts: (value) => typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
  },
  path: {
    noun: 'a path',
    hint: 'Write an absolute path, or one relative to the configuration file.',
    accepts: (value) => typeof value === 'string' && !value.includes('\0'),
  },
});

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

function parses<T>(parse: (value: T) => number, value: T): boolean {
  try {
    parse(value);
    return true;
  } catch {
    return false;
  }
}

/** Whether a text is what browsers send as `Origin`; extensions and apps have schemes of their own. */
function isOrigin(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/.test(text) || !URL.canParse(text)) return false;
  const { origin } = new URL(text);
  return origin === 'null' || origin === text;
}

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text) || text !== text.trim()) return false;
  const { protocol, hostname } = new URL(text);
  return (protocol === 'https:' || protocol === 'http:') && hostname !== '';
}

/** Unix milliseconds by a clock that neither jumps nor goes back when somebody sets that of the machine: for windows, leases, and how long something lasts. */
export const steadyNow = (): number => Math.round(performance.timeOrigin + performance.now());

/** What calls may be booked under beside their user: `name=value`, from the list of the configuration (`tags:`). */

/** The values that each name may have; `*` takes any. */
export type TagRules = Readonly<Record<string, readonly string[] | '*'>>;

/** The most tags that a call carries, those of its key included. */
export const MAX_TAGS = 5;

/** What a name may be: short, for it stands in reports and rules. */
export const TAG_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** What a value may be: no comma, which stands between tags, and nothing that is not printed. */
export const TAG_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,62}[A-Za-z0-9._:/@+-])?$/;

/** The tag's name: what stands before the first `=`; the whole where there is none. */
export function tagName(tag: string): string {
  const at = tag.indexOf('=');
  return at === -1 ? tag : tag.slice(0, at);
}

/** Why a tag is not allowed and which are, as a whole sentence; undefined for one that is. */
export function refuseTag(tag: string, rules: TagRules): string | undefined {
  const name = tagName(tag);
  const value = tag.slice(name.length + 1);
  if (name === tag || name === '') return `${quote(tag)} is no tag: write name=value, such as team=search.`;
  const allowed = Object.hasOwn(rules, name) ? rules[name] : undefined;
  const names = Object.keys(rules);
  if (allowed === undefined)
    return names.length === 0
      ? 'No tags are allowed here: an operator lists them under "tags" in the configuration.'
      : `There is no tag ${quote(name)} here; tags are: ${listed(names)}.`;
  if (allowed === '*')
    return TAG_VALUE.test(value)
      ? undefined
      : `${quote(value)} cannot be the value of the tag "${name}": use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit.`;
  return allowed.includes(value)
    ? undefined
    : `${quote(value)} is no value of the tag "${name}"; its values are: ${listed(allowed)}.`;
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
