import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The absolute path of a file of this package, from its sources as well as from `dist/`. */
export function packageFile(relative: string): string {
  const candidates = ['../../', '../../../'].map((up) => fileURLToPath(new URL(`${up}${relative}`, import.meta.url)));
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined) throw new Error(`the package lacks ${relative}: install it again`);
  return found;
}
