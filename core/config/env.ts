import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError, displayPath } from './problems.ts';

/** Variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Later files lose: a machine's own `.env.local` stands before the shared `.env`. */
const ENV_FILES = ['.env.local', '.env'] as const;

/**
 * The environment with what `.env.local` and `.env` of the folders add to it; what is set already is never changed,
 * and an earlier folder wins. Throws a `ConfigError` when a file exists and cannot be read.
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

/** Where variables may stand in these folders, beside the environment itself. */
export function envFiles(folders: readonly string[]): readonly string[] {
  return [...new Set(folders)].flatMap((folder) => ENV_FILES.map((name) => path.join(folder, name)));
}

async function readEnvFile(file: string, cwd: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    const hint = 'Make it a file that this user may read, or remove it.';
    throw new ConfigError([
      { file: displayPath(file, cwd), path: '', message: `cannot be read (${code ?? 'unknown'})`, hint },
    ]);
  }
}
