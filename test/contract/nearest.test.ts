import { expect } from 'chai';
import { didYouMean, nearest } from '../../contract/nearest.ts';

describe('nearest', () => {
  const models = ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4o', 'gpt-4o-mini', 'o3'];
  const cases: readonly [word: string, candidates: readonly string[], expected: readonly string[]][] = [
    ['prot', ['port', 'host'], ['port']],
    ['api_key', ['apiKey', 'baseUrl'], ['apiKey']],
    ['APIKEY', ['apiKey', 'baseUrl'], ['apiKey']],
    ['gpt5', models, ['gpt-5', 'gpt-5-mini', 'gpt-5-nano']],
    ['gtp-4o', models, ['gpt-4o']],
    ['gpt-4', models, ['gpt-4o', 'gpt-5', 'gpt-4o-mini']],
    ['opnai', ['openai', 'openrouter', 'ollama'], ['openai']],
    ['banana', ['port', 'host'], []],
    ['', ['port'], []],
    ['port', [], []],
    ['o', ['o3', 'port'], ['o3']],
  ];
  for (const [word, candidates, expected] of cases) {
    it(`finds ${JSON.stringify(expected)} for "${word}"`, () => {
      expect(nearest(word, candidates)).to.deep.equal(expected);
    });
  }

  it('returns at most the requested number', () => {
    expect(nearest('gpt', models, 2)).to.have.length(2);
  });

  it('finds nothing for words over 80 characters', () => {
    expect(nearest('p'.repeat(1_000_000), ['p'.repeat(80)])).to.deep.equal([]);
  });

  it('makes a question of one, two or three names', () => {
    expect(didYouMean('prot', ['port'])).to.equal('Did you mean "port"?');
    expect(didYouMean('ab', ['abc', 'abd'])).to.equal('Did you mean "abc" or "abd"?');
    expect(didYouMean('banana', ['port'])).to.equal(undefined);
  });
});
