import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import type { Offer } from '../../contract/provider.ts';
import { createCatalog } from '../../models/catalog.ts';
import { loadModelTable } from '../../models/model-table.ts';

/**
 * Folders with texts that readers copy. Decisions and the changelog describe the past, and other pages are generated
 * from codecs.
 */
const FOLDERS = ['docs', 'deploy', 'examples'];
const NOT_READ = /^docs\/(decisions\/|providers\/|(?:clients|bills)\.md$)|\.(png|svg|ico|lock)$/;

function filesToRead(): readonly string[] {
  const below = FOLDERS.flatMap((folder) =>
    readdirSync(path.join(PACKAGE_ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(PACKAGE_ROOT, path.join(entry.parentPath, entry.name))),
  );
  return ['README.md', 'config/default.yaml', ...below.filter((file) => !NOT_READ.test(file))];
}

const table = loadModelTable();
const vendors = Object.keys(table.vendors).filter((vendor) => typeof table.vendors[vendor] !== 'string');
const offerOf = (vendor: string): Offer => ({
  specVersion: 1,
  vendor,
  baseUrl: 'http://127.0.0.1',
  error: () => ({ class: 'timeout', message: '' }),
});
const catalog = createCatalog(new Map(vendors.map((vendor) => [vendor, offerOf(vendor)])), table);

/** Model names in a text that a vendor's rows contain, with their shutdown dates. */
function endsIn(text: string): readonly (readonly [name: string, shutdown: string])[] {
  const words = new Set(text.match(/(?:[a-z][\w-]*\/)?[A-Za-z][\w.-]*\d[\w.-]*(?<![.-])/g));
  return [...words].flatMap((word) => {
    const [first = '', rest] = word.split('/');
    const named = rest !== undefined && vendors.includes(first.replace(/-\d$/, ''));
    const ids = named
      ? [[first.replace(/-\d$/, ''), rest] as const]
      : vendors.map((vendor) => [vendor, rest ?? word] as const);
    return ids.flatMap(([vendor, id]) => {
      const shutdown = catalog.find(vendor, id)?.shutdown;
      return shutdown === undefined ? [] : [[word, shutdown] as const];
    });
  });
}

function endingBefore(day: string): readonly string[] {
  return filesToRead().flatMap((file) =>
    endsIn(readFileSync(path.join(PACKAGE_ROOT, file), 'utf8'))
      .filter(([, shutdown]) => shutdown <= day)
      .map(([name, shutdown]) => `${file} names ${name}, which ends on ${shutdown}`),
  );
}

// If these tests fail, see docs/decisions/model-table.md.
describe('the models in README, docs, deploy and examples', () => {
  it('are found', () => {
    expect(endsIn('model: openai/gpt-5 and `o3`, o3-2025-04-16; gpt-6.1-sol, mistral-large-latest')).to.deep.equal([
      ['openai/gpt-5', '2026-12-11'],
      ['o3', '2026-12-11'],
      ['o3-2025-04-16', '2026-12-11'],
    ]);
  });

  it('are served on the day of this run (E16)', () => {
    expect(endingBefore(new Date().toISOString().slice(0, 10))).to.deep.equal([]);
  });

  it('are served for at least 60 days from the date of the table (E16)', () => {
    const day = new Date(Date.parse(table.date ?? '') + 60 * 86_400_000).toISOString().slice(0, 10);
    expect(endingBefore(day)).to.deep.equal([]);
  });
});
