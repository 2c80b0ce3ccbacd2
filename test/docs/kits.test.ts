import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';

/** Complete examples of the page. Examples of providers and stores need fixtures and a store. */
const RUN = [
  'testAgent',
  'testPolicy',
  'testAuth',
  'testCredential',
  'testSecrets',
  'testOperation',
  'testPlugin',
] as const;

const blocks = readBlocks().filter(({ page, language }) => page === 'docs/plugins/12-testing.md' && language === 'ts');
const at = (module: string): string => JSON.stringify(path.join(PACKAGE_ROOT, module));
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-kits-'));

for (const kit of RUN) {
  const { text = '' } = blocks.find((block) => block.text.includes(`\n${kit}(`)) ?? {};
  const file = path.join(folder, `${kit}.mts`);
  const own = text
    .replaceAll("from 'tollgate'", `from ${at('contract/index.ts')}`)
    .replaceAll("'tollgate/codec'", at('plugins/providers/kit/index.ts'))
    .replaceAll("'tollgate/conformance'", at('test/conformance/index.ts'));
  writeFileSync(file, own);
  // Importing the example registers its tests in this file.
  await import(file);
}

describe('the kits of docs/plugins/12-testing.md', () => {
  after(() => rmSync(folder, { recursive: true }));

  it('have an example each, and a row in its table', () => {
    const shown = blocks.flatMap(({ text }) => [...text.matchAll(/^(test\w+)\(/gm)].map(([, name]) => name));
    expect(shown).to.include.members([...RUN, 'testProvider', 'testStore']);
  });
});
