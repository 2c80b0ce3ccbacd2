import { expect } from 'chai';
import {
  EFFORTS,
  type Effort,
  effortOfTokens,
  fitEffort,
  nearestEffort,
  THINKING_TOKENS,
} from '../../../../plugins/providers/kit/index.ts';

describe('the table of efforts', () => {
  for (const [format, tokens] of Object.entries(THINKING_TOKENS))
    it(`E15: never gives a higher effort fewer thinking tokens, and "max" the most, in the format of ${format}`, () => {
      const budgets = EFFORTS.map((effort) => tokens[effort]);
      expect(budgets).to.deep.equal(budgets.toSorted((a, b) => a - b));
      expect(budgets.at(-1)).to.be.greaterThan(tokens.high);
    });

  it('maps an effort to the nearest of a model, the first listed of two equally near ones', () => {
    const fitted = (...taken: Effort[]) => EFFORTS.map((effort) => fitEffort(effort, taken)).join(' ');
    expect(fitted('max', 'high', 'low')).to.equal('low low low high high max max');
    expect(fitted('low', 'medium', 'high')).to.equal('low low low medium high high high');
    expect(fitted('high', 'none')).to.equal('none none high high high high high');
    expect(fitted('max', 'high', 'medium', 'low', 'none')).to.equal('none low low medium high max max');
  });

  it('leaves an unknown effort unchanged', () => {
    expect(nearestEffort('heroic', ['low'])).to.equal('heroic');
    expect(nearestEffort(undefined, ['low'])).to.equal(undefined);
  });

  it('reads a budget of a caller as an effort', () => {
    const read = (format: keyof typeof THINKING_TOKENS) =>
      [0, 1, 1024, 4096, 8192, 12_289, 24_576, 32_768].map((tokens) => effortOfTokens(tokens, format)).join(' ');
    expect(read('google')).to.equal('none low low medium medium high high xhigh');
    expect(read('anthropic')).to.equal('low low low low medium high high high');
  });
});
