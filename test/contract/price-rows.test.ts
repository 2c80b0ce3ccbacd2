import { expect } from 'chai';
import { priceAt, problemsOfRows } from '../../contract/price-rows.ts';
import type { Offer, PriceRow } from '../../contract/provider.ts';
import { createCatalog } from '../../models/catalog.ts';

const row = (input: number, term: Partial<PriceRow> = {}): PriceRow => ({ input, output: 1, ...term });
const at = (time: string) => Date.parse(time);
const HOUR_MS = 3_600_000;

describe('time-limited prices', () => {
  const DATED = [row(2, { until: '2026-12-01' }), row(4, { from: '2026-12-01' })];
  const HOURLY = [row(1), row(2, { hours: 'mon-fri 01:00-04:00, mon-fri 06:00-10:00' })];
  // 2026-11-23 is a Monday.
  const CASES: readonly (readonly [string, readonly PriceRow[], string, number | undefined])[] = [
    ['the first row holds to the end of its time', DATED, '2026-11-30T23:59:59.999Z', 2],
    ['the next one from then on', DATED, '2026-12-01T00:00:00Z', 4],
    [
      'an instant may have an offset',
      [row(1, { until: '2026-12-01T00:00:00+08:00' }), row(2, { from: '2026-12-01T00:00:00+08:00' })],
      '2026-11-30T16:00:00Z',
      2,
    ],
    ['at certain hours their row holds', HOURLY, '2026-11-23T01:00:00Z', 2],
    ['not after them', HOURLY, '2026-11-23T04:00:00Z', 1],
    ['not on other days', HOURLY, '2026-11-22T01:00:00Z', 1],
    ['hours go over midnight', [row(1), row(2, { hours: 'daily 23:00-01:00' })], '2026-11-24T00:59:00Z', 2],
    ['and over the end of the week', [row(1), row(2, { hours: 'sun 23:00-01:00' })], '2026-11-23T00:59:00Z', 2],
    ['days go over the end of the week', [row(1), row(2, { hours: 'sat-mon 00:00-24:00' })], '2026-11-23T12:00:00Z', 2],
    ['the order of rows means nothing', [...HOURLY].reverse(), '2026-11-23T01:00:00Z', 2],
    [
      'hours hold in their dates alone',
      [row(1), row(2, { from: '2027-01-01', hours: 'daily 00:00-24:00' })],
      '2026-11-23T01:00:00Z',
      1,
    ],
    ['no row is no price', [row(1, { from: '2027-01-01' })], '2026-11-23T01:00:00Z', undefined],
  ];
  for (const [title, rows, time, input] of CASES)
    it(`${title} (E17)`, () => {
      expect(priceAt(rows, at(time))?.input).to.equal(input);
    });

  const WRONG: readonly (readonly [string, readonly PriceRow[], string])[] = [
    [
      'a gap between',
      [row(1, { until: '2026-12-01' }), row(2, { from: '2026-12-05' })],
      'from 2026-12-01 to 2026-12-05',
    ],
    ['a gap before', [row(1, { from: '2026-12-01' })], 'before 2026-12-01'],
    ['a gap at the end', [row(1, { until: '2026-12-01' })], 'from 2026-12-01 on'],
    ['no row for all hours', [row(1, { hours: 'daily 00:00-24:00' })], 'at any time'],
    ['two rows at a time', [row(1), row(2, { from: '2026-12-01' })], 'overlaps another row from 2026-12-01 on'],
    ['an end before the beginning', [row(1, { from: '2026-12-01', until: '2026-11-01' })], 'ends before it begins'],
    ['hours that two have', [...HOURLY, row(3, { hours: 'fri 09:00-12:00' })], 'hours that overlap another row'],
  ];
  for (const [title, rows, message] of WRONG)
    it(`a problem: ${title} (E17)`, () => {
      expect(
        problemsOfRows(rows)
          .map((problem) => problem.message)
          .join(),
      ).to.include(message);
    });

  it('have no problem if one row follows another', () => {
    expect([...problemsOfRows(DATED), ...problemsOfRows(HOURLY)]).to.deep.equal([]);
  });

  describe('of the table', () => {
    const offer = (vendor: string): Offer => ({
      ...{ specVersion: 1, vendor, baseUrl: 'http://127.0.0.1:1' },
      error: () => ({ class: 'upstream_error', message: 'x' }),
    });
    const catalog = createCatalog(new Map(['deepseek', 'gemini'].map((name) => [name, offer(name)])));
    const inputAt = (provider: string, model: string, time: number) =>
      catalog.priceOf({ provider, model }, catalog.find(provider, model), time)?.input;

    it('gemini-4-argon doubles in December (E17)', () => {
      expect(inputAt('gemini', 'gemini-4-argon', at('2026-11-23T00:00:00Z'))).to.equal(2);
      expect(inputAt('gemini', 'gemini-4-argon', at('2026-12-01T00:00:00Z'))).to.equal(4);
    });

    it('DeepSeek is half the price in 133 of the 168 hours of a week (E17)', () => {
      const week = Array.from({ length: 168 }, (_, hour) => at('2026-11-23T00:30:00Z') + hour * HOUR_MS);
      const inputs = week.map((time) => inputAt('deepseek', 'deepseek-v4-pro', time));
      expect(inputs.filter((input) => input === 0.66)).to.have.length(133);
      expect(inputs.filter((input) => input === 1.32)).to.have.length(35);
    });
  });
});
