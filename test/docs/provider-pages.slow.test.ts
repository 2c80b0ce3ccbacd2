import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { SAMPLES } from '../conformance/provider-samples.ts';
import { arrivedCell, type DialectRuns, openDialectRuns } from '../support/pages/dialect-runs.ts';
import { formatProviderPage, keepWritten, readArrivals } from '../support/pages/provider-page.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';

const FOLDER = new URL('../../docs/providers/', import.meta.url);

const PROVIDERS = await loadProviders();

describe('docs/providers', function () {
  this.timeout(120_000);
  let runs: DialectRuns;
  before(async () => {
    runs = await openDialectRuns(PROVIDERS);
  });
  after(() => runs?.close());

  for (const provider of PROVIDERS)
    it(`shows what of each field arrived at ${provider.name} next to the rules that the plugin has (E22; npm run matrix writes the page)`, async () => {
      const page = new URL(`${provider.name}.md`, FOLDER);
      expect(existsSync(page)).to.equal(true);
      const text = readFileSync(page, 'utf8');
      expect(text).to.equal(keepWritten(text, formatProviderPage(provider, await readArrivals(provider, runs))));
    });

  it('has a matrix that says of each field what arrived (E22)', async () => {
    const matrix = readFileSync(new URL('matrix.md', FOLDER), 'utf8');
    const [head = '', ...lines] = matrix.split('\n').filter((line) => line.startsWith('| '));
    const columns = head.split(' | ').map((cell) => /\[([^\]]+)\]/.exec(cell)?.[1]);
    const wrong: string[] = [];
    for (const provider of PROVIDERS)
      for (const field of Object.keys(SAMPLES)) {
        const row = lines.find((line) => line.startsWith(`| \`${field}\` |`))?.split(' | ') ?? [];
        const said = row[columns.indexOf(provider.name)];
        const arrived = arrivedCell(provider, field, await runs.arrivalOf(provider, field)).says;
        if (said !== arrived) wrong.push(`${provider.name} ${field}: ${said}, not ${arrived}`);
      }
    expect(wrong).to.deep.equal([]);
  });

  it('has a matrix with every provider and an answer in every cell', () => {
    const matrix = readFileSync(new URL('matrix.md', FOLDER), 'utf8');
    for (const { name } of PROVIDERS) expect(matrix).to.include(`[${name}](${name}.md)`);
    const cells = matrix
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.startsWith('| |'))
      .map((line) => line.slice(2, -2).split(' | ').slice(1));
    for (const row of cells) {
      for (const file of row.at(-1)?.split(', ') ?? [])
        expect(existsSync(new URL(`../conformance/${file}`, import.meta.url)), file).to.equal(true);
      expect(row.slice(0, -1)).to.have.length(PROVIDERS.length);
      for (const cell of row.slice(0, -1)) expect(cell).to.match(/^(verified|emulated|refused|not offered)$/);
    }
    expect(cells.length).to.be.greaterThan(60);
  });
});
