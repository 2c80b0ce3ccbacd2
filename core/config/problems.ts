import path from 'node:path';
import { formatPath, type Positions, positionOf } from './positions.ts';

/** One mistake in the configuration: where it is, what is wrong and what to do. Holds no secret. */
export interface ConfigProblem {
  /** Relative to the working directory when it lies in there, absolute otherwise. */
  readonly file: string;
  /** Counted from 1; absent where the format tells no positions (js, ts). */
  readonly line?: number;
  readonly column?: number;
  /** As `providers.openai.apiKey`; empty for the whole file. */
  readonly path: string;
  /** What is wrong, without a full stop. */
  readonly message: string;
  /** What to do, a whole sentence. */
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

/** Thrown with all problems at once; its message is the whole report. Source: {@link formatProblem}. */
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
