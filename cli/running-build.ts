import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CODE_ROOT, IS_SOURCE } from '../config/package-root.ts';

/** Folder of builds in a clone (`config/build.ts` writes them). */
const BUILDS = '.build';

/**
 * Marks the build that this process runs as in use until the process ends. A later build then does not delete it: the
 * gateway loads files from it at run time. Does nothing for the sources and an installed package.
 */
export function markBuildInUse(): void {
  if (IS_SOURCE || path.basename(path.dirname(CODE_ROOT)) !== BUILDS) return;
  const folder = path.join(CODE_ROOT, 'in-use');
  const mark = path.join(folder, String(process.pid));
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(mark, '');
  } catch {
    // This process cannot write to the clone: the same user cannot build there either.
    return;
  }
  process.once('exit', () => rmSync(mark, { force: true }));
}
