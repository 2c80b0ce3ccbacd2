import path from 'node:path';
import { isObject } from '../contract/json.ts';
import { childPointer, formatPath, type ProblemAt } from '../contract/pointers.ts';

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
