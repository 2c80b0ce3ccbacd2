import { expect } from 'chai';
import { base64ToFloats, floatsToBase64, toUnitLength } from '../../../../plugins/providers/kit/index.ts';

describe('embedding vectors', () => {
  it('are little-endian 32-bit floats in base64', () => {
    expect(floatsToBase64([1, -2])).to.equal('AACAPwAAAMA=');
    expect(base64ToFloats('AACAPwAAAMA=')).to.deep.equal([1, -2]);
  });

  it('are scaled to length 1, but not out of nothing', () => {
    expect(toUnitLength([3, 4])).to.deep.equal([0.6, 0.8]);
    expect(toUnitLength([0, 0])).to.deep.equal([0, 0]);
  });
});
