import { expect } from 'chai';
import { describeNewKey, formatKey } from '../../../../plugins/auth/api-key/info.ts';
import type { KeyRecord } from '../../../../plugins/auth/api-key/records.ts';

describe('a key on the terminal', () => {
  const record: KeyRecord = {
    version: 1,
    ...{ id: 'M1F2ON5M0T9j', userId: 'ann', account: 'ann', name: 'laptop' },
    ...{ hash: '0'.repeat(64), pepperId: 'p', createdAt: 0 },
    budgets: [
      { name: 'all', amount: 9_000_000_000, every: 'total', timezone: 'UTC' },
      { name: 'day', amount: 2_000_000_000, every: 'day', timezone: 'Asia/Kolkata' },
    ],
  };
  const info = describeNewKey({ record, version: 0 });

  it('has a line for each of its budgets, with the rest if known', () => {
    const [all, day] = info.budgets ?? [];
    if (!all || !day) throw new Error('there are two budgets');
    const known = { ...day, spent_usd: '0.50', held_usd: '0.00', left_usd: '1.50', resets_at: '2026-11-23T18:30:00Z' };
    const text = formatKey({ ...info, budgets: [all, known] });
    expect(text).to.include(
      [
        'budgets         all: 9.00 USD in all',
        '                day: 2.00 USD a day in Asia/Kolkata: 0.50 spent, 1.50 left, resets 2026-11-23T18:30:00Z',
      ].join('\n'),
    );
    expect(text).to.not.include('[object');
  });

  it('shows a missing budget as a dash', () => {
    expect(formatKey({ ...info, budgets: null })).to.match(/^budgets {9}-$/m);
  });
});
