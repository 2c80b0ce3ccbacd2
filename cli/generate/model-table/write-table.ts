/**
 * Writes the model table `config/models.json` from its two sources: `npm run models`. It fetches both packages with
 * npm, or reads unpacked ones: `npm run models -- --pi-ai FOLDER --genai-prices FOLDER`. It prints the prices on which
 * the sources differ. With `--package FOLDER` it writes the npm package `tollgate-models` of the current table and
 * fetches nothing.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import { loadModelTable, problemsOfTable } from '../../../models/model-table.ts';
import { buildTable } from './build-table.ts';
import { formatTable, packageOf } from './format-table.ts';
import { readGenaiPrices, readPiAi } from './read-sources.ts';

const FILE = path.join(PACKAGE_ROOT, 'config', 'models.json');

const { values: options } = parseArgs({
  options: { 'pi-ai': { type: 'string' }, 'genai-prices': { type: 'string' }, package: { type: 'string' } },
});

/** Fetches a package with npm and unpacks it; returns its folder. */
function fetchPackage(name: string, into: string): string {
  const folder = path.join(into, name.replaceAll('/', '+'));
  mkdirSync(folder);
  const run = (command: string, ...words: readonly string[]): string =>
    execFileSync(command, words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
  run('tar', '-xzf', run('npm', 'pack', '--silent', '--ignore-scripts', name));
  return path.join(folder, 'package');
}

async function writeTable(): Promise<void> {
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'tollgate-models-'));
  try {
    const date = new Date().toISOString().slice(0, 10);
    const piAi = readPiAi(options['pi-ai'] ?? fetchPackage('@earendil-works/pi-ai', temporary));
    const genaiPrices = await readGenaiPrices(
      options['genai-prices'] ?? fetchPackage('@pydantic/genai-prices', temporary),
      date,
    );
    const { table, problems } = buildTable(loadModelTable(), [piAi, genaiPrices], date);
    const wrong = problemsOfTable(table);
    if (wrong.length > 0) throw new Error(`The new table is invalid: ${wrong.join('; ')}`);
    writeFileSync(FILE, formatTable(table));
    process.stdout.write(`${[...problems, `Edition ${table.version} of ${table.date}.`].join('\n')}\n`);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function writePackage(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(packageOf(loadModelTable()))) writeFileSync(path.join(folder, name), text);
}

if (options.package === undefined) await writeTable();
else writePackage(options.package);
