import { expect } from 'chai';
import fc from 'fast-check';
import { cutRange, type RangeWords, readRange, type TimeUnit } from '../../../../plugins/policies/usage/range.ts';
import { refusal } from '../../../support/errors.ts';

const NOW = Date.parse('2026-11-22T10:17:33.123Z');
const iso = (at: number): string => new Date(at).toISOString().replace('.000Z', 'Z');

describe('the range of a report', () => {
  const RANGES: readonly (readonly [words: RangeWords, from: string, to: string])[] = [
    [{}, '2026-10-24T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ tz: 'Asia/Kolkata' }, '2026-10-23T18:30:00Z', '2026-11-22T18:30:00Z'],
    [{ from: '2026-11-01', to: '2026-11-02' }, '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z'],
    [{ from: '2026-03-29', to: '2026-03-30', tz: 'Europe/Berlin' }, '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z'],
    [{ from: '2026-11', to: '2026-12' }, '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z'],
    [{ from: '2026-11-20' }, '2026-11-20T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ to: '2026-11-02' }, '2026-10-03T00:00:00Z', '2026-11-02T00:00:00Z'],
    [
      { from: '2026-11-01T08:00:00+02:00', to: '2026-11-01T08:00:00.5Z' },
      '2026-11-01T06:00:00Z',
      '2026-11-01T08:00:00.500Z',
    ],
    [{ last: '30m' }, '2026-11-22T09:47:33.123Z', '2026-11-22T10:17:33.124Z'],
    [{ last: '30d' }, '2026-10-23T10:00:00Z', '2026-11-22T10:17:33.124Z'],
    [{ period: 'today' }, '2026-11-22T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ period: 'yesterday', tz: 'America/New_York' }, '2026-11-21T05:00:00Z', '2026-11-22T05:00:00Z'],
    [{ period: 'this-week' }, '2026-11-16T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ period: 'last-week', tz: 'Europe/Berlin' }, '2026-11-08T23:00:00Z', '2026-11-15T23:00:00Z'],
    [{ period: 'last-7-days' }, '2026-11-16T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ period: 'last-30-days' }, '2026-10-24T00:00:00Z', '2026-11-23T00:00:00Z'],
    [{ period: 'this-month', tz: 'Europe/Berlin' }, '2026-10-31T23:00:00Z', '2026-11-30T23:00:00Z'],
    [{ period: 'last-month', tz: 'Europe/Berlin' }, '2026-09-30T22:00:00Z', '2026-10-31T23:00:00Z'],
  ];
  for (const [words, from, to] of RANGES)
    it(`is ${from} to ${to} for ${JSON.stringify(words)}`, () => {
      const range = readRange(words, NOW);
      expect([iso(range.from), iso(range.to)]).to.deep.equal([from, to]);
    });

  const WRONG: readonly (readonly [words: RangeWords, param: string, message: RegExp])[] = [
    [{ from: '2026-11-02', to: '2026-11-02' }, 'from', /must be before "to", which is exclusive/],
    [{ from: '2026-11-03', to: '2026-11-02' }, 'from', /must be before "to"/],
    [{ from: '2026-02-30' }, 'from', /must be a day/],
    [{ from: '2026-13' }, 'from', /must be a day/],
    [{ from: 'yesterday' }, 'from', /must be a day/],
    [{ from: '2026-11-01T25:00:00Z' }, 'from', /must be a day/],
    [{ from: '2026-02-30T10:00:00Z' }, 'from', /must be a day/],
    [{ from: '2026-11-01T08:00:00' }, 'from', /must be a day/],
    [{ from: '1970-01-01' }, 'from', /between the years 2000 and 2100/],
    [{ to: '9999-12-31' }, 'to', /between the years 2000 and 2100/],
    [{ to: "2026-11-01' OR 1=1" }, 'to', /must be a day/],
    [{ tz: 'Mars/Olympus' }, 'tz', /is an unknown time zone; use an IANA name/],
    [{ tz: '+01:00' }, 'tz', /is an unknown time zone/],
    [{ last: 'a month' }, 'last', /is not a duration: write 500ms, 30s, 2m, 1h or 30d/],
    [{ last: '0s' }, 'last', /is shorter than a second/],
    [{ last: '99999999d' }, 'from', /between the years/],
    [{ period: 'constructor' }, 'period', /must be one of today, yesterday, this-week, last-week, last-7-days/],
    [{ last: '60' }, 'last', /a unit is missing. Write "60s" for seconds or "60ms" for milliseconds/],
    [{ period: 'today', from: '2026-11-01' }, 'period', /cannot be combined with another range/],
    [{ last: '1d', period: 'today' }, 'last', /cannot be combined with another range/],
  ];
  for (const [words, param, message] of WRONG)
    it(`is refused for ${JSON.stringify(words)}, with the valid form`, () => {
      const error = refusal(() => readRange(words, NOW));
      expect(error).to.include({ code: 'invalid_request', param });
      expect(error.message).to.match(message);
    });
});

describe('the intervals of a report', () => {
  const cut = (unit: TimeUnit, from: string, to: string, tz = 'UTC') =>
    cutRange(readRange({ from, to, tz }, NOW), unit);

  it('are days of 23, 24 and 25 hours when the clock is set forward or back', () => {
    const hours = ({ edges }: { readonly edges: readonly number[] }) =>
      edges.slice(1).map((edge, i) => (edge - (edges[i] ?? 0)) / 3_600_000);
    expect(hours(cut('day', '2026-03-28', '2026-03-31', 'Europe/Berlin'))).to.deep.equal([24, 23, 24]);
    expect(hours(cut('day', '2026-10-31', '2026-11-03', 'America/New_York'))).to.deep.equal([24, 25, 24]);
    expect(hours(cut('day', '2026-10-03', '2026-10-05', 'Australia/Lord_Howe'))).to.deep.equal([24, 23.5]);
  });

  it('are hours with their offset, so that a repeated one is distinguished', () => {
    const { names } = cut('hour', '2026-10-25T00:00:00Z', '2026-10-25T02:00:00Z', 'Europe/Berlin');
    expect(names).to.deep.equal(['2026-10-25T02:00+02:00', '2026-10-25T02:00+01:00']);
  });

  it('are months by their names, the first and last as far as the range goes', () => {
    const { edges, names } = cut('month', '2026-01-15', '2026-03-02', 'Asia/Kolkata');
    expect(names).to.deep.equal(['2026-01', '2026-02', '2026-03']);
    expect(edges.map(iso)).to.deep.equal([
      '2026-01-14T18:30:00Z',
      '2026-01-31T18:30:00Z',
      '2026-02-28T18:30:00Z',
      '2026-03-01T18:30:00Z',
    ]);
  });

  it('are at most a thousand', () => {
    expect(cut('day', '2024-01-01', '2026-09-27').names).to.have.length(1000);
    const error = refusal(() => cut('hour', '2026-01-01', '2026-11-01'));
    expect(error).to.include({ code: 'invalid_request', param: 'by' });
    expect(error.message).to.match(/more than 1000 intervals by hour; choose a shorter range or a longer unit/);
  });

  it('tile any range in any zone, ascending, without a gap', () =>
    fc.assert(
      fc.property(
        fc.constantFrom('Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Apia', 'Asia/Beirut', 'Asia/Kathmandu'),
        fc.integer({ min: Date.UTC(2010, 0, 1), max: Date.UTC(2035, 0, 1) }),
        fc.integer({ min: 1, max: 40 * 86_400_000 }),
        fc.constantFrom<TimeUnit>('hour', 'day', 'month'),
        (zone, from, length, unit) => {
          const { edges, names } = cutRange({ from, to: from + length, zone }, unit);
          expect(edges[0]).to.equal(from);
          expect(edges.at(-1)).to.equal(from + length);
          expect(names).to.have.length(edges.length - 1);
          for (const [i, edge] of edges.slice(1).entries()) expect(edge).to.be.above(edges[i] ?? Number.NaN);
          if (unit !== 'hour') expect(new Set(names).size).to.equal(names.length);
        },
      ),
    ));
});
