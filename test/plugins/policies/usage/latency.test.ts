import { expect } from 'chai';
import type { CallPage, CallQuery, CallRow } from '../../../../contract/index.ts';
import { measureLatency } from '../../../../plugins/policies/usage/latency.ts';

const facts = { provider: 'a', model: 'm', operation: 'chat', userId: 'ann', key: '-', account: 'ann', tags: [] };

/** Calls, latest first, in pages as from a store; records the queries. */
function ledgerOf(calls: readonly Partial<CallRow>[]) {
  const requests: CallQuery[] = [];
  return {
    requests,
    async calls(query: CallQuery): Promise<CallPage> {
      requests.push(query);
      const at = Number(query.after ?? 0);
      const end = at + Math.min(query.limit, 1000);
      const page = calls.slice(at, end).map((call) => ({ ...facts, countedAt: 10, ...call }) as CallRow);
      return { calls: page, ...(end < calls.length && { next: String(end) }) };
    },
  };
}

const DAY = { filter: {}, edges: [0, 100], names: [''] };

describe('the latency of calls in a report', () => {
  it('is the nearest rank of the successful calls of each row, with the first byte of those that have one', async () => {
    const ledger = ledgerOf([
      ...Array.from({ length: 20 }, (_, at) => ({ durationMs: at + 1, firstByteMs: at })),
      { userId: 'bob', durationMs: 700 },
    ]);
    const { rows, totals, calls, isComplete } = await measureLatency(ledger, { ...DAY, by: ['user'] });
    expect(rows.get('["ann"]')).to.deep.equal({
      ...{ calls: 20, duration_p50_ms: 10, duration_p95_ms: 19 },
      ...{ first_byte_p50_ms: 9, first_byte_p95_ms: 18 },
    });
    expect(rows.get('["bob"]')).to.deep.equal({ calls: 1, duration_p50_ms: 700, duration_p95_ms: 700 });
    expect(totals).to.include({ calls: 21, duration_p50_ms: 11, duration_p95_ms: 20 });
    expect([calls, isComplete]).to.deep.equal([21, true]);
    expect(ledger.requests[0]).to.include({ outcome: 'ok', from: 0, to: 100 });
  });

  it('is grouped by tags, each call once in each, and by time, as the report is', async () => {
    const ledger = ledgerOf([
      { durationMs: 5, countedAt: 60, tags: ['team=x', 'team=y'] },
      { durationMs: 1, countedAt: 10, tags: ['team=x'] },
      { durationMs: 9, countedAt: 100 },
    ]);
    const spec = { filter: {}, by: ['tag', 'day'] as const, edges: [0, 50, 100], names: ['one', 'two'] };
    const { rows, totals } = await measureLatency(ledger, spec);
    expect([...rows.keys()].sort()).to.deep.equal(['["team=x","one"]', '["team=x","two"]', '["team=y","two"]']);
    expect(totals, 'calls after the range do not count').to.include({ calls: 2 });
  });

  it('covers at most the latest 5,000 calls, and reports that', async () => {
    const ledger = ledgerOf(Array.from({ length: 6_000 }, (_, at) => ({ durationMs: at < 5_000 ? 1 : 1_000 })));
    const { totals, calls, isComplete } = await measureLatency(ledger, { ...DAY, by: ['user'] });
    expect(totals?.duration_p95_ms).to.equal(1);
    expect([totals?.calls, calls, isComplete]).to.deep.equal([5_000, 5_000, false]);
  });
});
