import type { Problem } from './plugin.ts';

/**
 * An option that cannot work, found by a plugin. Thrown while it reads its configuration; {@link problemsOf} makes of it what `check`
 * answers, so that `tollgate check` and `tollgate start` say the same at the same place.
 */
export class OptionError extends TypeError {
  override readonly name = 'OptionError';
  /** A JSON pointer into the plugin's configuration, such as `/models/0`; the whole of it when empty. */
  readonly path: string;
  /** What is wrong, as the end of a sentence that begins with the place. Holds no secret. */
  readonly problem: string;
  /** What to do, a whole sentence. */
  readonly hint: string | undefined;

  constructor(path: string, problem: string, hint?: string) {
    super([path.slice(1).replaceAll('/', '.'), `${problem}${hint === undefined ? '' : `. ${hint}`}`].join(' ').trim());
    this.path = path;
    this.problem = problem;
    this.hint = hint;
  }
}

/** What some readers of a configuration refuse by throwing an {@link OptionError}; anything else that they throw is thrown on. */
export async function problemsOf(...readers: readonly (() => unknown)[]): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const read of readers) {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      const { path, problem, hint } = error;
      // Several readers may come upon the same option.
      if (problems.some((known) => known.path === path && known.message === problem)) continue;
      problems.push({ path, message: problem, ...(hint !== undefined && { hint }) });
    }
  }
  return problems;
}
