/**
 * JSON with numbers that a double would change: `12345678901234567890`, `1.10`, `1e5`. The value is that of `JSON.parse`. It also
 * keeps the text of these numbers, and `writeJson` writes them as they came.
 */
import { exceedsBounds } from './json.ts';

/** Number that may change: one with 16 digits, a fraction that ends in zero, or an exponent. Numbers in strings match too. */
const UNSTABLE = /[:[,]\s*-?\d+(?:\d{15}|\.\d*0(?!\d)|\.\d{15}|\.?\d*[eE])/;

/** Field with arguments of a tool as an object. */
const ARGUMENTS = /"(?:input|args|arguments)"\s*:\s*\{/;

/** Strings, which are skipped, and numbers. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;

/** Begins a text in place of a number. No sender knows it. */
const MARK = `number-${crypto.randomUUID()}:`;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Maximum depth at which numbers are kept: that of a vendor's response. */
const MAX_DEPTH = 128;

const writing = { isOn: false, hasMarks: false };

/** Like `parseJson`, and keeps the text of numbers for `writeJson`. For arguments of tools. */
export function parseExact(text: string): unknown {
  try {
    return exceedsBounds(text) ? undefined : parseNumbers(text);
  } catch {
    return undefined;
  }
}

/** Like `JSON.parse` for a whole body. Keeps the text of numbers if there are arguments of tools. */
export function parseArgumentNumbers(text: string): unknown {
  return ARGUMENTS.test(text) ? parseNumbers(text) : JSON.parse(text);
}

/** Returns a value as JSON, with numbers that were kept as they came. */
export function writeJson(value: unknown): string {
  writing.isOn = true;
  let text: string;
  try {
    text = JSON.stringify(value);
  } finally {
    writing.isOn = false;
  }
  if (!writing.hasMarks) return text;
  writing.hasMarks = false;
  return text.replace(MARKED, '$1');
}

function parseNumbers(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!UNSTABLE.test(text)) return value;
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`,
  );
  if (marked !== text) keepNumbers(value, JSON.parse(marked), MAX_DEPTH);
  return value;
}

/** Gives each list and object with such numbers a `toJSON` that knows their texts. `marked` is the same value with marks. */
function keepNumbers(value: unknown, marked: unknown, depth: number): void {
  if (!isContainer(value) || !isContainer(marked) || depth === 0) return;
  const texts = new Map<string, string>();
  for (const key of Object.keys(marked)) {
    const member = marked[key];
    if (typeof member !== 'string') keepNumbers(value[key], member, depth - 1);
    else if (member.startsWith(MARK)) texts.set(key, member);
  }
  if (texts.size === 0 || Object.hasOwn(value, 'toJSON')) return;
  const toJSON = (): unknown => {
    const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    if (!writing.isOn) return copy;
    writing.hasMarks = true;
    // A number that was changed since is written as it is.
    for (const [key, text] of texts) if (Object.is(copy[key], Number(text.slice(MARK.length)))) copy[key] = text;
    return copy;
  };
  Object.defineProperty(value, 'toJSON', { value: toJSON });
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
