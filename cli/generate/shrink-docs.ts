/** Compresses the docs of a build again, as published builds have them. Usage: shrink-docs.ts FOLDER */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { shrinkBundle } from '../../openapi/docs-bundle.ts';

const [folder = 'dist'] = process.argv.slice(2);
const file = path.join(folder, 'docs.br');
writeFileSync(file, shrinkBundle(readFileSync(file)));
