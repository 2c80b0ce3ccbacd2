import { mock } from 'node:test';
import { expect } from 'chai';
import type { Log } from '../../../../contract/index.ts';
import { createLedgerClock } from '../../../../plugins/policies/accounts/index.ts';
import { createSilentLog } from '../../../support/log.ts';

const HOUR_MS = 3_600_000;

describe('the clock of reservations', () => {
  const warnings: object[] = [];
  const log: Log = { ...createSilentLog(), warn: (fields: object) => void warnings.push(fields) };
  let offsetMs = 0;
  let clock: { mock: { restore(): void } };
  before(() => {
    const now = Date.now.bind(Date);
    clock = mock.method(Date, 'now', () => now() + offsetMs);
  });
  after(() => clock?.mock.restore());
  beforeEach(() => {
    offsetMs = 0;
    warnings.length = 0;
  });

  for (const jumpMs of [HOUR_MS, -HOUR_MS])
    it(`continues when the clock of the machine jumps by ${jumpMs / HOUR_MS} h`, async () => {
      const { now, adjust } = createLedgerClock({}, log);
      const before = now();
      offsetMs = jumpMs;
      await adjust();
      expect(now() - before).to.be.within(0, 1000);
    });

  it('is that of the store if it has one, and reports once that the machine differs', async () => {
    const { now, adjust } = createLedgerClock({ clock: async () => Date.now() - 20 * 60_000 }, log);
    await adjust();
    expect(Date.now() - now()).to.be.closeTo(20 * 60_000, 1000);
    await adjust();
    expect(warnings).to.deep.equal([{ ahead_s: 1200 }]);
  });

  it('does not report a harmless difference', async () => {
    await createLedgerClock({ clock: async () => Date.now() - 2000 }, log).adjust();
    expect(warnings).to.deep.equal([]);
  });

  it('keeps its time when the store does not answer', async () => {
    const { now, adjust } = createLedgerClock({ clock: () => Promise.reject(new Error('away')) }, log);
    await adjust().catch(() => undefined);
    expect(now()).to.be.closeTo(Date.now(), 1000);
  });
});
