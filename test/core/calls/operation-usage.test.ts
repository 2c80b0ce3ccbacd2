import { expect } from 'chai';
import { isPossible, priceUsage } from '../../../core/calls/operation-usage.ts';

const PRICE = { input: 1, output: 2 };
const TOKENS = { prompt_tokens: 1000, completion_tokens: 500, units: { images: 2 } };

describe('usage of operations', () => {
  it('is charged as reported, by tokens or by a fee for one of its units', () => {
    const reported = { prompt_tokens: 10, completion_tokens: 20, units: { images: 1 }, cost: 0.5 };
    expect(priceUsage(TOKENS, reported, PRICE)).to.include({ cost: 50_000, estimated: false, providerCost: 0.5 });
    const byImage = priceUsage(TOKENS, reported, { ...PRICE, fees: { images: 0.01 } });
    expect(byImage).to.deep.include({ cost: 10_000_000, units: { images: 1 }, estimated: false });
  });

  for (const wrong of [undefined, null, -1, Number.NaN, 1e30, Number.POSITIVE_INFINITY, '12', 1.5, {}, true]) {
    const name = typeof wrong === 'string' ? `"${wrong}"` : String(wrong);
    it(`is the maximum, as an estimate, for a report of ${name} tokens or units (G62)`, () => {
      const tokens = priceUsage(TOKENS, { prompt_tokens: wrong, completion_tokens: 5 }, PRICE);
      expect(tokens).to.deep.include({ cost: 2_000_000, estimated: true });
      expect(tokens.units).to.deep.equal({ prompt_tokens: 1000, completion_tokens: 500 });
      const units = priceUsage(TOKENS, { units: { images: wrong } }, { ...PRICE, fees: { images: 0.01 } });
      expect(units).to.deep.include({ cost: 20_000_000, units: { images: 2 }, estimated: true });
    });
    it(`omits a detail of ${name}`, () => {
      const details = { prompt_tokens: 10, completion_tokens: 0, prompt_tokens_details: { cached_tokens: wrong } };
      expect(priceUsage(TOKENS, details, { ...PRICE, cached_input: 0 })).to.include({ cost: 10_000 });
    });
  }

  it('of zero is the maximum, because the vendor did the work', () => {
    expect(priceUsage(TOKENS, { prompt_tokens: 0, completion_tokens: 0 }, PRICE)).to.include({ estimated: true });
  });

  it('has an unknown cost without a price for its units', () => {
    expect(priceUsage({ units: { documents: 2 } }, { units: { documents: 2 } }, PRICE).cost).to.equal(undefined);
    expect(priceUsage(TOKENS, undefined, undefined).cost).to.equal(undefined);
  });

  it('of a plugin’s own arithmetic must be possible', () => {
    expect(isPossible({ units: { seconds: 1.5 }, cost: 10 })).to.equal(true);
    for (const cost of [Number.NaN, -1, 0.5, 1e30, '1' as never])
      expect(isPossible({ units: {}, cost }), String(cost)).to.equal(false);
    for (const amount of [Number.NaN, -1, 1e30, '1' as never])
      expect(isPossible({ units: { tokens: amount }, cost: 1 }), String(amount)).to.equal(false);
  });
});
