import { expect } from 'chai';
import { readWeights, trainWeights } from '../../../support/pages/train-medical.ts';

describe('the weights of medical signs', () => {
  it('are what npm run medical -- --train finds', () => {
    expect(readWeights()).to.deep.equal(trainWeights());
  }).timeout(120_000);
});
