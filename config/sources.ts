import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from 'yaml';
import type { Json } from '../contract/json.ts';
import { childPointer, type ProblemAt } from '../contract/pointers.ts';
import {
  ConfigError,
  createLocator,
  displayPath,
  type KeyPosition,
  type Position,
  type Source,
  SourceError,
} from './problems.ts';

const MAX_JSON_DEPTH = 100;

/**
 * Parses strict JSON; throws a {@link SourceError} with the position of the first error. `JSON.parse` creates the
 * value. The scan before it finds positions, which `JSON.parse` reports only sometimes, and repeated names, which it
 * never reports.
 */
export function parseJson(text: string): Source {
  const source = text.replace(/^\uFEFF/, '');
  const locate = createLocator(source);
  const positions = new Map<string, { key?: Position; value: Position }>();
  let key: Position | undefined;
  const fail = (message: string, offset: number): SourceError =>
    new SourceError([{ ...locate(offset), message: `is not valid JSON: ${message}` }]);
  try {
    scanJson(source, (token, from, _to, path) => {
      if (token === 'name') key = locate(from);
      else {
        positions.set(toPointer(path), { ...(key && { key }), value: locate(from) });
        if (path.length > MAX_JSON_DEPTH) throw fail('it is nested too deeply', from);
        key = undefined;
      }
    });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw fail(describeSyntax(error, source), error.offset);
  }
  return { value: JSON.parse(source), positions };
}

function toPointer(path: JsonPath): string {
  return path.reduce<string>(childPointer, '');
}

function describeSyntax({ expected, offset, message }: JsonError, text: string): string {
  if (expected === undefined) return message;
  return `expected ${expected}, ${offset < text.length ? `found ${JSON.stringify(text[offset])}` : 'the file ends'}`;
}

/** Maximum repetitions of one anchor, so that a few lines cannot expand to gigabytes. */
const MAX_ALIASES = 100;

type PlaceList = Map<string, KeyPosition>;

/** Parses YAML 1.2 (with `<<` merges); throws a {@link SourceError} with every syntax error. */
export function parseYaml(text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, stringKeys: true });
  const locate = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const unquoted = document.errors.find(({ pos }) => text.startsWith('${', pos[0] - 1));
  if (unquoted) throw new SourceError([explainUnquoted(text, unquoted, locate)]);
  if (document.errors.length > 0) {
    throw new SourceError(
      document.errors.map(({ pos, message }) => ({ ...locate(pos[0]), message: sentence(message) })),
    );
  }
  const positions: PlaceList = new Map();
  if (document.contents) collect(document.contents, '', locate, positions);
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), positions };
  } catch (error) {
    throw new SourceError([{ line: 1, column: 1, message: sentence(error instanceof Error ? error.message : '') }]);
  }
}

/**
 * Explains a reference without quotes within `{ }` or `[ ]`: YAML takes its brace as its own, and reports a misleading
 * error.
 */
function explainUnquoted(text: string, { pos }: YAMLError, locate: (offset: number) => Position) {
  const before = /[^\s,[\]{}]*$/.exec(text.slice(0, pos[0]))?.[0] ?? '';
  const after = /^\{[^}\n]*\}?[^\s,\]{}]*/.exec(text.slice(pos[0]))?.[0] ?? '';
  return {
    ...locate(pos[0] - before.length),
    message: sentence('a text with a reference in brackets is not quoted'),
    hint: `Quote it: '${before}${after}'.`,
  };
}

function collect(node: Node, pointer: string, locate: (offset: number) => Position, places: PlaceList): void {
  if (!places.has(pointer)) places.set(pointer, { value: locate(node.range?.[0] ?? 0) });
  if (isAlias(node)) return;
  if (isMap(node)) {
    for (const pair of node.items) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const child = childPointer(pointer, String(pair.key.value));
      const key = locate(pair.key.range?.[0] ?? 0);
      const value = isNode(pair.value) ? pair.value : undefined;
      places.set(child, { key, value: value?.range ? locate(value.range[0]) : key });
      if (value) collect(value, child, locate, places);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, index) => {
      if (isNode(item)) collect(item, childPointer(pointer, index), locate, places);
    });
  }
}

function sentence(message: string): string {
  return `is not valid YAML: ${message.replace(/\.$/, '')}`;
}

const MAX_DATA_DEPTH = 64;
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Converts a value to plain data. Reports and omits everything else: functions and class instances (from js and ts),
 * cycles, `__proto__`.
 */
export function toPlain(value: unknown): { readonly value: Json; readonly problems: readonly ProblemAt[] } {
  const problems: ProblemAt[] = [];
  const convert = (node: unknown, pointer: string, depth: number): Json | undefined => {
    if (node === null || typeof node === 'string' || typeof node === 'boolean') return node;
    if (node === undefined || (typeof node === 'number' && Number.isFinite(node))) return node;
    if (depth > MAX_DATA_DEPTH) {
      problems.push({ pointer, message: `is nested deeper than ${MAX_DATA_DEPTH} levels, or contains itself` });
      return undefined;
    }
    if (Array.isArray(node)) {
      const items = node.map((item, index) => convert(item, childPointer(pointer, index), depth + 1));
      return items.filter((item) => item !== undefined);
    }
    if (!isPlainObject(node)) {
      const hint = 'Use text, numbers, true, false, lists and maps only.';
      problems.push({ pointer, message: `is ${describeValue(node)}, not data`, hint });
      return undefined;
    }
    const entries = Object.entries(node).flatMap(([key, item]): [string, Json][] => {
      const child = childPointer(pointer, key);
      const isForbidden = FORBIDDEN_KEYS.has(key);
      if (isForbidden) problems.push({ pointer: child, atKey: true, message: 'is not an allowed name' });
      const converted = isForbidden ? undefined : convert(item, child, depth + 1);
      return converted === undefined ? [] : [[key, converted]];
    });
    return Object.fromEntries(entries);
  };
  return { value: convert(value, '', 0) ?? null, problems };
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Module namespaces and objects of another realm (jiti) have a different `Object.prototype`.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describeValue(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'number') return `the number ${value}`;
  return typeof value === 'object' ? 'an object of a class' : `a ${typeof value}`;
}

