/**
 * Writes `docs/providers/<name>.md` for every provider, and the tables of `docs/dialects`; the first half of `npm run
 * matrix`.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadProviders } from '../plugins/all-providers.ts';
import { loadDialects, writeTable } from './dialect-page.ts';
import { openDialectRuns } from './dialect-runs.ts';
import { formatProviderPage, keepWritten, readArrivals } from './provider-page.ts';

const FOLDER = new URL('../../../docs/providers/', import.meta.url);
const DIALECTS = new URL('../../../docs/dialects/', import.meta.url);

mkdirSync(FOLDER, { recursive: true });
const providers = await loadProviders();
const runs = await openDialectRuns(providers);
for (const provider of providers) {
  const page = formatProviderPage(provider, await readArrivals(provider, runs));
  const file = new URL(`${provider.name}.md`, FOLDER);
  writeFileSync(file, keepWritten(existsSync(file) ? readFileSync(file, 'utf8') : '', page));
}
for (const dialect of await loadDialects()) {
  const page = new URL(`${dialect.name}.md`, DIALECTS);
  if (existsSync(page)) writeFileSync(page, await writeTable(readFileSync(page, 'utf8'), dialect, providers, runs));
}
await runs.close();
