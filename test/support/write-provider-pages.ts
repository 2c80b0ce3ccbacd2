/** Writes `docs/providers/<name>.md` for every provider of the folder; the first half of `npm run matrix`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadProviders } from './all-providers.ts';
import { formatProviderPage } from './provider-page.ts';

const FOLDER = new URL('../../docs/providers/', import.meta.url);

mkdirSync(FOLDER, { recursive: true });
for (const provider of await loadProviders()) {
  writeFileSync(new URL(`${provider.name}.md`, FOLDER), formatProviderPage(provider));
}
