import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DIALECT_FEATURES } from '../support/pages/dialect-features.ts';
import { cellOf, loadDialects, writeTable } from '../support/pages/dialect-page.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';

const FOLDER = new URL('../../docs/dialects/', import.meta.url);
const PROVIDERS = await loadProviders();
const DIALECTS = await loadDialects();

describe('docs/dialects', () => {
  for (const dialect of DIALECTS.filter(({ name }) => existsSync(new URL(`${name}.md`, FOLDER))))
    it(`shows what each provider makes of ${dialect.name} as its codec does (npm run matrix writes the table)`, () => {
      const page = readFileSync(new URL(`${dialect.name}.md`, FOLDER), 'utf8');
      expect(writeTable(page, dialect, PROVIDERS)).to.equal(page);
    });

  it('has features of every dialect', () => {
    expect(Object.keys(DIALECT_FEATURES).sort()).to.deep.equal(DIALECTS.map(({ name }) => name).sort());
  });

  it('tells native from translated, left out and refused', () => {
    const say = (name: string, vendor: string, title: string) => {
      const dialect = DIALECTS.find((one) => one.name === name);
      const provider = PROVIDERS.find((one) => one.name === vendor);
      const feature = DIALECT_FEATURES[name]?.features.find((one) => one.title === title);
      if (!dialect || !provider || !feature) throw new Error(`${name}, ${vendor} or ${title} is not there`);
      return cellOf(dialect, provider, feature);
    };
    expect(say('messages', 'anthropic', 'server tools (`web_search_…`)')).to.equal('native');
    expect(say('messages', 'mistral', 'server tools (`web_search_…`)')).to.equal('refused');
    expect(say('responses', 'mistral', 'server tools (`web_search`)')).to.equal('left out');
    expect(say('gemini', 'openai', '`functionDeclarations`')).to.equal('translated');
  });
});
