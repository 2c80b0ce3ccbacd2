/** Reading of frames that differ from an earlier one in their text alone. For speed: it halves the cost of reading a stream. */
import { isObject, parseJson, readArray, readObject } from '../../../contract/index.ts';

/** Text of a frame around its content, and around the padding that some vendors add behind it. */
export interface FramePattern {
  readonly before: string;
  readonly after: string;
  /** Text behind the padding; undefined without padding. */
  readonly end: string | undefined;
}

/** Characters that end a JSON text, begin an escape, or are invalid in it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them.
const SPECIAL = /["\\\u0000-\u001f]/;
const CONTENT = /"content"\s*:\s*"/;
const PADDING = /"obfuscation"\s*:\s*"[^"\\]*"/;
const MARK = 'tollgate';

/** Returns the pattern of a frame with one choice and a text as its content; undefined if the content has another place. */
export function patternOf(data: string): FramePattern | undefined {
  const opening = CONTENT.exec(data);
  if (!opening) return undefined;
  const start = opening.index + opening[0].length;
  const end = endOfText(data, start);
  const before = data.slice(0, start);
  const rest = data.slice(end);
  const padding = PADDING.exec(rest);
  const pattern: FramePattern = padding
    ? splitAt(before, rest, padding.index + padding[0].lastIndexOf('"', padding[0].length - 2) + 1)
    : { before, after: rest, end: undefined };
  return isRight(pattern) ? pattern : undefined;
}

/** Splits the text behind the content around the padding that begins at `start`. */
function splitAt(before: string, rest: string, start: number): FramePattern {
  return { before, after: rest.slice(0, start), end: rest.slice(rest.indexOf('"', start)) };
}

/** Position of the quote that ends a JSON text. */
function endOfText(data: string, start: number): number {
  let at = start;
  while (at < data.length && data[at] !== '"') at += data[at] === '\\' ? 2 : 1;
  return at;
}

/** Returns true if both texts of the pattern are in the place where a reader of the JSON finds them. */
function isRight({ before, after, end }: FramePattern): boolean {
  const frame = parseJson(before + MARK + after + (end === undefined ? '' : MARK + end));
  if (!isObject(frame)) return false;
  const [choice, ...others] = readArray(frame['choices']);
  if (others.length > 0 || readObject(readObject(choice)['delta'])['content'] !== MARK) return false;
  return end === undefined || frame['obfuscation'] === MARK;
}

/** Returns the content of a frame that matches a pattern, undefined for any other frame. */
export function contentOf(data: string, { before, after, end }: FramePattern): string | undefined {
  if (!data.startsWith(before)) return undefined;
  let length = data.length;
  if (end !== undefined) {
    if (!data.endsWith(end)) return undefined;
    const padded = data.length - end.length;
    length = data.lastIndexOf('"', padded - 1) + 1;
    if (SPECIAL.test(data.slice(length, padded))) return undefined;
  }
  const stop = length - after.length;
  if (stop <= before.length || !data.startsWith(after, stop)) return undefined;
  const text = data.slice(before.length, stop);
  if (!SPECIAL.test(text)) return text;
  const read = parseJson(`"${text}"`);
  return typeof read === 'string' ? read : undefined;
}
