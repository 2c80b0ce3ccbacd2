import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Environment } from './env.ts';
import { ConfigError, displayPath } from './faults.ts';

const ROOT_FORMATS = ['yaml', 'yml', 'json', 'ts', 'mts', 'js', 'mjs', 'cjs'] as const;
const FOLDER_FORMATS = ['yaml', 'yml', 'json', 'ts', 'js', 'mjs'] as const;

/** Where a configuration may stand, relative to the working directory. Nothing above it is searched. */
export const SEARCH_PLACES: readonly string[] = Object.freeze([
  ...ROOT_FORMATS.map((format) => `tollgate.config.${format}`),
  ...FOLDER_FORMATS.map((format) => `.config/tollgate.${format}`),
  'package.json',
]);

const FORMATS: readonly string[] = ROOT_FORMATS.map((format) => `.${format}`);

/**
 * The configuration file to read: the given path, else `TOLLGATE_CONFIG`, else the one search place that exists;
 * undefined when there is none. Throws a `ConfigError` for a path that is no file and for two candidates.
 */
export async function findConfig(
  cwd: string,
  env: Environment,
  configPath: string | undefined,
): Promise<string | undefined> {
  if (configPath) return await checkPath(configPath, '--config', cwd);
  if (env['TOLLGATE_CONFIG']) return await checkPath(env['TOLLGATE_CONFIG'], 'TOLLGATE_CONFIG', cwd);
  const found: string[] = [];
  for (const place of SEARCH_PLACES) {
    const file = path.join(cwd, place);
    if (place === 'package.json' ? await hasTollgateKey(file) : await isFile(file)) found.push(file);
  }
  const [first, ...others] = found;
  if (first === undefined || others.length === 0) return first;
  const names = found.map((file) => displayPath(file, cwd));
  throw new ConfigError([
    {
      file: names[0] ?? first,
      path: '',
      message: `is not the only configuration here: ${names.join(', ')}`,
      hint: 'Keep one of them, or say which with --config.',
    },
  ]);
}

async function checkPath(given: string, source: string, cwd: string): Promise<string> {
  const file = path.resolve(cwd, given);
  const fail = (message: string, hint: string) => new ConfigError([{ file: given, path: '', message, hint }]);
  if (!(await isFile(file))) {
    throw fail(`does not exist or is no file (named by ${source})`, `Correct ${source}, or create the file.`);
  }
  if (!FORMATS.includes(path.extname(file))) {
    throw fail(`is of no known format (named by ${source})`, `Its name must end in ${FORMATS.join(', ')}.`);
  }
  return file;
}

async function isFile(file: string): Promise<boolean> {
  return await stat(file).then(
    (found) => !found.isDirectory(),
    () => false,
  );
}

/** A `package.json` counts when it has a `tollgate` key; also when it is broken and seems to have one, so that the fault shows. */
async function hasTollgateKey(file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(() => '');
  try {
    const content: unknown = JSON.parse(text);
    return typeof content === 'object' && content !== null && Object.hasOwn(content, 'tollgate');
  } catch {
    return /"tollgate"\s*:/.test(text);
  }
}
