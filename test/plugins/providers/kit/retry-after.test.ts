import { expect } from 'chai';
import { readRetryAfter } from '../../../../plugins/providers/kit/index.ts';

describe('retry hints', () => {
  for (const [headers, expected] of [
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT', date: 'Fri, 20 Nov 2026 10:00:00 GMT' }, 30_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT', date: 'Fri, 20 Nov 2026 10:00:00 GMT' }, undefined],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '1e9' }, undefined],
    [{}, undefined],
  ] as const) {
    it(`in ${JSON.stringify(headers)} are ${expected ?? 'none'}`, () => {
      expect(readRetryAfter(headers)).to.equal(expected);
    });
  }
});
