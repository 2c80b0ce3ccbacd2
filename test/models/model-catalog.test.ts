import { expect } from 'chai';
import { problemsOfRows } from '../../contract/price-rows.ts';
import type { ModelInfo, ModelTable, Price, Provider } from '../../contract/provider.ts';
import { createCatalog, listModels, modelsOf } from '../../models/catalog.ts';
import { loadModelTable, problemsOfTable } from '../../models/model-table.ts';

const TABLE: ModelTable = {
  vendors: {
    acme: {
      big: { contextWindow: 1000, price: { input: 2, output: 8, cached_input: 0.5 } },
      'big-mini': { contextWindow: 500, price: { input: 1, output: 4 } },
      embed: { kind: 'embeddings', price: { input: 0.1, output: 0 } },
      mystery: {},
    },
    twin: 'acme',
  },
};

function provider(more: Partial<Provider> = {}): Provider {
  return {
    specVersion: 1,
    vendor: 'acme',
    baseUrl: 'http://localhost',
    error: () => ({ class: 'upstream_error', message: '' }),
    ...more,
  };
}

function catalogOf(more: Partial<Provider> = {}) {
  return createCatalog(new Map([['acme', provider(more)]]), TABLE);
}

describe('models', () => {
  const FOUND: readonly (readonly [requested: string, id: string | undefined])[] = [
    ['big', 'big'],
    ['big-2026-01-01', 'big'],
    ['big-mini-2026-01-01', 'big-mini'],
    ['bi', undefined],
    ['', undefined],
    ['Big', undefined],
    ['__proto__', undefined],
  ];
  for (const [requested, id] of FOUND) {
    it(`finds ${id ?? 'nothing'} for "${requested}"`, () => {
      expect(catalogOf().find('acme', requested)?.id).to.equal(id);
    });
  }

  it('shares the rows of a vendor that refers to another', () => {
    expect(modelsOf(provider({ vendor: 'twin' }), TABLE).map(({ id }) => id)).to.include('big-mini');
  });

  it('has no models for an unknown vendor', () => {
    expect(modelsOf(provider({ vendor: 'toString' }), TABLE)).to.deep.equal([]);
  });

  it('replaces the list by the configured one and keeps the facts of matching prefixes', () => {
    const catalog = catalogOf({ models: [{ id: 'big-2026' }, { id: 'own' }] });
    expect(catalog.list('acme')).to.deep.equal(['big-2026', 'own']);
    expect(catalog.find('acme', 'big-2026')?.contextWindow).to.equal(1000);
    expect(catalog.find('acme', 'big-mini')).to.equal(undefined);
  });

  it('adds configured names to the list', () => {
    expect(catalogOf({ addModels: [{ id: 'new' }] }).list('acme')).to.deep.equal([
      'big',
      'big-mini',
      'embed',
      'mystery',
      'new',
    ]);
  });

  it('accepts every non-empty name if so configured', () => {
    const catalog = catalogOf({ anyModel: true, models: [] });
    expect(catalog.find('acme', 'big-mini-2026-01-01')).to.deep.include({ contextWindow: 500 });
    expect(catalog.find('acme', 'big-mini-turbo')).to.deep.equal({ id: 'big-mini-turbo' });
    expect(catalog.find('acme', 'unheard-of')).to.deep.equal({ id: 'unheard-of' });
    expect(catalog.find('acme', '')).to.equal(undefined);
  });

  it('suggests near names', () => {
    expect(catalogOf().suggest('acme', 'bigmini')[0]).to.equal('big-mini');
  });

  it('returns nothing for an unknown instance', () => {
    expect(catalogOf().has('missing')).to.equal(false);
    expect(catalogOf().find('missing', 'big')).to.equal(undefined);
  });
});

