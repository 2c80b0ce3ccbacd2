import { expect } from 'chai';
import fc from 'fast-check';
import { readUsage } from '../../../../plugins/formats/openai-chat/response.ts';
import { assertUsage } from '../../../conformance/provider-shape.ts';

describe('usage', () => {
  const SAME = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };
  const CASES: readonly (readonly [string, unknown, unknown])[] = [
    ['keeps OpenAI’s', SAME, SAME],
    ['sums what the vendor did not', { prompt_tokens: 10, completion_tokens: 4 }, SAME],
    ['corrects a wrong total', { ...SAME, total_tokens: 99 }, SAME],
    ['derives the prompt', { completion_tokens: 4, total_tokens: 14 }, SAME],
    ['derives the completion', { prompt_tokens: 10, total_tokens: 14 }, SAME],
    ['counts an absent completion as none', { prompt_tokens: 10 }, { ...SAME, completion_tokens: 0, total_tokens: 10 }],
    ['is nothing for fractions (E7)', { prompt_tokens: 9.6, completion_tokens: 4 }, undefined],
    ['is nothing for negative counts (E7)', { prompt_tokens: -1, completion_tokens: 4, total_tokens: 14 }, undefined],
    ['is nothing for absurd counts (E7)', { prompt_tokens: 10, completion_tokens: 1e9 }, undefined],
    ['reads Perplexity’s cost (E5)', { ...SAME, cost: { total_cost: 0.006 } }, { ...SAME, cost: 0.006 }],
    ['is nothing for null', null, undefined],
    ['is nothing for a number', 7, undefined],
    ['is nothing for a list', [SAME], undefined],
    ['is nothing for an empty object', {}, undefined],
    ['is nothing for texts', { prompt_tokens: '10', completion_tokens: 'x' }, undefined],
    [
      'is nothing for numbers that are none',
      { prompt_tokens: Number.NaN, total_tokens: Number.POSITIVE_INFINITY },
      undefined,
    ],
    ['drops details that are none', { ...SAME, prompt_tokens_details: null, completion_tokens_details: 'x' }, SAME],
    [
      'reads DeepSeek’s cache hits',
      { ...SAME, prompt_cache_hit_tokens: 3 },
      { ...SAME, prompt_cache_hit_tokens: 3, prompt_tokens_details: { cached_tokens: 3 } },
    ],
    [
      'reads Moonshot’s cached tokens',
      { ...SAME, cached_tokens: 3 },
      { ...SAME, prompt_tokens_details: { cached_tokens: 3 } },
    ],
    [
      'reads Mistral’s misspelt details, once',
      { ...SAME, prompt_token_details: { cached_tokens: 3 }, num_cached_tokens: 3 },
      { ...SAME, prompt_tokens_details: { cached_tokens: 3 } },
    ],
    [
      'takes more cached tokens than prompt as additional',
      { ...SAME, prompt_tokens_details: { cached_tokens: 100 } },
      { prompt_tokens: 110, completion_tokens: 4, total_tokens: 114, prompt_tokens_details: { cached_tokens: 100 } },
    ],
    ['keeps what else a vendor tells, but no nulls', { ...SAME, cost: 0.1, extra: null }, { ...SAME, cost: 0.1 }],
  ];
  for (const [title, reported, read] of CASES) {
    it(title, () => {
      expect(readUsage(reported)).to.deep.equal(read);
    });
  }

  const reasoning = { completion_tokens_details: { reasoning_tokens: 3 } };
  it('keeps reasoning inside the completion, as OpenAI counts', () => {
    expect(readUsage({ ...SAME, ...reasoning })?.completion_tokens).to.equal(4);
  });
  it('adds reasoning if the vendor counts it separately', () => {
    expect(readUsage({ ...SAME, ...reasoning }, { reasoningTokens: 'outside' })).to.include({
      completion_tokens: 7,
      total_tokens: 17,
    });
  });
  it('adds reasoning that the vendor’s own total shows to be outside', () => {
    expect(readUsage({ ...SAME, total_tokens: 17, ...reasoning })?.completion_tokens).to.equal(7);
  });
  it('adds more reasoning than completion, for it cannot be inside', () => {
    expect(readUsage({ ...SAME, completion_tokens_details: { reasoning_tokens: 9 } })?.completion_tokens).to.equal(13);
  });

  it('is in OpenAI’s arithmetic or nothing, whatever a vendor sends', () => {
    const count = fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constant(null));
    const details = fc.record(
      { cached_tokens: count, reasoning_tokens: count, x: fc.anything() },
      { requiredKeys: [] },
    );
    const reported = fc.record(
      {
        prompt_tokens: count,
        completion_tokens: count,
        total_tokens: count,
        prompt_tokens_details: details,
        completion_tokens_details: details,
        num_cached_tokens: count,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(reported, fc.constantFrom('inside' as const, 'outside' as const), (usage, arithmetic) => {
        const read = readUsage(usage, { reasoningTokens: arithmetic });
        if (read) assertUsage(read);
      }),
    );
  });
});
