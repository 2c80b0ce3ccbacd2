import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { buildTable, type Listing, type PriceSource } from '../../cli/generate/model-table/build-table.ts';
import { formatTable, packageOf } from '../../cli/generate/model-table/format-table.ts';
import { readGenaiPrices, readPiAi } from '../../cli/generate/model-table/read-sources.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import type { ModelFacts, ModelTable } from '../../contract/provider.ts';
import { loadModelTable, problemsOfTable, rowsOf } from '../../models/model-table.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

const DATE = '2026-12-01';
const source = (name: string, models: Readonly<Record<string, Listing>>): PriceSource => ({
  name,
  about: `${name} 1.0`,
  list: (vendor) => (vendor === 'openai' && name === 'pi-ai' ? Object.keys(models) : []),
  find: (vendor, model) => (vendor === 'openai' ? models[model] : undefined),
});
/** Builds a table of one model of OpenAI. */
function build(row: ModelFacts | undefined, catalog: Listing | undefined, other: Listing | undefined) {
  const current: ModelTable = {
    ...{ version: 3, date: '2026-11-01', sources: {} },
    vendors: { openai: row ? { 'gpt-7': row } : {}, azure: 'openai' },
  };
  const named = (listing: Listing | undefined) => (listing ? { 'gpt-7': listing } : {});
  const { table, problems } = buildTable(
    current,
    [source('pi-ai', named(catalog)), source('genai-prices', named(other))],
    DATE,
  );
  const rows = table.vendors['openai'] as Readonly<Record<string, ModelFacts>>;
  return { table, problems, row: rows['gpt-7'] };
}
const ROW: ModelFacts = { source: ['pi-ai'], price: { input: 2, output: 8, cached_input: 0.2 } };

