import { statSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Environment } from './env.ts';
import type { Source } from './problems.ts';
import { parseJson, parseYaml } from './sources.ts';

/** Reads one file of a configuration by its extension; a module may export a function of the environment. */
export async function parseFile(file: string, content: string, env: Environment): Promise<Source> {
  const format = path.extname(file);
  if (format === '.json') return parseJson(content);
  if (/^\.ya?ml$/.test(format)) return parseYaml(content);
  const exported = await importDefault(file);
  return { value: typeof exported === 'function' ? await exported({ env }) : exported, positions: new Map() };
}

/** The default export of a module file; TypeScript goes through jiti (cosmiconfig's own loader needs TypeScript < 7). */
async function importDefault(file: string): Promise<unknown> {
  if (/\.[mc]?ts$/.test(file)) {
    const { createJiti } = await import('jiti');
    return await createJiti(import.meta.url, { fsCache: false, moduleCache: false }).import(file, { default: true });
  }
  // Node keeps a module for ever under its URL; a file that has changed since is another one.
  const url = pathToFileURL(file);
  url.searchParams.set('changed', String(statSync(file).mtimeMs));
  const module: Readonly<Record<string, unknown>> = await import(url.href);
  return module['default'];
}
