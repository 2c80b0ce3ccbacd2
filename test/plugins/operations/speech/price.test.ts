import { expect } from 'chai';
import { costOfSpeech, estimateSpeech, speechPrice } from '../../../../plugins/operations/speech/operation.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';

describe('the price of speech', () => {
  it('is exact in nano-dollars by characters, and rounded up once', () => {
    expect(costOfSpeech({ characters: 1000 }, { characters: 15 })).to.include({ amount: 15_000_000, estimated: false });
    expect(costOfSpeech({ characters: 3 }, { characters: 0.0001 })).to.include({ amount: 1, estimated: false });
    expect(costOfSpeech({ characters: 0 }, { characters: 15 })?.amount).to.equal(0);
  });

  it('is by seconds, and an estimate when the format does not contain them', () => {
    expect(costOfSpeech({ characters: 12, seconds: 2 }, { seconds: 250 })).to.include({
      amount: 500_000,
      estimated: false,
    });
    expect(costOfSpeech({ characters: 12 }, { seconds: 250 })).to.include({ amount: 250_000, estimated: true });
  });

  it('is by tokens, and an estimate when the vendor does not report them', () => {
    const usage = { characters: 40, seconds: 4, tokens: { input: 14, output: 101 } };
    expect(costOfSpeech(usage, { input: 0.6, output: 12 })).to.include({ amount: 1_220_400, estimated: false });
    expect(costOfSpeech({ characters: 40, seconds: 4 }, { input: 0.6, output: 12 })?.estimated).to.equal(true);
  });

  it('is not known without a price', () => {
    expect(costOfSpeech({ characters: 5 }, undefined)).to.equal(undefined);
    expect(estimateSpeech(5, 1, undefined)).to.equal(undefined);
  });

  it('is estimated higher for slow speech, and never below the cost of the characters', () => {
    expect(estimateSpeech(120, 0.5, { seconds: 100 })).to.equal(2_000_000);
    expect(estimateSpeech(120, 2, { seconds: 100 })).to.equal(1_000_000);
    expect(estimateSpeech(120, 1, { characters: 15 })).to.equal(1_800_000);
  });

  it('is the operator’s by the longest prefix, then by *, then the model’s own', () => {
    const own = { id: 'tts-a', price: { input: 0, output: 0, characters: 15 } };
    const vendor = speechVendor({
      prices: { '*': { characters: 1 }, tts: { characters: 2 }, 'tts-b': { characters: 3 } },
    });
    expect(speechPrice(vendor, 'tts-b-1', { id: 'tts-b' })).to.deep.equal({ characters: 3 });
    expect(speechPrice(vendor, 'tts-a', own)?.characters).to.equal(2);
    expect(speechPrice(vendor, 'other', { id: 'other' })).to.deep.equal({ characters: 1 });
    expect(speechPrice(speechVendor(), 'tts-a', own)).to.deep.equal(own.price);
    expect(speechPrice(speechVendor(), 'tts-a', { id: 'tts-a' })).to.equal(undefined);
  });
});
