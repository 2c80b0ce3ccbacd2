import { expect } from 'chai';
import together from '../../../plugins/providers/together.ts';
import { translate } from '../../support/formats/translate.ts';

describe('together', () => {
  it('turns one stop text into a list', () => {
    expect(translate(together, { stop: 'x' }).body).to.deep.include({ stop: ['x'] });
    expect(translate(together, { stop: ['x', 'y'] }).body).to.deep.include({ stop: ['x', 'y'] });
  });

  for (const [fields, logprobs] of [
    [{ logprobs: true }, 1],
    [{ logprobs: true, top_logprobs: 5 }, 5],
    [{ logprobs: true, top_logprobs: 0 }, 1],
    [{ logprobs: false }, undefined],
  ] as const) {
    it(`requests ${logprobs ?? 'no'} log probabilities for ${JSON.stringify(fields)}`, () => {
      const { body } = translate(together, fields);
      expect(body['logprobs']).to.equal(logprobs);
      expect(body).not.to.have.property('top_logprobs');
    });
  }
});
