import { expect } from 'chai';
import { isDearer } from '../../contract/price-compare.ts';
import type { Prices } from '../../contract/prices.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const BASE = { input: 2, output: 8, cached_input: 0.2 };
const AT_NIGHT = 'mon-fri 01:00-04:00';

describe('the comparison of two prices', () => {
  const CASES: readonly (readonly [title: string, before: Prices, after: Prices, is: boolean])[] = [
    ['the same is not', BASE, { ...BASE }, false],
    ['a dearer input is', BASE, { ...BASE, input: 2.1 }, true],
    ['a cheaper output is not', BASE, { ...BASE, output: 7 }, false],
    ['cheaper words with a dearer cache are', BASE, { ...BASE, input: 1, cached_input: 0.3 }, true],
    ['no rate for the cache is: it costs as input then', BASE, { input: 2, output: 8 }, true],
    ['a first price is not, nor is a missing one', undefined, BASE, false],
    [
      'a tier for long prompts is',
      BASE,
      { ...BASE, tiers: [{ ...BASE, input_tokens_above: 200_000, input: 4 }] },
      true,
    ],
    [
      'a tier that begins later is not',
      { ...BASE, tiers: [{ ...BASE, input_tokens_above: 200_000, input: 4 }] },
      { ...BASE, tiers: [{ ...BASE, input_tokens_above: 300_000, input: 4 }] },
      false,
    ],
    [
      'a dearer service tier is',
      { ...BASE, service_tiers: { flex: { input: 1, output: 4 } } },
      { ...BASE, service_tiers: { flex: { input: 1.5, output: 4 } } },
      true,
    ],
    ['a fee for each request is', BASE, { ...BASE, fees: { requests: 0.01 } }, true],
    ['a first fee for a search is not', BASE, { ...BASE, fees: { web_search_requests: 0.01 } }, false],
    ['a dearer region is', { ...BASE, regions: { us: 1.1 } }, { ...BASE, regions: { us: 1.2 } }, true],
    [
      'one that rises on a day to come is',
      BASE,
      [
        { ...BASE, until: '2027-01-01' },
        { ...BASE, input: 4, from: '2027-01-01' },
      ],
      true,
    ],
    [
      'one that is dearer in days that are over is not',
      BASE,
      [
        { ...BASE, input: 4, until: '2026-11-01' },
        { ...BASE, from: '2026-11-01' },
      ],
      false,
    ],
    [
      'a rise that was announced, and came, is not',
      [
        { ...BASE, until: '2026-12-01' },
        { ...BASE, input: 4, from: '2026-12-01' },
      ],
      [
        { ...BASE, until: '2026-12-01' },
        { ...BASE, input: 4, from: '2026-12-01' },
      ],
      false,
    ],
    ['one that is dearer at some hours is', BASE, [{ ...BASE }, { ...BASE, input: 4, hours: AT_NIGHT }], true],
    ['one that is cheaper at some hours is not', BASE, [{ ...BASE }, { ...BASE, input: 1, hours: AT_NIGHT }], false],
    [
      'the same price at more hours is',
      [{ ...BASE }, { ...BASE, input: 4, hours: AT_NIGHT }],
      [{ ...BASE }, { ...BASE, input: 4, hours: `${AT_NIGHT}, sat 22:00-23:00` }],
      true,
    ],
  ];
  for (const [title, before, after, is] of CASES)
    it(`${title} (E16)`, () => {
      expect(isDearer(before, after, NOW)).to.equal(is);
    });
});
