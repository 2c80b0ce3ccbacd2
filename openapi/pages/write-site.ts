/** `npm run docs:site [-- FOLDER]`: writes the docs as a static site, `site/` by default. It needs no network and no server. */
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { writeDocsSite } from './docs-site.ts';

const folder = path.resolve(process.argv[2] ?? path.join(PACKAGE_ROOT, 'site'));
writeDocsSite(PACKAGE_ROOT, folder, { isAlone: true });
process.stdout.write(`Wrote ${path.join(folder, 'index.html')}\n`);
