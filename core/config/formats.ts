import { parseDuration, parseUsd } from '../contract/units.ts';

/** A format of our own: what it accepts, and how to say so. */
export interface Format {
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

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text) || text !== text.trim()) return false;
  const { protocol, hostname } = new URL(text);
  return (protocol === 'https:' || protocol === 'http:') && hostname !== '';
}
