import { isIP, isIPv4, isIPv6 } from 'node:net';
import { parseDuration, parseSize, parseUsd } from './units.ts';

/** Format of a schema: its check and its error text. */
interface Format {
  /** Completes `must be …`. */
  readonly noun: string;
  readonly hint: string;
  readonly accepts: (value: string | number) => boolean;
}

const format = (noun: string, hint: string, accepts: Format['accepts']): Format => ({ noun, hint, accepts });

/** Formats of JSON Schema ignore numbers. */
const standard = (noun: string, hint: string, accepts: (text: string) => boolean): Format =>
  format(noun, hint, (value) => typeof value !== 'string' || accepts(value));

/** Checked formats of JSON Schema, the same in all schemas. Every expression is linear. */
export const STANDARD_FORMATS = Object.freeze({
  date: standard('a date', 'Write 2026-01-31.', isDate),
  'date-time': standard('a date and time', 'Write 2026-01-31T12:00:00Z, or +02:00 for Z.', isDateTime),
  email: standard('an email address', 'Write name@host.example.', (text) => /^[^\s@]+@[^\s@]+$/.test(text)),
  hostname: standard('a host name', 'Write api.example, without a scheme and a port.', (text) => HOSTNAME.test(text)),
  ipv4: standard('an IPv4 address', 'Write 192.0.2.1.', isIPv4),
  ipv6: standard('an IPv6 address', 'Write 2001:db8::1.', (text) => isIPv6(text) && !text.includes('%')),
  regex: standard('a regular expression', 'Write it as in JavaScript: ^[a-z]+$.', (text) => parses(readRegex, text)),
  uri: standard('a URI', 'Write it with its scheme, such as https://api.example/v1.', isUri),
  'uri-reference': standard('a URI or a part of one', 'Write /v1 or https://api.example/v1.', isUriReference),
  uuid: standard('a UUID', 'Write 123e4567-e89b-12d3-a456-426614174000.', (text) => UUID.test(text)),
});

/** All formats of schemas; `money` and `size` also check numbers. */
export const FORMATS: Readonly<Record<string, Format>> = Object.freeze({
  ...STANDARD_FORMATS,
  duration: format('a duration', 'Write 500ms, 30s, 2m, 1h or 30d.', (value) => parses(parseDuration, String(value))),
  money: format('an amount of US dollars', 'Write 25, 0.50 or "12.345678": up to nine decimals and 9000000.', (value) =>
    parses(parseUsd, value),
  ),
  url: format('an http or https URL', 'Use the whole URL, such as https://api.example/v1.', (value) =>
    isHttpUrl(String(value)),
  ),
  size: format('a size', 'Write 20mb, 512kb or a number of bytes.', (value) => parses(parseSize, value)),
  host: format(
    'an IP address or a host name',
    'Write 127.0.0.1, ::1, 0.0.0.0 or localhost, without a scheme and a port.',
    (value) => isIP(String(value)) !== 0 || /^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,252})$/.test(String(value)),
  ),
  'base-path': format(
    'a base path',
    'Use / for none, or /llm or /ai/llm: letters, digits, ".", "_", "~" and "-", without a trailing slash, scheme or host.',
    (value) => value === '/' || isBasePath(String(value)),
  ),
  origin: format(
    'the origin of a web page',
    'Write scheme and host as browsers send them, such as https://chat.example or http://localhost:3000, without a path; * allows all.',
    (value) => value === '*' || isOrigin(String(value)),
  ),
  model: format(
    'a model',
    'Write "provider/model", or an alias of "models".',
    (value) => typeof value === 'string' && /^[^\s\p{C}]{1,200}$/u.test(value),
  ),
  'header-value': format(
    'the value of a header',
    'Write visible characters of Latin script in one line.',
    (value) => typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
  ),
  path: format(
    'a path',
    'Write an absolute path, or one relative to the configuration file.',
    (value) => typeof value === 'string' && !value.includes('\0'),
  ),
});

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
const HOSTNAME = /^(?=.{1,253}$)(?:(?:^|\.)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)+$/i;
const NOT_IN_URIS = /[\s\p{C}<>"\\^`{|}]/u;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

function isBasePath(text: string): boolean {
  return (
    text.length <= 200 && /^(?:\/[\w.~-]+)+$/.test(text) && !text.split('/').some((part) => /^\.{1,2}$/.test(part))
  );
}

function isDate(text: string): boolean {
  const time = Date.parse(text);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  return DATE_TIME.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text));
}

function readRegex(text: string): RegExp {
  return new RegExp(text, 'u');
}

function isUri(text: string): boolean {
  return /^[a-z][a-z\d+.-]*:/i.test(text) && URL.canParse(text) && !NOT_IN_URIS.test(text);
}

function isUriReference(text: string): boolean {
  return URL.canParse(text, 'https://base.example') && !NOT_IN_URIS.test(text);
}

function parses<T>(parse: (value: T) => unknown, value: T): boolean {
  try {
    parse(value);
    return true;
  } catch {
    return false;
  }
}

/** Returns whether a text is an `Origin` of browsers; extensions and apps have schemes of their own. */
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
