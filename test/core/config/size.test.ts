import { expect } from 'chai';
import { parseSize } from '../../../core/config/formats.ts';

describe('sizes', () => {
  const good: readonly [size: string | number, bytes: number][] = [
    ['20mb', 20_971_520],
    ['1.5kb', 1536],
    ['1 GB', 1_073_741_824],
    ['7b', 7],
    [4096, 4096],
    [0, 0],
  ];
  for (const [size, bytes] of good) {
    it(`reads ${JSON.stringify(size)} as ${bytes} bytes`, () => {
      expect(parseSize(size)).to.equal(bytes);
    });
  }
  for (const size of ['', '20', '20 megs', '-1mb', -1, 1.5]) {
    it(`refuses ${JSON.stringify(size)}`, () => {
      expect(() => parseSize(size)).to.throw(TypeError, 'is not a size: write 20mb, 512kb or a number of bytes');
    });
  }
});
