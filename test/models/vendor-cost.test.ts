import { expect } from 'chai';
import type { ChatRequest } from '../../contract/chat.ts';
import { costOf, pricedTier, reportedCost } from '../../contract/prices.ts';
import type { Price } from '../../contract/provider.ts';
import { estimateChat } from '../../core/calls/meter.ts';

const PRICE: Price = {
  input: 2,
  output: 10,
  service_tiers: { priority: { input: 4, output: 20 }, flex: { input: 1, output: 5 } },
};
const usage = (more: object = {}) => ({ prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100, ...more });
const request = (more: object = {}): ChatRequest => ({
  model: 'm',
  messages: [{ role: 'user', content: 'x' }],
  ...more,
});

describe('the cost of a call', () => {
  it('D8: is the price of its service tier', () => {
    expect(costOf(usage(), PRICE)).to.equal(3_000_000);
    expect(costOf(usage(), PRICE, 'priority')).to.equal(6_000_000);
    expect(costOf(usage(), PRICE, 'flex')).to.equal(1_500_000);
  });

  for (const [tier, times] of [
    ['default', 1],
    ['flex', 1],
    ['priority', 2],
    ['auto', 2],
    [undefined, 2],
  ] as const) {
    it(`D8: is reserved at the most expensive tier that may serve ${tier ?? 'a request without one'}`, () => {
      const most = (question?: string) =>
        estimateChat(request({ max_tokens: 100, ...(question && { service_tier: question }) }), undefined, PRICE)
          .cost ?? 0;
      expect(most(tier)).to.equal(most('default') * times);
    });
  }

  for (const [title, part, times] of [
    ['a recording', { type: 'input_audio', input_audio: { data: 'aaaa', format: 'wav' } }, 10],
    ['a video', { type: 'video_url', video_url: { url: 'https://a.example/v' } }, 10],
    ['a recording as a file', { type: 'file', file: { file_data: 'data:audio/mp3;base64,aaaa' } }, 10],
    ['a file behind an address', { type: 'file', file: { file_url: 'https://a.example/f' } }, 10],
    ['a document', { type: 'file', file: { file_data: 'data:application/pdf;base64,aaaa' } }, 1],
    ['a text', { type: 'text', text: 'x' }, 1],
  ] as const)
    it(`is reserved at ${times === 1 ? 'the price of text' : 'that of sound'} for ${title} (E5)`, () => {
      const chatRequest = {
        ...request({ max_tokens: 1 }),
        messages: [{ role: 'user', content: [part] }],
      } as ChatRequest;
      const most = (price: Price) => estimateChat(chatRequest, undefined, price).cost ?? 0;
      expect(most({ input: 1, output: 0, audio_input: 10 })).to.equal(
        most({ input: 1, output: 0, audio_input: 1 }) * times,
      );
    });

  for (const [tier, price, sent] of [
    ['priority', PRICE, 'priority'],
    ['scale', PRICE, undefined],
    ['toString', PRICE, undefined],
    ['auto', PRICE, undefined],
    ['priority', { input: 1, output: 1 }, undefined],
    ['priority', undefined, 'priority'],
    [null, PRICE, undefined],
  ] as const) {
    it(`D8: has the tier ${sent ?? 'as the standard one'} for ${tier} at ${JSON.stringify(price ?? 'no price')}`, () => {
      expect(pricedTier(request({ service_tier: tier }), price)).to.equal(sent);
    });
  }

  for (const [cost, reported] of [
    [0.5, 500_000_000],
    [0.00007, 70_000],
    [0.0000001, 100],
    [1e-10, 1],
    [0, 0],
    [-1, undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [1e9, undefined],
    ['0.5', undefined],
    [undefined, undefined],
  ] as const) {
    it(`D11: is ${reported} nano-dollars when the vendor reports ${cost} dollars`, () => {
      expect(reportedCost(usage({ cost }))).to.equal(reported);
    });
  }

  it('D5: is a whole number for the largest limits and any price', () => {
    const price = { input: 1e9, output: 1e9 };
    const most = estimateChat(request({ max_tokens: 2_147_483_647, n: 128 }), undefined, price).cost;
    expect(Number.isSafeInteger(most)).to.equal(true);
    expect(Number.isSafeInteger((most ?? 0) * 8)).to.equal(true);
  });

  for (const [fields, tokens] of [
    [{ max_completion_tokens: 1, max_tokens: 100_000 }, 100_000],
    [{ max_completion_tokens: 9, max_tokens: 1 }, 9],
    [{ max_tokens: -1 }, 4096],
    [{ max_tokens: 0, max_completion_tokens: null }, 4096],
  ] as const) {
    it(`D2: reserves ${tokens} tokens for ${JSON.stringify(fields)}`, () => {
      expect(estimateChat(request(fields), undefined, undefined).units['completion_tokens']).to.equal(tokens);
    });
  }
});
