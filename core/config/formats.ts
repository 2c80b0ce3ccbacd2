import { parseDuration, parseUsd } from '../contract/units.ts';
import { parseSize } from './size.ts';

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
});

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
