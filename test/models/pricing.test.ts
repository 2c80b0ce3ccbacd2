import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Usage } from '../../contract/chat.ts';
import { costOf, mostOf } from '../../contract/prices.ts';
import type { Price } from '../../contract/provider.ts';
import { picoRate } from '../../contract/units.ts';
import { estimateChat } from '../../core/calls/meter.ts';

function usage(prompt: number, completion: number, cached = 0, written = 0): Usage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
  };
}

/** `written` tokens went to the cache, `hour` of them for an hour. */
function hourly(prompt: number, written: number, hour: number): Usage {
  const details = { cache_write_tokens: written, cache_write_1h_tokens: hour };
  return { ...usage(prompt, 0), prompt_tokens_details: details };
}

const PRICE: Price = {
  input: 2,
  output: 10,
  cached_input: 0.2,
  cache_write: 2.5,
  tiers: [
    { input_tokens_above: 1_000_000, input: 8, output: 40 },
    { input_tokens_above: 200_000, input: 4, output: 15, cached_input: 0.4 },
  ],
};

describe('costOf', () => {
  const COSTS: readonly (readonly [string, Usage, Price | undefined, number | undefined])[] = [
    ['counts dollars per million tokens as micro-dollars per token', usage(1000, 100), PRICE, 3_000_000],
    ...(
      [
        ['as cached text unless it says otherwise', {}, 50 * 5 + 20 * 0.2],
        ['by its rate of those', { cached_image_input: 0.5 }, 50 * 5 + 20 * 0.5],
      ] as const
    ).map(
      ([how, more, cost]) =>
        [
          `charges cached tokens of images ${how}`,
          {
            ...usage(70, 0),
            prompt_tokens_details: { cached_tokens: 20, image_tokens: 70, cached_image_tokens: 20 },
          },
          { ...PRICE, image_input: 5, ...more },
          cost * 1000,
        ] as const,
    ),
    [
      'E4: is unknown where a unit has no price',
      { ...usage(1000, 100), units: { web_search_requests: 2 } },
      PRICE,
      undefined,
    ],
    [
      'E3: multiplies by the factor of the region that the vendor names',
      { ...usage(1000, 0), inference_geo: 'us' },
      { ...PRICE, regions: { us: 1.1 } },
      2_200_000,
    ],
    [
      'E3: is unknown for a region without a factor',
      { ...usage(1000, 0), inference_geo: 'mars' },
      { ...PRICE, regions: { us: 1.1 } },
      undefined,
    ],
    ['prices cached tokens at their own rate', usage(1000, 0, 1000), PRICE, 200_000],
    ['prices written tokens at their own rate', usage(1000, 0, 0, 400), PRICE, 2_200_000],
    ['prices tokens written for an hour as written where no rate is known', hourly(1000, 400, 100), PRICE, 2_200_000],
    [
      'prices tokens written for an hour at their own rate where one is known',
      hourly(1000, 400, 100),
      { ...PRICE, cache_write_1h: 5 },
      1_200_000 + 750_000 + 500_000,
    ],
    [
      'counts no more tokens written for an hour than written',
      hourly(1000, 100, 900),
      { ...PRICE, cache_write_1h: 4 },
      1_800_000 + 400_000,
    ],
    ['prices cached tokens as input when no rate is known', usage(1000, 0, 1000), { input: 2, output: 10 }, 2_000_000],
    ['keeps the base price at the very bound of a tier', usage(200_000, 0), PRICE, 400_000_000],
    ['takes the tier above its bound for the whole call', usage(200_001, 10), PRICE, 800_154_000],
    ['takes the highest tier reached, whatever their order', usage(1_000_001, 0), PRICE, 8_000_008_000],
    ['rounds a fraction up: nothing is free', usage(1, 0), { input: 0.0001, output: 0 }, 1],
    ['is exact where floating point is not', usage(3, 0), { input: 0.1, output: 0 }, 300],
    ['sums thirds without drift', usage(1_000_000, 0), { input: 0.083333, output: 0 }, 83_333_000],
    ['is 0 for a model that costs nothing', usage(1000, 1000), { input: 0, output: 0 }, 0],
    ['is unknown for an unknown price, not 0', usage(1000, 1000), undefined, undefined],
    ['does not go below 0 for more cached tokens than prompt', usage(10, 0, 500, 500), PRICE, 2000],
  ];
  for (const [title, used, price, cost] of COSTS) {
    it(title, () => {
      expect(costOf(used, price)).to.equal(cost);
    });
  }

  it('is exact for every price of the table: no rate has a remainder, and a million tokens cost exactly the price', () => {
    const text = readFileSync(new URL('../../config/models.json', import.meta.url), 'utf8');
    const prices = [...text.matchAll(/"(?:input|output|cached_input|cache_write|cache_write_1h)": ([\d.]+)/g)];
    expect(prices.length).to.be.above(100);
    for (const [row, digits = ''] of prices) {
      const [whole = '', rest = ''] = digits.split('.');
      const pico = BigInt(`${whole}${rest.padEnd(6, '0')}`);
      expect(rest.length, row).to.be.at.most(6);
      expect(BigInt(picoRate(Number(digits))), row).to.equal(pico);
      expect(costOf(usage(1_000_000, 0), { input: Number(digits), output: 0 }), row).to.equal(Number(pico) * 1000);
      expect(costOf(usage(7, 0), { input: Number(digits), output: 0 }), row).to.equal(
        Number((pico * 7n + 999n) / 1000n),
      );
    }
  });

  it('is a whole number that grows with every count', () => {
    const tokens = fc.nat(2_000_000);
    fc.assert(
      fc.property(tokens, tokens, tokens, (prompt, completion, cached) => {
        const cost = costOf(usage(prompt, completion, Math.min(cached, prompt)), PRICE) ?? -1;
        const more = costOf(usage(prompt, completion + 1, Math.min(cached, prompt)), PRICE) ?? -1;
        return Number.isSafeInteger(cost) && cost >= 0 && more >= cost;
      }),
    );
  });
});