/** Parses one configuration file by its extension; a module may export a function of the environment. */
export async function parseFile(file: string, content: string, env: Environment): Promise<Source> {
  const format = path.extname(file);
  if (format === '.json') return parseJson(content);
  if (/^\.ya?ml$/.test(format)) return parseYaml(content);
  const exported = await importDefault(file);
  return { value: typeof exported === 'function' ? await exported({ env }) : exported, positions: new Map() };
}

/** Imports the default export of a module; TypeScript uses jiti (cosmiconfig's own loader needs TypeScript < 7). */
async function importDefault(file: string): Promise<unknown> {
  if (/\.[mc]?ts$/.test(file)) {
    const { createJiti } = await import('jiti');
    return await createJiti(import.meta.url, { fsCache: false, moduleCache: false }).import(file, { default: true });
  }
  // Node caches a module by URL for the life of the process, so a changed file needs another URL.
  const url = pathToFileURL(file);
  url.searchParams.set('changed', String(statSync(file).mtimeMs));
  const module: Readonly<Record<string, unknown>> = await import(url.href);
  return module['default'];
}

/** Variables by name, like `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** In order of precedence: a machine's own `.env.local` before the shared `.env`. */
const ENV_FILES = ['.env.local', '.env'] as const;

/**
 * Adds the variables of `.env.local` and `.env` in the folders to the environment. Existing variables never change, and
 * an earlier folder takes precedence. Throws a `ConfigError` for an existing file that is unreadable.
 */
export async function loadEnv(env: Environment, folders: readonly string[], cwd: string): Promise<Environment> {
  const merged = new Map(Object.entries(env));
  for (const folder of new Set(folders)) {
    for (const name of ENV_FILES) {
      const text = await readEnvFile(path.join(folder, name), cwd);
      for (const [key, value] of Object.entries(parseEnv(text))) {
        if (merged.get(key) === undefined) merged.set(key, value);
      }
    }
  }
  return Object.freeze(Object.fromEntries(merged));
}

/** Files in these folders that may hold variables. */
export function envFiles(folders: readonly string[]): readonly string[] {
  return [...new Set(folders)].flatMap((folder) => ENV_FILES.map((name) => path.join(folder, name)));
}

async function readEnvFile(file: string, cwd: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    const hint = 'Make it a file that this user can read, or remove it.';
    throw new ConfigError([
      { file: displayPath(file, cwd), path: '', message: `cannot be read (${code ?? 'unknown'})`, hint },
    ]);
  }
}

/** Names and indexes from the root to a value. */
type JsonPath = readonly (string | number)[];

/** Kind of text between `from` and `to`. Objects and arrays are reported at their opening bracket. */
type JsonToken = 'name' | 'string' | 'literal' | 'open';

/**
 * Called for every token in order. `path` belongs to the scanner and changes after the call; for a name it ends with
 * that name.
 */
type VisitToken = (token: JsonToken, from: number, to: number, path: JsonPath) => void;

/** Thrown by {@link scanJson} at the first position that is not strict JSON. */
class JsonError extends Error {
  override readonly name = 'JsonError';
  /** In UTF-16 units from the start. */
  readonly offset: number;
  /** Expected token, such as `a value`. */
  readonly expected: string | undefined;
  /** Path of a name that its object repeats. */
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
  /** Names so far of each open object; undefined for each open array. */
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
 * Scans strict JSON (RFC 8259) to its last character. Throws a {@link JsonError} for invalid text and for repeated
 * names in an object; `JSON.parse` accepts the rest. Does not recurse: `visit` may throw to stop it for text that is
 * too deep or too long.
 */
function scanJson(text: string, visit: VisitToken): void {
  const scan: Scan = { text, visit, path: [], open: [], at: 0 };
  let isMore = true;
  while (isMore) isMore = readValue(scan) || readNext(scan);
}

/**
 * Reads a string or literal to its end, an object or array up to its first value. Returns true if such a value follows.
 */
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

/** After a value: reads closing brackets, then a comma and the next name. Returns true if another value follows. */
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
    throw new JsonError(`the name ${shown} is a duplicate`, from, { repeated: [...path] });
  }
  names?.add(name);
  scan.visit('name', from, scan.at, path);
  skipSpace(scan);
  if (text[scan.at] !== ':') throw missing(scan, '":"');
  scan.at += 1;
}

/** Skips a string from quote to quote; returns true if it has no escapes. */
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

/** 2 for escapes such as `\n`, 6 for `\u00e9`, 0 for an invalid escape. */
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
