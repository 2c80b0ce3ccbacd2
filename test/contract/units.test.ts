import { expect } from 'chai';
import fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { DURATION, formatUsd, maxEntries, parseDuration, parseSize, parseUsd } from '../../contract/units.ts';

describe('durations', () => {
  const GOOD: readonly (readonly [text: string, ms: number])[] = [
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['30d', 2_592_000_000],
    [' 5s ', 5000],
    ['0s', 0],
  ];
  for (const [text, ms] of GOOD) it(`"${text}" is ${ms} ms`, () => expect(parseDuration(text)).to.equal(ms));

  it('a number without a unit is rejected with its two readings', () => {
    for (const text of ['60', '1.5'])
      expect(() => parseDuration(text)).to.throw(TypeError, `Write "${text}s" for seconds or "${text}ms"`);
  });

  for (const text of ['', 's', '-5s', '5 s', '5S', '5w', '1e3s', '5s5', '١s']) {
    it(`"${text}" is invalid, and the error shows the valid forms`, () => {
      expect(() => parseDuration(text)).to.throw(TypeError, /write 500ms, 30s, 2m, 1h or 30d/);
      expect(DURATION.test(text)).to.equal(false);
    });
  }
});

describe('amounts of money', () => {
  const GOOD: readonly (readonly [amount: string | number, nano: number])[] = [
    ['25', 25_000_000_000],
    ['0.50', 500_000_000],
    ['12.345678', 12_345_678_000],
    ['0.000000001', 1],
    ['-3.5', -3_500_000_000],
    [0.1, 100_000_000],
    [1e-6, 1000],
    [1e-9, 1],
    [0, 0],
    ['-0', 0],
    ['9000000', 9_000_000_000_000_000],
    ['8999999.999999999', 8_999_999_999_999_999],
  ];
  for (const [amount, nano] of GOOD)
    it(`${JSON.stringify(amount)} is ${nano} nano-dollars`, () => expect(parseUsd(amount)).to.equal(nano));

  for (const amount of [
    '',
    '$5',
    '1,5',
    '1.2345678901',
    1.5e-9,
    '9000000.000000001',
    '1e3',
    '.5',
    '5.',
    '1000000000',
    'NaN',
    Number.NaN,
    Infinity,
    1e21,
  ]) {
    it(`${JSON.stringify(amount)} (${String(amount)}) is invalid`, () => {
      expect(() => parseUsd(amount)).to.throw(TypeError, /is not an amount of US dollars/);
    });
  }

  it('are written exactly, with two to nine decimals', () => {
    const sum = 123_456_789_012_345_678_901n;
    expect([0, 25_000_000_000, 500_000_000, 125_000, -1, 12_345_678_000, 100, sum].map(formatUsd)).to.deep.equal([
      '0.00',
      '25.00',
      '0.50',
      '0.000125',
      '-0.000000001',
      '12.345678',
      '0.0000001',
      '123456789012.345678901',
    ]);
  });

  it('come back from their text', () => {
    fc.assert(
      fc.property(fc.integer({ min: -9_000_000_000_000_000, max: 9_000_000_000_000_000 }), (nano) => {
        expect(parseUsd(formatUsd(nano))).to.equal(nano);
      }),
    );
  });
});

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

describe('a bounded map', () => {
  it('keeps the entries used last', () => {
    const cache = new LRUCache<string, number>(maxEntries(2));
    cache.set('a', 1).set('b', 2).get('a');
    cache.set('c', 3);
    expect([...cache.keys()]).to.have.members(['a', 'c']);
  });
});
