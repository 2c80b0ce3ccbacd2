/**
 * Runs the failures that depend on the format of a chat, and writes the tables of `docs/reliability.md` from
 * `test/failures/index.ts` and the passed formats.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FAILURES } from '../../failures/index.ts';
import { FORM_NAMES } from '../gateways/failure-forms.ts';
import { ALL_CASES } from '../generated-cases.ts';
import { type FormsOfFailures, withFailures } from './reliability-page.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE = path.join(ROOT, 'docs/reliability.md');
const FORMS = path.join(ROOT, 'test/failures/forms.json');

/** Test files to run; for the others the results of the last run stay. Default: all. */
const some = process.argv.slice(2);
const files = some.length > 0 ? some : ['test/failures/*.test.ts'];

/** The test of the page, and the slow tests about money only. */
const IGNORED = ['index.test.ts', 'money.property.slow.test.ts'].flatMap((name) => [
  '--ignore',
  `test/failures/${name}`,
]);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-failures-'));
const file = path.join(folder, 'forms');
writeFileSync(file, '');
const mocha = path.join(ROOT, 'node_modules/mocha/bin/mocha.js');
const { status } = spawnSync(process.execPath, [mocha, ...files, ...IGNORED], {
  ...{ cwd: ROOT, stdio: 'inherit' },
  env: { ...process.env, FAILURE_FORMS_FILE: file, [ALL_CASES]: 'yes' },
});
const before = some.length > 0 ? (JSON.parse(readFileSync(FORMS, 'utf8')) as FormsOfFailures) : {};
const kept = Object.entries(before).flatMap(([id, names]) => names.map((name) => `${id} ${name}`));
const passed = new Set([...kept, ...readFileSync(file, 'utf8').split('\n')]);
rmSync(folder, { recursive: true });
const forms: FormsOfFailures = Object.fromEntries(
  Object.keys(FAILURES)
    .map((id) => [id, FORM_NAMES.filter((form) => passed.has(`${id} ${form}`))] as const)
    .filter(([, names]) => names.length > 0),
);
const lines = Object.entries(forms).map(([id, names]) => `  "${id}": [${names.map((name) => `"${name}"`).join(', ')}]`);
writeFileSync(FORMS, `{\n${lines.join(',\n')}\n}\n`);
writeFileSync(PAGE, withFailures(readFileSync(PAGE, 'utf8'), FAILURES, forms));
process.exit(status ?? 1);