describe('prices', () => {
  const big = modelsOf(provider(), TABLE)[0] as ModelInfo;
  const CASES: readonly (readonly [string, Provider['prices'], ModelInfo | undefined, unknown])[] = [
    ['takes the table’s', undefined, big, { input: 2, output: 8, cached_input: 0.5 }],
    ['puts the operator’s over it', { big: { input: 3, output: 9 } }, big, { input: 3, output: 9 }],
    [
      'takes the operator’s longest prefix',
      { '*': { input: 1, output: 1 }, bi: { input: 5, output: 5 } },
      big,
      {
        input: 5,
        output: 5,
      },
    ],
    ['takes `*` for every model', { '*': { input: 1, output: 1 } }, undefined, { input: 1, output: 1 }],
    ['keeps the table’s output when only input is set', { big: { input: 3 } }, big, { input: 3, output: 8 }],
    [
      'keeps the table’s cache rate when only output is set',
      { big: { output: 9 } },
      big,
      {
        input: 2,
        output: 9,
        cached_input: 0.5,
      },
    ],
    ['is unknown when half of it is', { '*': { input: 1 } }, undefined, undefined],
    ['is unknown without a price', undefined, { id: 'mystery' }, undefined],
    ['needs no output for embeddings', { '*': { input: 1 } }, { id: 'e', kind: 'embeddings' }, { input: 1, output: 0 }],
  ];
  for (const [title, prices, model, price] of CASES) {
    it(title, () => {
      const target = { provider: 'acme', model: 'big' };
      expect(catalogOf(prices ? { prices } : {}).priceOf(target, model)).to.deep.equal(price);
    });
  }

  it('multiplies every rate of the table in a more expensive region, but neither fees nor the operator’s own price (E3)', () => {
    const price: Price = {
      ...{ input: 2, output: 9, cached_input: 0.15, fees: { web_search_requests: 0.014 } },
      tiers: [{ input_tokens_above: 1000, input: 4, output: 18 }],
      service_tiers: { flex: { input: 1, output: 4.5 } },
    };
    const rows = [
      { ...price, until: '2026-01-01' },
      { ...price, input: 3, from: '2026-01-01' },
    ];
    const table: ModelTable = { vendors: { acme: { new: { price }, old: { price }, timed: { price: rows } } } };
    const offer = provider({
      dearerPlace: { models: /^(?:new|timed)/, by: 1.1 },
      prices: { 'new-own': { input: 1, output: 1 } },
    });
    const catalog = createCatalog(new Map([['acme', offer]]), table);
    const priceOf = (model: string) => catalog.priceOf({ provider: 'acme', model }, catalog.find('acme', model));
    expect(priceOf('old')).to.deep.equal(price);
    const dearer = {
      ...price,
      ...{ input: 2.2, output: 9.9, cached_input: 0.165 },
      tiers: [{ input_tokens_above: 1000, input: 4.4, output: 19.8 }],
      service_tiers: { flex: { input: 1.1, output: 4.95 } },
    };
    expect(priceOf('new')).to.deep.equal(dearer);
    expect(priceOf('timed')).to.include({ input: 3.3, from: '2026-01-01' });
    expect(priceOf('new-own')).to.include({ input: 1, output: 1 });
  });

  it('derives the rate of one-hour cache writes from the input rate if a vendor documents it', () => {
    const target = { provider: 'acme', model: 'big' };
    const catalog = catalogOf({ priceFactors: { cache_write_1h: 2 } });
    expect(catalog.priceOf(target, catalog.find('acme', 'big'))).to.include({ input: 2, cache_write_1h: 4 });
  });
});

