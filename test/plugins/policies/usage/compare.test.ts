import { expect } from 'chai';
import type { ReportQuery, ReportRow } from '../../../../contract/index.ts';
import { cutRange, rangeBefore, readRange } from '../../../../plugins/policies/usage/range.ts';
import { readUsageQuery, runUsageQuery } from '../../../../plugins/policies/usage/usage-query.ts';

const NOW = Date.parse('2026-11-22T10:17:33.123Z');
const iso = (at: number): string => new Date(at).toISOString().replace(':00.000Z', 'Z');
const NO_UNITS = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, reasoning_tokens: 0, characters: 0 };

describe('calendar weeks of a report', () => {
  it('begin on Monday in its zone, and have the names of ISO 8601', () => {
    const range = readRange({ from: '2026-12-20', to: '2027-01-12', tz: 'Europe/Berlin' }, NOW);
    const { edges, names } = cutRange(range, 'week');
    expect(names).to.deep.equal(['2026-W51', '2026-W52', '2026-W53', '2027-W01', '2027-W02']);
    expect(edges.slice(1, 3).map(iso)).to.deep.equal(['2026-12-20T23:00Z', '2026-12-27T23:00Z']);
  });
});

describe('the range before a report', () => {
  const BEFORE: readonly (readonly [from: string, to: string, tz: string, before: string])[] = [
    ['2026-11', '2026-12', 'Europe/Berlin', '2026-09-30T22:00Z'],
    ['2026-03-01', '2026-03-03', 'UTC', '2026-02-27T00:00Z'],
    // The night of the summer time has 23 hours.
    ['2026-03-29', '2026-03-30', 'Europe/Berlin', '2026-03-27T23:00Z'],
    ['2026-11-01T08:00:00Z', '2026-11-01T09:30:00Z', 'UTC', '2026-11-01T06:30Z'],
  ];
  for (const [from, to, tz, before] of BEFORE)
    it(`${from} to ${to} in ${tz} begins at ${before}`, () => {
      const range = readRange({ from, to, tz }, NOW);
      const found = rangeBefore(range);
      expect([iso(found.from), found.to]).to.deep.equal([before, range.from]);
    });
});

describe('a report compared with the range before', () => {
  /** Ledger with one call a day: the cost is the day of the month, of ann until the 20th, then of bob. */
  const ledger = {
    async report({ edges, by }: ReportQuery): Promise<readonly ReportRow[]> {
      return edges.slice(0, -1).flatMap((edge, interval) => {
        const rows: ReportRow[] = [];
        for (let at = edge; at < (edges[interval + 1] ?? 0); at += 86_400_000) {
          const day = new Date(at).getUTCDate();
          const user = day <= 20 ? 'ann' : 'bob';
          const sums = { requests: 1, errors: 0, estimated: 0, unpriced: 0, units: NO_UNITS };
          rows.push({ interval, ...(by.includes('user') && { user }), ...sums, cost: BigInt(day), saved: 0n });
        }
        return rows;
      });
    },
    calls: async () => ({ calls: [] }),
  };
  const run = (words: Record<string, string>) => runUsageQuery(ledger, readUsageQuery(words, NOW));

  it('has the sums of both for each row and in all, also for a row without calls now', async () => {
    const query = { from: '2026-11-21', to: '2026-11-23', compare: 'previous', by: 'user' };
    const { rows, totals, previous } = await run(query);
    expect(rows.map((row) => [row.names[0], row.sums.cost, previous?.of(row).cost])).to.deep.equal([
      ['ann', 0n, 39n],
      ['bob', 43n, 0n],
    ]);
    expect([totals.cost, previous?.totals.cost]).to.deep.equal([43n, 39n]);
  });

  it('compares intervals by their position', async () => {
    const { rows, previous } = await run({ from: '2026-11-03', to: '2026-11-05', compare: 'previous', by: 'day' });
    expect(rows.map((row) => [row.names[0], row.sums.cost, previous?.of(row).cost])).to.deep.equal([
      ['2026-11-03', 3n, 1n],
      ['2026-11-04', 4n, 2n],
    ]);
  });
});
