import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const OWN_FILE = fileURLToPath(import.meta.url);

/** Root folder of this package: contains `package.json` and `config/`, for sources and builds alike. */
export const PACKAGE_ROOT: string = findRoot(path.dirname(OWN_FILE));

/** True if this process runs the sources and not a build. */
export const IS_SOURCE: boolean = OWN_FILE.endsWith('.ts');

/**
 * Root folder of the running code: {@link PACKAGE_ROOT} for the sources, else the folder of the build. In a clone
 * `dist` links to the newest build, but a gateway keeps its own. Find files of the program from here, never by `dist`.
 */
export const CODE_ROOT: string = path.dirname(path.dirname(OWN_FILE));

function findRoot(folder: string): string {
  if (existsSync(path.join(folder, 'package.json'))) return folder;
  const parent = path.dirname(folder);
  if (parent === folder)
    throw new Error('the package.json of tollgate is missing next to its files; reinstall the package');
  return findRoot(parent);
}

/** Version of this package. */
export const VERSION: string = (
  JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { readonly version: string }
).version;
