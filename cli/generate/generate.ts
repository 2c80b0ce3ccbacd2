/**
 * Generates files from the schemas of the built-in plugins.
 * - Without an option it writes `config/tollgate.schema.json` (`npm run schema`).
 * - With `--check` it writes nothing, and fails if that file is out of date.
 * - With `--dist FOLDER`, the last step of `npm run build`, it writes the compiled validators. It also writes one file
 *   with everything served at `/docs`: the API viewer, the page of the configuration keys, and the docs pages.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { composeSchema } from '../../config/compose-schema.ts';
import { readBuiltinSchemas } from '../../config/load-config.ts';
import { bundleDocs } from './bundle-docs.ts';
import { compileAhead } from './compile-ahead.ts';

const SCHEMA_FILE = fileURLToPath(new URL('../../config/tollgate.schema.json', import.meta.url));

const { check, dist } = parseArgs({ options: { check: { type: 'boolean' }, dist: { type: 'string' } } }).values;
const plugins = await readBuiltinSchemas();
// One space per level: half a megabyte less, a third of the size when packed.
const schema = `${JSON.stringify(composeSchema(plugins), null, 1)}\n`;

if (dist !== undefined) {
  mkdirSync(path.join(dist, 'compiled'), { recursive: true });
  for (const [set, { code }] of Object.entries(await compileAhead()))
    writeFileSync(path.join(dist, 'compiled', `${set}.cjs`), code);
  writeFileSync(path.join(dist, 'docs.br'), bundleDocs(plugins));
} else if (!check) {
  writeFileSync(SCHEMA_FILE, schema);
} else if (!existsSync(SCHEMA_FILE) || readFileSync(SCHEMA_FILE, 'utf8') !== schema) {
  process.stderr.write(`${SCHEMA_FILE} is out of date. Run: npm run schema\n`);
  process.exitCode = 1;
}
