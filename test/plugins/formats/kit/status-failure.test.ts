import { expect } from 'chai';
import fc from 'fast-check';
import { parseGoDuration, readRetryAfter } from '../../../../plugins/formats/kit/status-failure.ts';

describe('retry hints', () => {
  const DURATIONS: readonly (readonly [string, number | undefined])[] = [
    ['1s', 1000],
    ['6m0s', 360_000],
    ['100ms', 100],
    ['1h2m3s', 3_723_000],
    ['7.66s', 7660],
    ['2m59.56s', 179_560],
    ['12us', 0.012],
    ['', undefined],
    ['5', undefined],
    ['s', undefined],
    ['1s junk', undefined],
    ['-1s', undefined],
  ];
  for (const [text, ms] of DURATIONS) {
    it(`reads the duration "${text}" as ${ms} ms`, () => {
      expect(parseGoDuration(text)).to.equal(ms);
    });
  }

  const error = (fields: object) => ({ error: fields });
  const HINTS: readonly (readonly [string, Record<string, string>, unknown, number | undefined])[] = [
    ['prefers milliseconds', { 'retry-after-ms': '1500', 'retry-after': '9' }, {}, 1500],
    ['falls back from broken milliseconds to seconds', { 'retry-after-ms': 'x', 'retry-after': '9' }, {}, 9000],
    ['takes fractions of seconds', { 'retry-after': '0.5' }, {}, 500],
    ['takes zero', { 'retry-after': '0' }, {}, 0],
    [
      'takes a date against the vendor’s clock',
      { 'retry-after': 'Wed, 21 Oct 2015 07:28:10 GMT', date: 'Wed, 21 Oct 2015 07:28:00 GMT' },
      {},
      10_000,
    ],
    [
      'ignores a date in the past',
      { 'retry-after': 'Wed, 21 Oct 2015 07:27:00 GMT', date: 'Wed, 21 Oct 2015 07:28:00 GMT' },
      {},
      undefined,
    ],
    [
      'ignores a date without the vendor’s clock: a codec has none',
      { 'retry-after': 'Wed, 21 Oct 2015 07:28:10 GMT' },
      {},
      undefined,
    ],
    ['ignores less than nothing', { 'retry-after': '-1' }, {}, undefined],
    ['ignores words', { 'retry-after': 'soon' }, {}, undefined],
    ['ignores exponents', { 'retry-after': '1e9' }, {}, undefined],
    ['ignores more than a day', { 'retry-after': '9999999' }, {}, undefined],
    ['ignores a list', { 'retry-after': '5, 6' }, {}, undefined],
    ['ignores hexadecimal', { 'retry-after': '0x10' }, {}, undefined],
    [
      'reads RetryInfo',
      {},
      error({ details: [{}, { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '27s' }] }),
      27_000,
    ],
    ['reads availability', {}, error({ availability: { retry_after: 3 } }), 3000],
    [
      'reads the reset of the used-up limit',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '2m',
        'x-ratelimit-remaining-tokens': '9',
        'x-ratelimit-reset-tokens': '1s',
      },
      {},
      120_000,
    ],
    [
      'reads the longer reset when both are used up',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '2s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '7s',
      },
      {},
      7000,
    ],
    [
      'reads the sooner reset when nothing says which',
      { 'x-ratelimit-reset-requests': '2s', 'x-ratelimit-reset-tokens': '7s' },
      {},
      2000,
    ],
    ['reads words last', {}, error({ message: 'Please try again in 1m2.5s.' }), 62_500],
    ['reads seconds in words', {}, error({ message: 'Please retry after 20 seconds.' }), 20_000],
    ['finds nothing in other words', {}, error({ message: 'Try again later.' }), undefined],
    ['finds nothing in a missing body', {}, null, undefined],
  ];
  for (const [title, headers, body, ms] of HINTS) {
    it(title, () => {
      expect(readRetryAfter(headers, body)).to.equal(ms);
    });
  }

  it('is a whole number of milliseconds within a day, or nothing, for any header', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (ms, seconds, reset) => {
        const hint = readRetryAfter({
          'retry-after-ms': ms,
          'retry-after': seconds,
          'x-ratelimit-reset-tokens': reset,
        });
        return hint === undefined || (Number.isInteger(hint) && hint >= 0 && hint <= 86_400_000);
      }),
    );
  });
});
