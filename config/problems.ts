import path from 'node:path';
import { isObject } from '../core/contract/json.ts';

/** One mistake in the configuration: where it is, what is wrong and what to do. Holds no secret. */
interface ConfigProblem {
  /** Relative to the working directory when it lies in there, absolute otherwise. */
  readonly file: string;
  /** Counted from 1; absent where the format tells no positions (js, ts). */
  readonly line?: number;
  readonly column?: number;
  /** As `providers.openai.apiKey`; empty for the file itself. */
  readonly path: string;
  /** What is wrong, without a full stop. */
  readonly message: string;
  /** What to do, as a full sentence. */
  readonly hint?: string;
}

/** What is known about a problem before its place in the file is looked up. */
export interface ProblemAt {
  /** A JSON pointer into the configuration. */
  readonly pointer: string;
  /** Whether the key itself is wrong (an unknown name) rather than its value. */
  readonly atKey?: boolean;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Thrown with all problems at once; its message is the full report. Source: {@link formatProblem}. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const sorted = problems.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const count = sorted.length === 1 ? '1 problem' : `${sorted.length} problems`;
    super(`${sorted.map(formatProblem).join('\n')}\n${count} in the configuration`);
    this.problems = sorted;
  }
}

/** `tollgate.config.yaml:3:5 server.prot: unknown key. Did you mean "port"?` */
export function formatProblem(problem: ConfigProblem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  const subject = problem.path === '' ? '' : `${problem.path}: `;
  return `${place} ${subject}${problem.message.replace(/\.$/, '')}.${problem.hint === undefined ? '' : ` ${problem.hint}`}`;
}

/** The error of problems in a configuration, each at its place in the file. */
export function createConfigError(
  problems: readonly ProblemAt[],
  { file, positions }: { readonly file: string; readonly positions: Positions },
): ConfigError {
  return new ConfigError(
    problems.map(({ pointer, atKey, message, hint }) => ({
      file,
      ...positionOf(positions, pointer, atKey === true),
      path: formatPath(pointer),
      message,
      ...(hint !== undefined && { hint }),
    })),
  );
}

/** A file's name as people know it: relative to where they are, when it lies in there. */
export function displayPath(file: string, cwd: string): string {
  const relative = path.relative(cwd, file);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}

/** Sorts by file, line, column and path. */
function placeOf({ file, line = 0, column = 0, path: at }: ConfigProblem): string {
  return [file, String(line).padStart(9), String(column).padStart(9), at].join('\0');
}

/** JSON pointers (RFC 6901) name places in the configuration; people see them as `providers.openai.models[0]`. */

/** The pointer of a child: `/server` and `port` give `/server/port`. */
export function childPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The keys of a pointer: `/a~1b/0` gives `a/b` and `0`. */
export function pointerKeys(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A pointer as people write paths: `plans.free.providers.openai`, `models.smart[0]`, `providers["a b"]`. */
export function formatPath(pointer: string): string {
  let path = '';
  for (const key of pointerKeys(pointer)) {
    if (/^(0|[1-9]\d*)$/.test(key)) path += `[${key}]`;
    else if (/^[\w$-]+$/.test(key)) path += path === '' ? key : `.${key}`;
    else path += `[${JSON.stringify(key.slice(0, 60))}]`;
  }
  return path;
}

/** Counted from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** Another file than the configuration's own, for what it imports. */
  readonly file?: string;
}

/** Where a key of a configuration and its value stand; items of a list have no key. */
export interface Place {
  readonly key?: Position;
  readonly value: Position;
}

/** The places of a file, by JSON pointer. */
export type Positions = ReadonlyMap<string, Place>;

/** Thrown by a parser: the text is not what its extension says. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly problems: readonly (Partial<Position> & { readonly message: string; readonly hint?: string })[];

  constructor(problems: SourceError['problems']) {
    super(problems.map(({ message }) => message).join('; '));
    this.problems = problems;
  }
}

/** A parsed file. */
export interface Source {
  readonly value: unknown;
  readonly positions: Positions;
}

