import { type Problem, problemsOf } from '../../../core/index.ts';
import { readKeyFile } from './load-keys.ts';
import { type JwtConfig, readOptions, readOrigin, readTolerance } from './options.ts';

/** All that is wrong with a configuration. A file of keys is read; nothing is fetched. */
export function findProblems(config: JwtConfig, baseDir: string): Promise<readonly Problem[]> {
  return problemsOf(
    () => readOptions(config, baseDir),
    () => readTolerance(config.clockTolerance),
    async () => {
      const origin = readOrigin(config, baseDir);
      if (origin.kind === 'file') await readKeyFile(origin.path);
    },
  );
}
