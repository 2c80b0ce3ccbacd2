import path from 'node:path';
import { ConfigError, formatProblem } from '../config/problems.ts';
import { describeError } from './io.ts';

/** Absolute paths, which callers must not see. */
const PATH = /(?<![\w.])\/[^\s,;:"']+/g;

/** Problems of a configuration as sentences without absolute paths and secrets, for callers of the API. */
export function publicProblems(error: unknown): readonly string[] {
  const lines =
    error instanceof ConfigError
      ? error.problems.map((problem) => formatProblem({ ...problem, file: path.basename(problem.file) }))
      : describeError(error).slice(0, 1);
  return lines.map(withoutPaths);
}

export function withoutPaths(text: string): string {
  return text.replaceAll(PATH, '…');
}
