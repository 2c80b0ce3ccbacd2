import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package: where `package.json` and `config/` are, seen from the source as from `dist/`. */
export const PACKAGE_ROOT: string = findRoot(path.dirname(fileURLToPath(import.meta.url)));

function findRoot(folder: string): string {
  if (existsSync(path.join(folder, 'package.json'))) return folder;
  const parent = path.dirname(folder);
  if (parent === folder)
    throw new Error('the package.json of tollgate is missing next to its files; reinstall the package');
  return findRoot(parent);
}

/** This package's version. */
export const VERSION: string = (
  JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { readonly version: string }
).version;
