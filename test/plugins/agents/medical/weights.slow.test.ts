import { expect } from 'chai';
import { readWeights, trainWeights } from '../../../support/pages/train-medical.ts';

describe('the weights of medical signs', () => {
  it('equal the result of npm run medical -- --train', () => {
    expect(readWeights()).to.deep.equal(trainWeights());
  }).timeout(120_000);
});
