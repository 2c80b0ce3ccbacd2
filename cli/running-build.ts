import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CODE_ROOT, IS_SOURCE } from '../config/package-root.ts';

/** Folder of builds in a clone (`config/build.ts` writes them). */
const BUILDS = '.build';

/**
 * Marks the build that this process runs as in use until the process ends, so that a later build does not delete it: the
 * gateway loads files of it as long as it runs. Does nothing for the sources and an installed package.
 */
export function markBuildInUse(): void {
  if (IS_SOURCE || path.basename(path.dirname(CODE_ROOT)) !== BUILDS) return;
  const folder = path.join(CODE_ROOT, 'in-use');
  const mark = path.join(folder, String(process.pid));
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(mark, '');
  } catch {
    // A clone that this process cannot write to: nothing builds there as this user either.
    return;
  }
  process.once('exit', () => rmSync(mark, { force: true }));
}
