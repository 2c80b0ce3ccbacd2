import { expect } from 'chai';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { FACTS } from '../../../conformance/store.ts';
import { eventually } from '../../../support/wait.ts';
import { startCharging } from './charged-calls.ts';

const DAY_MS = 86_400_000;

describe('the records that the accounts policy keeps', () => {
  it('are those of 90 days; earlier calls are in reports all the same', async () => {
    const store = await openMemory();
    const { ledger } = store;
    for (const days of [0, 89, 91, 200]) {
      const now = Date.now() - days * DAY_MS;
      const call = { account: 'a', requestId: `${days} days ago`, amount: 10, facts: FACTS, now };
      await ledger.reserve({ ...call, floor: Number.NEGATIVE_INFINITY, expiresAt: now + 1000 });
      await ledger.settle(call);
    }
    const gateway = await startCharging(store, ledger, 'track');
    await gateway.ready();
    await eventually(async () => {
      const { calls } = await ledger.calls({ limit: 10 });
      expect(calls.map(({ id }) => id)).to.deep.equal(['0 days ago', '89 days ago']);
    });
    const [all] = await ledger.report({ edges: [0, Date.now() + 1], by: [] });
    expect([all?.requests, all?.cost]).to.deep.equal([4, 40n]);
    await gateway.close();
    await store.close();
  });

  it('are deleted when the store is back, if it was unavailable at first', async () => {
    const store = await openMemory();
    let isAway = true;
    const requested: number[] = [];
    const ledger = {
      ...store.ledger,
      async forgetCalls(before: number) {
        requested.push(before);
        if (isAway) throw new Error('away');
        return store.ledger.forgetCalls(before);
      },
    };
    const gateway = await startCharging(store, ledger, 'track', undefined, { sweepEvery: '10ms' });
    await gateway.ready();
    await eventually(async () => expect(requested.length).to.be.above(1));
    isAway = false;
    const failed = requested.length;
    await eventually(async () => expect(requested.length).to.be.above(failed));
    await gateway.close();
    await store.close();
  });
});