/** The place of a pointer, or of the nearest place above it that the file has (what is missing has no place). */
function positionOf(positions: Positions, pointer: string, atKey: boolean): Position | undefined {
  const found = positions.get(pointer);
  if (found) return atKey ? (found.key ?? found.value) : found.value;
  return pointer === '' ? undefined : positionOf(positions, pointer.slice(0, pointer.lastIndexOf('/')), true);
}

/** Finds line and column of offsets in a text; fast for offsets in about the order of the text. */
export function createLocator(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  const startOf = (line: number): number => starts[line] ?? Number.POSITIVE_INFINITY;
  let line = 0;
  return (offset) => {
    while (startOf(line) > offset) line--;
    while (startOf(line + 1) <= offset) line++;
    return { line: line + 1, column: offset - startOf(line) + 1 };
  };
}

/** "Did you mean": the candidates that look most like a mistyped word. */

const MAX_LENGTH = 80;

/**
 * At most `max` candidates that resemble `word`, best first; none when nothing is near. Case, `-`, `_` and spaces do
 * not count, a candidate that begins with the word (or the other way round) counts as near. Words over 80 characters
 * resemble nothing, so that hostile input costs nothing.
 */
export function nearest(word: string, candidates: Iterable<string>, max = 3): readonly string[] {
  const wanted = normalise(word);
  if (wanted === '' || word.length > MAX_LENGTH) return [];
  const scored: { readonly candidate: string; readonly score: number }[] = [];
  for (const candidate of new Set(candidates)) {
    const score = rate(wanted, normalise(candidate));
    if (score !== undefined) scored.push({ candidate, score });
  }
  return scored
    .sort((a, b) => a.score - b.score || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, max)
    .map(({ candidate }) => candidate);
}

/** `Did you mean "a" or "b"?` for the near candidates, or undefined. */
export function didYouMean(word: string, candidates: Iterable<string>, max = 3): string | undefined {
  const near = nearest(word, candidates, max).map((name) => `"${name}"`);
  if (near.length === 0) return undefined;
  const last = near.pop();
  return `Did you mean ${near.length > 0 ? `${near.join(', ')} or ${last}` : last}?`;
}

function normalise(word: string): string {
  return word.toLowerCase().replace(/[-_\s]/g, '');
}

/** 0 is the same word; undefined is not near. */
function rate(wanted: string, candidate: string): number | undefined {
  if (candidate === '' || candidate.length > MAX_LENGTH) return undefined;
  const allowed = Math.max(1, Math.floor(Math.min(wanted.length, candidate.length) / 3));
  const typos = distance(wanted, candidate);
  if (typos <= allowed) return typos;
  const isPrefix = wanted.length >= 3 && (candidate.startsWith(wanted) || wanted.startsWith(candidate));
  return isPrefix && candidate.length >= 3
    ? allowed + Math.abs(candidate.length - wanted.length) / MAX_LENGTH
    : undefined;
}

/** Damerau-Levenshtein (optimal string alignment): insertions, deletions, substitutions, swapped neighbours. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/** Where each value stands, by JSON pointer, as `tollgate.config.yaml:3`; of a file in which no places are known (js, ts), the file. */
export function linesOf(file: string, value: object, positions: Positions): readonly (readonly [string, string])[] {
  const rows: (readonly [string, string])[] = [];
  // What an alias of YAML repeats has no place of its own: it stands where the alias does.
  const walk = (pointer: string, node: unknown, above: string): void => {
    const found = positions.get(pointer)?.value;
    const place = found === undefined ? above : `${found.file ?? file}:${found.line}`;
    rows.push([pointer, place]);
    const children = Array.isArray(node) ? [...node.entries()] : isObject(node) ? Object.entries(node) : [];
    for (const [key, child] of children) walk(childPointer(pointer, key), child, place);
  };
  for (const [key, section] of Object.entries(value)) {
    const pointer = childPointer('', key);
    // A section that the file lacks is inherited from the built-in configuration: a default.
    if (positions.size === 0 || positions.has(pointer)) walk(pointer, section, file);
  }
  return rows;
}
