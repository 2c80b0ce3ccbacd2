import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { formatProviderPage } from '../support/pages/provider-page.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';

const FOLDER = new URL('../../docs/providers/', import.meta.url);

const PROVIDERS = await loadProviders();

describe('docs/providers', () => {
  for (const provider of PROVIDERS) {
    it(`shows the rules of ${provider.name} as the plugin has them (npm run matrix writes the page)`, () => {
      const page = new URL(`${provider.name}.md`, FOLDER);
      expect(existsSync(page)).to.equal(true);
      expect(readFileSync(page, 'utf8')).to.equal(formatProviderPage(provider));
    });
  }

  it('has a matrix with every provider and an answer in every cell', () => {
    const matrix = readFileSync(new URL('matrix.md', FOLDER), 'utf8');
    for (const { name } of PROVIDERS) expect(matrix).to.include(`[${name}](${name}.md)`);
    const cells = matrix
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.startsWith('| |'))
      .map((line) => line.slice(2, -2).split(' | ').slice(1));
    for (const row of cells) {
      expect(row).to.have.length(PROVIDERS.length);
      for (const cell of row) expect(cell).to.match(/^\[(verified|emulated|refused|not offered)\]\[/);
    }
    expect(cells.length).to.be.greaterThan(60);
  });
});