describe('the estimate of a chat', () => {
  const model = { id: 'm', maxOutput: 1000 };
  const price = { input: 2, output: 10 };
  const messages = [{ role: 'user', content: 'x'.repeat(400) }] as const;

  it('adds the prompt and the caller’s maximum output', () => {
    expect(estimateChat({ model: 'm', messages, max_tokens: 50 }, model, price)).to.deep.equal({
      units: { prompt_tokens: 104, completion_tokens: 50 },
      cost: 104 * 2000 + 50 * 10_000,
    });
  });

  const OUTPUTS: readonly (readonly [string, object, number])[] = [
    ['what the model can write, without a limit', {}, 1000],
    ['no more than the model can write', { max_tokens: 5000 }, 1000],
    ['the larger of max_completion_tokens and max_tokens', { max_completion_tokens: 7, max_tokens: 9 }, 9],
    ['the output of every choice', { max_tokens: 10, n: 3 }, 30],
  ];
  for (const [title, fields, tokens] of OUTPUTS) {
    it(`counts ${title}`, () => {
      const { units } = estimateChat({ model: 'm', messages, ...fields }, model, price);
      expect(units['completion_tokens']).to.equal(tokens);
    });
  }

  it('is never below the actual cost', () => {
    const used = usage(104, 50, 0, 104);
    const cached = { ...price, cache_write: 2.5 };
    const { cost } = estimateChat({ model: 'm', messages, max_tokens: 50 }, model, cached);
    expect(cost).to.be.at.least(costOf(used, cached) ?? Number.NaN);
  });

  it('is unknown for an unknown price', () => {
    expect(estimateChat({ model: 'm', messages }, { id: 'm' }, undefined).cost).to.equal(undefined);
  });
});

describe('the maximum cost of a request', () => {
  const request = { model: 'm', messages: [{ role: 'user', content: 'hi' }] } as const;
  const price = { input: 1, output: 1, fees: { web_search_requests: 0.005, file_search_requests: 0.0025 } };
  for (const [name, usd] of [
    ['web_search', 0.05],
    ['x_search', 0.05],
    ['openrouter:web_search', 0.05],
    ['collections_search', 0.025],
  ] as const)
    it(`includes ten runs of the vendor's tool ${name} (E4)`, () => {
      const tokens = { prompt_tokens: 0, completion_tokens: 0 };
      expect(mostOf(request, tokens, price, [{ name }])).to.equal(Math.round(usd * 1e9));
    });
});