describe('G53: the model table', () => {
  afterEach(removeFolders);

  it('takes a price on which both sources agree, and names both', () => {
    const { row, table, problems } = build(
      ROW,
      { price: { input: 1, output: 4, cached_input: 0.1 } },
      { price: { input: 1, output: 4 } },
    );
    expect(row).to.deep.equal({
      source: ['pi-ai', 'genai-prices'],
      priceSource: ['pi-ai', 'genai-prices'],
      price: { input: 1, output: 4, cached_input: 0.1 },
    });
    expect(problems).to.deep.equal([]);
    expect(table).to.include({ version: 4, date: DATE });
    expect(table.sources).to.deep.equal({ 'pi-ai': 'pi-ai 1.0', 'genai-prices': 'genai-prices 1.0' });
  });

  it('marks a price that one source has', () => {
    const { row } = build(ROW, { price: { input: 1, output: 4 } }, undefined);
    expect(row)
      .to.include({ priceCheck: 'one source' })
      .and.deep.include({ price: { input: 1, output: 4 } });
    expect(row?.priceSource).to.deep.equal(['pi-ai']);
  });

  it('keeps and marks the price in use where the sources differ, and reports both', () => {
    const { row, problems } = build(ROW, { price: { input: 2, output: 8 } }, { price: { input: 3, output: 9 } });
    expect(row).to.include({ priceCheck: 'sources differ' }).and.deep.include({ price: ROW.price });
    expect(problems).to.deep.equal(['openai/gpt-7: pi-ai 2/8/-/-, genai-prices 3/9/-/-; the price in use stays']);
  });

  it('follows the source of a price that no source states any more', () => {
    const { row } = build(ROW, { price: { input: 4, output: 8 } }, { price: { input: 3, output: 9 } });
    expect(row)
      .to.include({ priceCheck: 'sources differ' })
      .and.deep.include({ price: { input: 4, output: 8 } });
  });

  it('adds no model on which the sources differ, and no price from patterns alone', () => {
    expect(build(undefined, { price: { input: 1, output: 4 } }, { price: { input: 2, output: 4 } }).row).to.equal(
      undefined,
    );
    expect(build(undefined, { price: { input: 1, output: 4 } }, undefined).row).to.include({
      priceCheck: 'one source',
    });
    const { row } = build({ source: ['names'] }, undefined, { price: { input: 1, output: 4 } });
    expect(row).to.deep.equal({ source: ['names'] });
  });

  it('leaves rates by tier, hour or hand to a person, and reports them', () => {
    const tiers: ModelFacts = {
      source: ['pi-ai'],
      price: { input: 2, output: 8, service_tiers: { flex: { input: 1, output: 4 } } },
    };
    const byHand: ModelFacts = { source: ['openai-pricing'], price: { input: 2, output: 8 } };
    for (const row of [tiers, byHand]) {
      const built = build(row, { price: { input: 1, output: 4 } }, undefined);
      expect(built.row).to.include({ priceCheck: 'sources differ' }).and.deep.include({ price: row.price });
      expect(built.problems).to.have.length(1);
    }
  });

  it('has the context window of the other source where the catalog states the bound of a price', () => {
    const tiers = [{ input_tokens_above: 272_000, input: 4, output: 12 }];
    const row: ModelFacts = { ...ROW, contextWindow: 272_000, price: { input: 2, output: 8, tiers } };
    expect(build(row, undefined, { contextWindow: 1_050_000 }).row?.contextWindow).to.equal(1_050_000);
  });

  it('is the same edition if nothing changed', () => {
    const first = build(ROW, { price: { input: 2, output: 8 } }, undefined).table;
    const again = buildTable(
      first,
      [source('pi-ai', { 'gpt-7': { price: { input: 2, output: 8 } } }), source('genai-prices', {})],
      '2027-01-01',
    );
    expect(again.table).to.equal(first);
  });

  it('is read from the files of both packages', async () => {
    const price = { input: 5, output: 30, cacheRead: 0.5, cacheWrite: 0 };
    const tier = { inputTokensAbove: 272_000, input: 10, output: 45, cacheRead: 1, cacheWrite: 0 };
    const models = {
      'chat:gpt-5.5': {
        type: 'chat',
        id: 'gpt-5.5',
        input: ['text'],
        cost: { ...price, tiers: [tier] },
        contextWindow: 272_000,
        maxTokens: 9,
      },
      'chat:free': { type: 'chat', id: 'free', cost: { ...price, input: 0, output: 0 } },
      'image:x': { type: 'image', id: 'x' },
    };
    const folder = makeFolder({
      'pi/package.json': '{"version":"1.6.0"}',
      'pi/dist/providers/data/openai.json': JSON.stringify({ 'openai-responses': models }),
      'genai/package.json': '{"version":"0.1.8","type":"module"}',
      'genai/dist/index.js': `export const findProvider = ({ providerId }) => providerId === 'openai' ? ${JSON.stringify(
        {
          models: [
            {
              match: { or: [{ equals: 'gpt-5.5' }, { regex: '^gpt-5\\.5-\\d+$' }] },
              context_window: 1_000_000,
              prices: [
                { prices: { input_mtok: 9, output_mtok: 9 } },
                {
                  constraint: { start_date: '2026-06-01', type: 'start_date' },
                  prices: { input_mtok: { base: 5, tiers: [] }, output_mtok: 30 },
                },
                {
                  constraint: { start_date: '2027-06-01', type: 'start_date' },
                  prices: { input_mtok: 1, output_mtok: 1 },
                },
              ],
            },
            {
              match: { starts_with: 'night' },
              prices: [
                { prices: { input_mtok: 1, output_mtok: 1 } },
                { constraint: { start_time: '00:00' }, prices: {} },
              ],
            },
          ],
        },
      )} : undefined;`,
    });
    const catalog = readPiAi(path.join(folder, 'pi'));
    const other = await readGenaiPrices(path.join(folder, 'genai'), DATE);
    expect(catalog.list('openai')).to.deep.equal(['gpt-5.5', 'free']);
    expect(catalog.find('openai', 'gpt-5.5')).to.deep.equal({
      price: {
        input: 5,
        output: 30,
        cached_input: 0.5,
        tiers: [{ input_tokens_above: 272_000, input: 10, output: 45, cached_input: 1 }],
      },
      maxOutput: 9,
      inputModalities: ['text'],
    });
    expect(catalog.find('openai', 'free')).to.not.have.property('price');
    expect(other.find('openai', 'gpt-5.5')).to.deep.equal({
      price: { input: 5, output: 30 },
      contextWindow: 1_000_000,
    });
    expect(other.find('openai', 'gpt-5.5-2026')).to.have.property('price');
    expect(other.find('openai', 'night')).to.not.have.property('price');
    expect(other.find('openai', 'gpt-5')).to.equal(undefined);
  });
});

describe('G53: the model table of the package', () => {
  const table = loadModelTable();
  const rows = Object.entries(table.vendors).flatMap(([vendor, models]) =>
    typeof models === 'string' ? [] : Object.entries(models).map(([id, facts]) => [`${vendor}/${id}`, facts] as const),
  );

  it('has a named source for each price, and a mark on each that two sources do not confirm', () => {
    const wrong = rows.filter(([, { price, priceSource, priceCheck }]) => {
      if (price === undefined) return priceSource !== undefined || priceCheck !== undefined;
      const isNamed = priceSource?.every((name) => Object.hasOwn(table.sources ?? {}, name)) ?? false;
      return !isNamed || priceSource?.length === 0 || (priceSource?.length === 1 && priceCheck === undefined);
    });
    expect(wrong.map(([id]) => id)).to.deep.equal([]);
    expect(rows.length).to.be.greaterThan(600);
  });

  it('is written as the script writes it', () => {
    expect(readFileSync(path.join(PACKAGE_ROOT, 'config', 'models.json'), 'utf8')).to.equal(formatTable(table));
    expect(problemsOfTable(table)).to.deep.equal([]);
  });

  it('is published as a package of its own, whose version rises with the edition', () => {
    const files = packageOf(table);
    expect(JSON.parse(files['models.json'] ?? '')).to.deep.equal(table);
    expect(JSON.parse(files['package.json'] ?? '')).to.deep.include({
      name: 'tollgate-models',
      version: `1.${table.version}.0`,
    });
  });

  it('tells callers no origin', () => {
    for (const row of rowsOf('openai', table)) expect(row).to.not.have.any.keys('source', 'priceSource', 'priceCheck');
  });
});
