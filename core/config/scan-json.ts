/** Names and indexes that lead from the whole text to a value. */
export type JsonPath = readonly (string | number)[];

/** What stands between `from` and `to`. An object or array is told where it opens. */
export type JsonToken = 'name' | 'string' | 'literal' | 'open';

/** Told every token in order. `path` belongs to the scanner and changes after the call; for a name it ends with that name. */
export type VisitToken = (token: JsonToken, from: number, to: number, path: JsonPath) => void;

/** Thrown by {@link scanJson}: the text is not strict JSON from this place on. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  /** In UTF-16 units from the start. */
  readonly offset: number;
  /** What should stand there, such as `a value`. */
  readonly expected: string | undefined;
  /** The path of a name that stands in its object a second time. */
  readonly repeated: JsonPath | undefined;

  constructor(message: string, offset: number, more: { readonly expected?: string; readonly repeated?: JsonPath }) {
    super(message);
    this.offset = offset;
    this.expected = more.expected;
    this.repeated = more.repeated;
  }
}

interface Scan {
  readonly text: string;
  readonly visit: VisitToken;
  readonly path: (string | number)[];
  /** For each open object its names so far, for each open array undefined. */
  readonly open: (Set<string> | undefined)[];
  at: number;
}

const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const UNICODE_ESCAPE = /\\u[\da-fA-F]{4}/y;
const SIMPLE_ESCAPES: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));
const LETTER_U = 0x75;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a string may not hold
const UNESCAPED = /[^"\\\u0000-\u001f]*/y;

/**
 * Reads strict JSON (RFC 8259) from the first to the last character. Throws a {@link JsonError} where it is none, and where
 * a name stands twice in one object; `JSON.parse` takes what passes. Does not recurse: `visit` may stop it by throwing when
 * the text is too deep or too long.
 */
export function scanJson(text: string, visit: VisitToken): void {
  const scan: Scan = { text, visit, path: [], open: [], at: 0 };
  let isMore = true;
  while (isMore) isMore = readValue(scan) || readNext(scan);
}

/** Reads a string or literal whole, an object or array up to its first value; tells whether such a value follows. */
function readValue(scan: Scan): boolean {
  skipSpace(scan);
  const { text, path, at: from } = scan;
  const mark = text[from];
  if (mark === '{' || mark === '[') return readOpening(scan, mark === '{');
  if (mark === '"') {
    skipString(scan);
    scan.visit('string', from, scan.at, path);
    return false;
  }
  LITERAL.lastIndex = from;
  if (!LITERAL.test(text)) throw missing(scan, 'a value');
  scan.at = LITERAL.lastIndex;
  scan.visit('literal', from, scan.at, path);
  return false;
}

function readOpening(scan: Scan, isObject: boolean): boolean {
  const { text, path, open, at: from } = scan;
  scan.at += 1;
  scan.visit('open', from, scan.at, path);
  open.push(isObject ? new Set() : undefined);
  path.push(isObject ? '' : 0);
  skipSpace(scan);
  if (text[scan.at] === (isObject ? '}' : ']')) return false;
  if (isObject) readName(scan);
  return true;
}

/** After a value: closing brackets, then a comma and the next name; tells whether another value follows. */
function readNext(scan: Scan): boolean {
  const { text, path, open } = scan;
  for (;;) {
    skipSpace(scan);
    if (open.length === 0) {
      if (scan.at < text.length) throw new JsonError('nothing may follow the value', scan.at, { expected: 'the end' });
      return false;
    }
    const names = open.at(-1);
    const closer = names ? '}' : ']';
    const mark = text[scan.at];
    if (mark !== closer && mark !== ',') throw missing(scan, `"," or "${closer}"`);
    scan.at += 1;
    if (mark === ',') {
      if (names) readName(scan);
      else path.push(Number(path.pop()) + 1);
      return true;
    }
    open.pop();
    path.pop();
  }
}

function readName(scan: Scan): void {
  const { text, path, open } = scan;
  skipSpace(scan);
  const from = scan.at;
  if (text[from] !== '"') throw missing(scan, 'a name in double quotes');
  const isPlain = skipString(scan);
  const name = isPlain ? text.slice(from + 1, scan.at - 1) : (JSON.parse(text.slice(from, scan.at)) as string);
  path[path.length - 1] = name;
  const names = open.at(-1);
  if (names?.has(name)) {
    const shown = JSON.stringify(name.length > 60 ? `${name.slice(0, 59)}…` : name);
    throw new JsonError(`the name ${shown} stands here a second time`, from, { repeated: [...path] });
  }
  names?.add(name);
  scan.visit('name', from, scan.at, path);
  skipSpace(scan);
  if (text[scan.at] !== ':') throw missing(scan, '":"');
  scan.at += 1;
}

/** Skips a string from quote to quote; tells whether it has no escapes. */
function skipString(scan: Scan): boolean {
  const { text } = scan;
  let isPlain = true;
  for (scan.at += 1; scan.at < text.length; ) {
    UNESCAPED.lastIndex = scan.at;
    UNESCAPED.test(text);
    scan.at = UNESCAPED.lastIndex;
    const mark = text[scan.at];
    if (mark === '"') {
      scan.at += 1;
      return isPlain;
    }
    if (mark === '\\') {
      isPlain = false;
      const length = lengthOfEscape(text, scan.at);
      if (length === 0) throw missing(scan, 'a valid escape');
      scan.at += length;
    } else if (mark !== undefined) throw missing(scan, 'an escape for a control character');
  }
  scan.at = text.length;
  throw missing(scan, 'the closing quote');
}

/** 2 for `\n` and its like, 6 for `\u00e9`, 0 for what is no escape. */
function lengthOfEscape(text: string, at: number): number {
  if (text.charCodeAt(at + 1) !== LETTER_U) return SIMPLE_ESCAPES.has(text.charCodeAt(at + 1)) ? 2 : 0;
  UNICODE_ESCAPE.lastIndex = at;
  return UNICODE_ESCAPE.test(text) ? 6 : 0;
}

function skipSpace(scan: Scan): void {
  const { text } = scan;
  let { at } = scan;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
  }
  scan.at = at;
}

function missing({ text, at }: Scan, expected: string): JsonError {
  const isAtEnd = at >= text.length;
  return new JsonError(isAtEnd ? `it ends where ${expected} should follow` : `${expected} is missing`, at, {
    expected,
  });
}
