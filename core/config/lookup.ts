import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from './env.ts';
import type { Lookup } from './interpolate.ts';

const MAX_BYTES = 1024 * 1024;

/** Looks references up in an environment and in files relative to a folder. */
export function createLookup(env: Environment, baseDir: string): Lookup {
  return {
    env: (name) => (Object.hasOwn(env, name) ? env[name] : undefined),
    file(name) {
      const file = path.resolve(baseDir, name);
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) throw new Error('does not exist');
      if (found.isDirectory()) throw new Error('is a folder');
      if (found.size > MAX_BYTES) throw new Error('is larger than 1 MiB');
      try {
        return readFileSync(file, 'utf8').trim();
      } catch (error) {
        throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
      }
    },
  };
}
