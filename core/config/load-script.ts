import { pathToFileURL } from 'node:url';
import type { Environment } from './env.ts';

/**
 * Imports a configuration written in JavaScript or TypeScript: its default export, or what that returns when it is a
 * function of `{ env }` (the environment with `.env` in it).
 */
export async function loadScript(file: string, env: Environment): Promise<unknown> {
  const exported = await importDefault(file);
  return typeof exported === 'function'
    ? await (exported as (input: { env: Environment }) => unknown)({ env })
    : exported;
}

/** The default export of a module file; TypeScript goes through jiti (cosmiconfig's own loader needs TypeScript < 7). */
export async function importDefault(file: string): Promise<unknown> {
  if (/\.[mc]?ts$/.test(file)) {
    const { createJiti } = await import('jiti');
    const jiti = createJiti(import.meta.url, { fsCache: false, moduleCache: false });
    return await jiti.import(file, { default: true });
  }
  const module: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href);
  return module['default'];
}
