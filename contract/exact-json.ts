/**
 * JSON with numbers that a double would change: `12345678901234567890`, `1.10`, `1e5`. The value is that of `JSON.parse`. It also
 * keeps the text of these numbers, and `writeJson` writes them as they came.
 */
import { exceedsBounds } from './json.ts';

/** Number that may change: one with 16 digits, a fraction that ends in zero, or an exponent. Numbers in strings match too. */
const UNSTABLE = /[:[,]\s*-?\d+(?:\d{15}|\.\d*0(?!\d)|\.\d{15}|\.?\d*[eE])/;

/** Field with arguments or the result of a tool as an object, with a schema, or with a piece of streamed arguments. */
const ARGUMENTS =
  /"(?:input|args|arguments|result|response|partialArgs|partial_args|parameters|format|\w*[sS]chema)"\s*:\s*[{[]/;

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

/** Like `JSON.parse` for a whole body. Keeps the text of numbers if there are arguments, results or schemas of tools. */
export function parseArgumentNumbers(text: string): unknown {
  return ARGUMENTS.test(text) ? parseNumbers(text) : JSON.parse(text);
}

/** Like `JSON.parse` for a chat in canonical form, whose arguments are text. Keeps the text of numbers if there are schemas. */
export function parseChatNumbers(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return isContainer(value) && (value['tools'] ?? value['functions'] ?? value['response_format'])
    ? withNumbers(value, text)
    : value;
}

/** Keeps the text of numbers also in a copy of an object or list. Returns the copy. */
export function withNumbersOf<T extends object>(copy: T, source: object): T {
  const known = texts.get(source);
  if (known) for (const [key, text] of known) keepNumber(copy, key, text);
  return copy;
}

/** Keeps the text of a number that was taken from another object under another key. */
export function moveNumber(source: object, from: string, holder: object, to: string | number): void {
  const text = texts.get(source)?.get(from);
  if (text !== undefined) keepNumber(holder, String(to), text);
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
  return withNumbers(JSON.parse(text), text);
}

/** Keeps the text of the numbers of a value, which was parsed from `text`. */
function withNumbers(value: unknown, text: string): unknown {
  if (!UNSTABLE.test(text)) return value;
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`,
  );
  if (marked !== text) keepNumbers(value, JSON.parse(marked), MAX_DEPTH);
  return value;
}

/** `marked` is the same value with marks. */
function keepNumbers(value: unknown, marked: unknown, depth: number): void {
  if (!isContainer(value) || !isContainer(marked) || depth === 0) return;
  for (const key of Object.keys(marked)) {
    const member = marked[key];
    if (typeof member !== 'string') keepNumbers(value[key], member, depth - 1);
    else if (member.startsWith(MARK)) keepNumber(value, key, member);
  }
}

/** Texts of numbers, with their marks, by the object or list that has them. */
const texts = new WeakMap<object, Map<string, string>>();

/** Gives an object or list a `toJSON` that knows the texts of its numbers. */
function keepNumber(holder: object, key: string, text: string): void {
  const known = texts.get(holder);
  if (known) known.set(key, text);
  else if (!Object.hasOwn(holder, 'toJSON')) {
    texts.set(holder, new Map([[key, text]]));
    Object.defineProperty(holder, 'toJSON', { value: toJSON });
  }
}

function toJSON(this: Record<string, unknown>): unknown {
  const copy = (Array.isArray(this) ? [...(this as unknown[])] : { ...this }) as Record<string, unknown>;
  const known = texts.get(this);
  if (!writing.isOn || !known) return copy;
  writing.hasMarks = true;
  // A number that was changed since is written as it is.
  for (const [key, text] of known) if (Object.is(copy[key], Number(text.slice(MARK.length)))) copy[key] = text;
  return copy;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