describe('config/models.json', () => {
  const { vendors } = loadModelTable();
  const rows = Object.entries(vendors).flatMap(([vendor, models]) =>
    typeof models === 'string' ? [] : Object.entries(models).map(([id, facts]) => ({ vendor, id, ...facts })),
  );

  it('can be adopted by a gateway of this build when it is published', () => {
    expect(problemsOfTable(loadModelTable())).to.deep.equal([]);
  });

  it('has a version and a date, and a source for each row (E16)', () => {
    const { version, date, sources = {} } = loadModelTable();
    expect(version).to.be.a('number').that.is.greaterThan(1);
    expect(date).to.match(/^\d{4}-\d\d-\d\d$/);
    const without = rows.filter(({ source = [] }) => source.length === 0 || source.some((name) => !sources[name]));
    expect(without.map(({ id }) => id)).to.deep.equal([]);
  });

  it('has shutdown dates: the last day on which a model is served (E16)', () => {
    const ends = rows.flatMap(({ id, shutdown }) => (shutdown === undefined ? [] : [[id, shutdown] as const]));
    expect(ends.filter(([, day]) => Number.isNaN(Date.parse(day)) || day.length !== 10)).to.deep.equal([]);
    expect(Object.fromEntries(ends)).to.include({
      'gpt-4-turbo': '2026-10-23',
      o3: '2026-12-11',
      'gemini-2.5-pro': '2026-12-01',
    });
  });

  /** Models that are free of charge. */
  const FREE = ['omni-moderation'];
  /** Each row of a time-limited price, and each other price. */
  const prices = rows.flatMap(({ id, price }) =>
    (price ? [price].flat() : []).map((each: Price) => ({ id, price: each })),
  );

  it('never has a price of zero for a paid model', () => {
    const isPaid = ({ id, price }: (typeof prices)[number]) =>
      !id.endsWith(':free') && !FREE.includes(id) && price.fees === undefined;
    const free = prices.filter((each) => each.price.input === 0 && isPaid(each));
    expect(free).to.deep.equal([]);
  });

  it('has no rate of 0 for the cache, which would mean unknown', () => {
    const zero = prices.filter(({ price }) =>
      [price, ...(price.tiers ?? [])].some(({ cached_input: cached }) => cached === 0),
    );
    expect(zero).to.deep.equal([]);
  });

  it('has tiers in rising order, each more expensive than the last', () => {
    const falling = prices.filter(({ price }) => {
      const inputs = [price, ...(price.tiers ?? [])].map(({ input }) => input);
      return inputs.some((input, at) => at > 0 && input <= (inputs[at - 1] ?? 0));
    });
    expect(falling).to.deep.equal([]);
  });

  it('has no gap between time-limited prices (E17)', () => {
    const wrong = rows.filter(({ price }) => Array.isArray(price) && problemsOfRows(price).length > 0);
    expect(wrong).to.deep.equal([]);
  });

  it('contains only fields that the catalog reads', () => {
    const fields = new Set(rows.flatMap((row) => Object.keys(row)));
    expect([...fields].sort()).to.deep.equal([
      ...['contextWindow', 'id', 'inputModalities', 'kind', 'maxOutput', 'outputModalities', 'price'],
      ...['priceCheck', 'priceSource', 'shutdown', 'source', 'vendor'],
    ]);
  });
});

describe('the shutdown of a model', () => {
  const rows = {
    old: { shutdown: '2000-01-01' },
    late: { shutdown: '2999-01-01', inputModalities: ['text', 'image'], price: { input: 2, output: 8 } },
    steady: {},
  };
  const table: ModelTable = { vendors: { acme: rows, twin: 'acme' } };
  const listed = (vendor: string) => {
    const catalog = createCatalog(new Map([['acme', provider({ vendor })]]), table);
    const principal = { credential: 'key', userId: 'u', account: 'u' } as const;
    return listModels({ catalog, aliases: new Map([['mine', ['acme/late']]]) }, principal, 1);
  };

  it('is listed with its other facts, for an alias too, and callers do not see models that are already shut down (E16)', () => {
    expect(listed('acme').map(({ id, shutdown }) => [id, shutdown])).to.deep.equal([
      ['mine', '2999-01-01'],
      ['acme/late', '2999-01-01'],
      ['acme/steady', undefined],
    ]);
    expect(listed('acme')[1]).to.deep.include({ inputModalities: ['text', 'image'], price: { input: 2, output: 8 } });
  });

  it('belongs to one vendor: another one with the same rows may continue to serve the model (E16)', () => {
    expect(listed('twin').map(({ id, shutdown }) => [id, shutdown])).to.deep.include(['acme/old', undefined]);
  });

  it('blocks no call: the vendor decides, and fine-tuned models have other dates (E16)', () => {
    const catalog = createCatalog(new Map([['acme', provider()]]), table);
    expect(catalog.find('acme', 'old')?.id).to.equal('old');
  });
});
