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
import {
  childPointer,
  createLocator,
  type Place,
  type Position,
  type ProblemAt,
  type Source,
  SourceError,
} from './problems.ts';
import { JsonError, type JsonPath, scanJson } from './scan-json.ts';

const MAX_JSON_DEPTH = 100;

/**
 * Reads strict JSON; throws a {@link SourceError} with the place of the first error. `JSON.parse` makes the value; the scan
 * before it tells places, which `JSON.parse` does only sometimes, and repeated names, which it never does.
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

/** How often one anchor may be repeated, so that a few lines cannot become gigabytes. */
const MAX_ALIASES = 100;

type Places = Map<string, Place>;

/** Reads YAML 1.2 (with `<<` merges); throws a {@link SourceError} that names every syntax error. */
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
  const positions: Places = new Map();
  if (document.contents) collect(document.contents, '', locate, positions);
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), positions };
  } catch (error) {
    throw new SourceError([{ line: 1, column: 1, message: sentence(error instanceof Error ? error.message : '') }]);
  }
}

/** Within `{ }` and `[ ]` YAML takes the brace of a reference without quotes for its own; what it says then helps nobody. */
function explainUnquoted(text: string, { pos }: YAMLError, locate: (offset: number) => Position) {
  const before = /[^\s,[\]{}]*$/.exec(text.slice(0, pos[0]))?.[0] ?? '';
  const after = /^\{[^}\n]*\}?[^\s,\]{}]*/.exec(text.slice(pos[0]))?.[0] ?? '';
  return {
    ...locate(pos[0] - before.length),
    message: sentence('a text with a reference stands between brackets without quotes'),
    hint: `Quote it: '${before}${after}'.`,
  };
}

function collect(node: Node, pointer: string, locate: (offset: number) => Position, places: Places): void {
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
 * A value as plain data, and the problems of what is not and is left out: functions and class instances (from js and ts),
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
      if (isForbidden) problems.push({ pointer: child, atKey: true, message: 'is a name that cannot be used here' });
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
  // A module namespace and an object of another realm (jiti) have their own `Object.prototype`.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describeValue(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'number') return `the number ${value}`;
  return typeof value === 'object' ? 'an object of a class' : `a ${typeof value}`;
}
