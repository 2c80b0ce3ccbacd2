import { expect } from 'chai';
import type { Principal } from '../../contract/call.ts';
import { isAllowed } from '../../contract/model-names.ts';
import type { Offer } from '../../contract/provider.ts';
import { createCatalog } from '../../models/catalog.ts';
import { loadModelTable } from '../../models/model-table.ts';

function offer(vendor: string, more: Partial<Offer> = {}): Offer {
  return {
    specVersion: 1,
    vendor,
    baseUrl: 'http://localhost',
    error: () => ({ class: 'upstream_error', message: '' }),
    ...more,
  };
}

const VENDORS = ['openai', 'anthropic', 'gemini', 'openrouter', 'mistral'] as const;
const catalog = createCatalog(new Map(VENDORS.map((vendor) => [vendor, offer(vendor)])), loadModelTable());

function priceOf(provider: string, model: string) {
  return catalog.priceOf({ provider, model }, catalog.find(provider, model));
}

describe('the price and limits of a model', () => {
  for (const [provider, model, listed] of [
    ['openai', 'gpt-5-2026-08-07', 'gpt-5'],
    ['openai', 'gpt-4-0613', 'gpt-4'],
    ['openai', 'gpt-5.2-latest', 'gpt-5.2'],
    ['anthropic', 'claude-opus-4-6-20260205', 'claude-opus-4-6'],
    ['anthropic', 'claude-opus-4-6@20260205', 'claude-opus-4-6'],
    ['gemini', 'gemini-2.5-flash-001', 'gemini-2.5-flash'],
    ['gemini', 'gemini-2.5-flash-preview-05-20', 'gemini-2.5-flash'],
    ['gemini', 'models/gemini-2.5-flash', 'gemini-2.5-flash'],
  ] as const) {
    it(`D12: of ${model} are those of ${listed}`, () => {
      expect(catalog.find(provider, model)?.id).to.equal(listed);
      expect(priceOf(provider, model)?.input).to.equal(priceOf(provider, listed)?.input).and.not.equal(undefined);
    });
  }

  for (const [provider, model] of [
    ['openai', 'gpt-5.7'],
    ['openai', 'gpt-5-turbo'],
    ['openai', 'o3-deep-research'],
    ['openai', 'gpt-6'],
    ['openai', 'ft:gpt-4o-mini-2024-07-18:acme::a1'],
    ['gemini', 'gemini-5-carbon'],
    ['gemini', 'models/gemini-5-carbon'],
    ['anthropic', 'claude-opus-6'],
    ['openrouter', 'openai/gpt-4.1:batch'],
    ['openrouter', 'openai/gpt-4.1:nitro'],
  ] as const) {
    it(`D12, D13, D26: of ${model} are unknown, although it is accepted`, () => {
      const found = catalog.find(provider, model);
      expect(found).to.not.equal(undefined);
      expect(found).to.not.have.any.keys('price', 'contextWindow', 'maxOutput');
      expect(priceOf(provider, model)).to.equal(undefined);
    });
  }

  it('D13: of a free variant include a price of zero', () => {
    expect(priceOf('openrouter', 'openai/gpt-oss-120b:free')).to.include({ input: 0, output: 0 });
  });

  it('D12: are the operator’s values for another version', () => {
    const priced = createCatalog(
      new Map([['openai', offer('openai', { prices: { 'gpt-5.7': { input: 9, output: 9 } } })]]),
    );
    const target = { provider: 'openai', model: 'gpt-5.7' };
    expect(priced.priceOf(target, priced.find('openai', 'gpt-5.7'))).to.include({ input: 9, output: 9 });
  });

  it('D12: are those of the model behind the operator’s name', () => {
    const behind = createCatalog(
      new Map([['azure', offer('azure', { anyModel: true, addModels: [{ id: 'prod', base: 'gpt-5' }] })]]),
    );
    expect(behind.find('azure', 'prod')?.price).to.include({ input: priceOf('openai', 'gpt-5')?.input });
    expect(behind.find('azure', 'gpt-5-eu')).to.deep.equal({ id: 'gpt-5-eu' });
  });

  it('D26: are not derived beyond the operator’s list', () => {
    const own = createCatalog(new Map([['openai', offer('openai', { models: [{ id: 'gpt-5' }] })]]));
    expect(own.find('openai', 'gpt-6')).to.equal(undefined);
  });

  it('charge one-hour cache writes at twice the input price at Anthropic, in every tier, and at OpenRouter’s Claude', () => {
    const factored = createCatalog(
      new Map([['anthropic', offer('anthropic', { priceFactors: { cache_write_1h: 2 } })]]),
    );
    const model = 'claude-haiku-5-5';
    const price = factored.priceOf({ provider: 'anthropic', model }, factored.find('anthropic', model));
    for (const rates of [price, ...(price?.tiers ?? [])])
      expect(rates?.cache_write_1h).to.equal((rates?.input ?? 0) * 2);
    const relayed = priceOf('openrouter', 'anthropic/claude-opus-5');
    expect(relayed?.cache_write_1h).to.equal((relayed?.input ?? 0) * 2);
  });
});

describe('a key that may use gpt-5', () => {
  const principal: Principal = { credential: 'key', userId: 'u', account: 'u', models: ['gpt-5'] };
  for (const [model, allowed] of [
    ['gpt-5', true],
    ['gpt-5-2026-08-07', true],
    ['gpt-5.6', false],
    ['gpt-5-turbo', false],
    ['gpt-5-mini', false],
  ] as const) {
    it(`D12: may ${allowed ? '' : 'not '}call ${model}`, () => {
      expect(isAllowed(catalog, principal, { provider: 'openai', model })).to.equal(allowed);
    });
  }
});
