import { expect } from 'chai';
import { readDataUrl } from '../../../../plugins/providers/kit/index.ts';

describe('data: URLs', () => {
  for (const [url, expected] of [
    ['data:image/png;base64,AAAA', { mediaType: 'image/png', data: 'AAAA' }],
    ['DATA:Image/PNG;charset=x;BASE64,AA==', { mediaType: 'image/png', data: 'AA==' }],
    ['data:image/png;base64,AA\n AA', { mediaType: 'image/png', data: 'AAAA' }],
    ['data:;base64,AAAA', { mediaType: '', data: 'AAAA' }],
    ['data:image/png,AAAA', undefined],
    ['data:image/png;base64,', undefined],
    ['data:image/png;base64,<svg>', undefined],
    ['data:image/png;base64', undefined],
    ['https://x.test/a;base64,AAAA', undefined],
    [`data:${'x'.repeat(300)};base64,AAAA`, undefined],
  ] as const) {
    it(`read ${JSON.stringify(url.slice(0, 40))} as ${JSON.stringify(expected)}`, () => {
      expect(readDataUrl(url)).to.deep.equal(expected);
    });
  }
});
