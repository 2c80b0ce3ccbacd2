import path from 'node:path';
import { isObject } from '../contract/json.ts';
import { childPointer, formatPath, type ProblemAt } from '../contract/pointers.ts';

/** Problem in the configuration: its position, the reason and a hint. Contains no secret. */
interface ConfigProblem {
  /** Relative to the working directory if it is inside, else absolute. */
  readonly file: string;
  /** Counted from 1; absent for formats without positions (js, ts). */
  readonly line?: number;
  readonly column?: number;
  /** Path such as `providers.openai.apiKey`; empty for the file itself. */
  readonly path: string;
  /** Problem, without a full stop. */
  readonly message: string;
  /** Hint, as a full sentence. */
  readonly hint?: string;
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

/** Creates the error for problems in a configuration, each with its position in the file. */
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

/** Display name of a file: relative to the working directory if it is inside. */
export function displayPath(file: string, cwd: string): string {
  const relative = path.relative(cwd, file);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}

/** Sorts by file, line, column and path. */
function placeOf({ file, line = 0, column = 0, path: at }: ConfigProblem): string {
  return [file, String(line).padStart(9), String(column).padStart(9), at].join('\0');
}

/** JSON pointers (RFC 6901) name positions in the configuration; operators see them as `providers.openai.models[0]`. */

/** Counted from 1, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
  /** File of the position if it is not the configuration's own, such as an import. */
  readonly file?: string;
}

/** Position of a key and of its value; list items have no key. */
export interface KeyPosition {
  readonly key?: Position;
  readonly value: Position;
}

/** Positions in a file, by JSON pointer. */
export type Positions = ReadonlyMap<string, KeyPosition>;

/** Parse error: the text does not match its extension. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly problems: readonly (Partial<Position> & { readonly message: string; readonly hint?: string })[];

  constructor(problems: SourceError['problems']) {
    super(problems.map(({ message }) => message).join('; '));
    this.problems = problems;
  }
}

/** Parsed file. */
export interface Source {
  readonly value: unknown;
  readonly positions: Positions;
}

/** Position of a pointer, or of its nearest ancestor in the file (missing keys have no position). */
function positionOf(positions: Positions, pointer: string, atKey: boolean): Position | undefined {
  const found = positions.get(pointer);
  if (found) return atKey ? (found.key ?? found.value) : found.value;
  return pointer === '' ? undefined : positionOf(positions, pointer.slice(0, pointer.lastIndexOf('/')), true);
}

/** Finds line and column of offsets in a text; fast if offsets are requested in ascending order. */
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

/** "Did you mean": the candidates most similar to a mistyped word. */

/**
 * Position of each value by JSON pointer, such as `tollgate.config.yaml:3`; the file alone if its format has no
 * positions (js, ts).
 */
export function linesOf(file: string, value: object, positions: Positions): readonly (readonly [string, string])[] {
  const rows: (readonly [string, string])[] = [];
  // A repeated YAML alias has no positions of its own: its values get that of the alias.
  const walk = (pointer: string, node: unknown, above: string): void => {
    const found = positions.get(pointer)?.value;
    const place = found === undefined ? above : `${found.file ?? file}:${found.line}`;
    rows.push([pointer, place]);
    const children = Array.isArray(node) ? [...node.entries()] : isObject(node) ? Object.entries(node) : [];
    for (const [key, child] of children) walk(childPointer(pointer, key), child, place);
  };
  for (const [key, section] of Object.entries(value)) {
    const pointer = childPointer('', key);
    // A section missing in the file comes from the built-in configuration: a default.
    if (positions.size === 0 || positions.has(pointer)) walk(pointer, section, file);
  }
  return rows;
}
