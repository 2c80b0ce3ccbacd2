/** Writes the validators of the built-in schemas into `dist/`, or into the given folder. The last step of `npm run build`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { compileAhead } from './compile-ahead.ts';

const [, , dist = 'dist'] = process.argv;
const folder = path.resolve(dist, 'compiled');
mkdirSync(folder, { recursive: true });
for (const [set, { code }] of Object.entries(await compileAhead()))
  writeFileSync(path.join(folder, `${set}.cjs`), code);
