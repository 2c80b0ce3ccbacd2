/** `npm run docs:site [-- FOLDER]`: writes the docs as a static site, `site/` by default. It needs no network and no server. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { renderDocsSite } from './docs-site.ts';

const folder = path.resolve(process.argv[2] ?? path.join(PACKAGE_ROOT, 'site'));
rmSync(folder, { recursive: true, force: true });
for (const [name, bytes] of renderDocsSite(PACKAGE_ROOT, { isAlone: true })) {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}
process.stdout.write(`Wrote ${path.join(folder, 'index.html')}\n`);
