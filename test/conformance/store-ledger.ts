import assert from 'node:assert/strict';
import type { Reservation, ReserveResult } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { DAYS, NOW, reservation, type StoreUnderTest, settlement, sums } from './store.ts';

/** Tests the ledger of every store. */
export function testLedger(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  const reserve = async (request: Reservation) => (await ledger().reserve(request)).outcome;
  const funded = async (amount: number): Promise<string> => {
    const account = subject.name('account');
    await ledger().credit(account, 'first', amount, 'top-up', NOW);
    return account;
  };

  describe('ledger', () => {
    it('returns zeros for an unused account', async () => {
      const account = subject.name('unused');
      assert.deepEqual(await ledger().balance(account), { balance: 0, held: 0, spent: 0, credited: 0, updatedAt: 0 });
      assert.deepEqual(await ledger().entries(account, { limit: 10 }), []);
      assert.deepEqual(await ledger().budgets([subject.name('key')]), [{ spent: 0, held: 0 }]);
      assert.deepEqual(await ledger().report({ edges: DAYS, by: ['model'], account }), []);
      assert.deepEqual(await ledger().calls({ account, limit: 10 }), { calls: [] });
    });

    it('credits once under an id', async () => {
      const account = subject.name('account');
      assert.equal(await ledger().credit(account, 'c1', 500, 'top-up', NOW), true);
      assert.equal(await ledger().credit(account, 'c1', 500, 'top-up', NOW), false);
      assert.equal(await ledger().credit(account, 'c2', -200, 'refund', NOW + 1), true);
      assert.deepEqual(await ledger().balance(account), {
        balance: 300,
        held: 0,
        spent: 0,
        credited: 300,
        updatedAt: NOW + 1,
      });
    });

    it('credits an account with 9,000,000 USD in all, and with no more', async () => {
      const account = await funded(8_999_999_999_999_999);
      const credit = (id: string, amount: number) => ledger().credit(account, id, amount, 'top-up', NOW);
      await assert.rejects(credit('c2', 2), { code: 'invalid_request' });
      assert.equal(await credit('c2', 1), true);
      assert.equal(await credit('c2', 1), false);
      await assert.rejects(credit('c3', 1), { code: 'invalid_request' });
      assert.equal(await credit('c4', -5), true);
      assert.equal(await credit('c3', 4), true);
      assert.equal((await ledger().balance(account)).balance, 8_999_999_999_999_999);
    });

    it('lets an account spend 9,000,000 USD in all, and no more, also where no floor holds it', async () => {
      const account = subject.name('account');
      const most = { account, requestId: 'most', amount: 8_999_999_999_999_999, floor: Number.NEGATIVE_INFINITY };
      const spend = (requestId: string, amount: number) => reserve(reservation({ ...most, requestId, amount }));
      assert.equal(await reserve(reservation(most)), 'held');
      assert.equal(await ledger().settle(settlement(most)), true);
      await assert.rejects(spend('r2', 2), { code: 'insufficient_balance' });
      assert.equal(await spend('r1', 1), 'held');
      assert.deepEqual(sums(await ledger().balance(account)), { balance: -most.amount, held: 1, spent: most.amount });
    });

    it('holds the estimate, then charges the true cost', async () => {
      const account = await funded(100);
      assert.equal(await reserve(reservation({ account, requestId: 'r1', amount: 40 })), 'held');
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 100, held: 40, spent: 0 });
      assert.equal(await ledger().settle(settlement({ account, requestId: 'r1', amount: 25 })), true);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 75, held: 0, spent: 25 });
    });

    it('charges what a call cost also when that is more than was held', async () => {
      const account = await funded(10);
      await reserve(reservation({ account, requestId: 'r1', amount: 10 }));
      assert.equal(await ledger().settle(settlement({ account, requestId: 'r1', amount: 35 })), true);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: -25, held: 0, spent: 35 });
      assert.equal(await reserve(reservation({ account, requestId: 'r2', amount: 0 })), 'insufficient');
    });

    it('settles once: a second settle or release changes nothing', async () => {
      const account = await funded(100);
      await reserve(reservation({ account, requestId: 'r1' }));
      assert.equal(await ledger().settle(settlement({ account, requestId: 'r1', amount: 7 })), true);
      assert.equal(await ledger().settle(settlement({ account, requestId: 'r1', amount: 7 })), false);
      assert.equal(await ledger().release(account, 'r1'), false);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 93, held: 0, spent: 7 });
    });

    it('releases once and charges nothing', async () => {
      const account = await funded(100);
      await reserve(reservation({ account, requestId: 'r1' }));
      assert.equal(await ledger().release(account, 'r1'), true);
      assert.equal(await ledger().release(account, 'r1'), false);
      assert.equal(await ledger().settle(settlement({ account, requestId: 'r1' })), false);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 100, held: 0, spent: 0 });
    });

    it('settles and releases nothing that was not reserved', async () => {
      const account = await funded(100);
      assert.equal(await ledger().settle(settlement({ account, requestId: 'missing' })), false);
      assert.equal(await ledger().release(account, 'missing'), false);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 100, held: 0, spent: 0 });
    });

    for (const [state, after] of [
      ['held', async () => undefined],
      ['settled', (account: string) => ledger().settle(settlement({ account, requestId: 'r1' }))],
      ['released', (account: string) => ledger().release(account, 'r1')],
    ] as const) {
      it(`calls a request id that is already ${state} a duplicate, also when the money is gone`, async () => {
        const account = await funded(10);
        assert.equal(await reserve(reservation({ account, requestId: 'r1' })), 'held');
        await after(account);
        const before = await ledger().balance(account);
        const again = reservation({ account, requestId: 'r1', amount: 10_000 });
        assert.equal(await reserve(again), 'duplicate');
        assert.deepEqual(await ledger().balance(account), before);
      });
    }

    it('keeps the same request id of two accounts apart', async () => {
      const [one, two] = [await funded(100), await funded(100)];
      assert.equal(await reserve(reservation({ account: one, requestId: 'r1' })), 'held');
      assert.equal(await reserve(reservation({ account: two, requestId: 'r1' })), 'held');
      await ledger().settle(settlement({ account: one, requestId: 'r1' }));
      assert.deepEqual(sums(await ledger().balance(two)), { balance: 100, held: 10, spent: 0 });
    });

    const floors: readonly (readonly [number, number, number, ReserveResult['outcome']])[] = [
      [100, 100, 0, 'held'],
      [100, 101, 0, 'insufficient'],
      [0, 1, 0, 'insufficient'],
      [0, 0, 0, 'held'],
      [0, 50, -50, 'held'],
      [0, 51, -50, 'insufficient'],
      [100, 50, 60, 'insufficient'],
      [0, 1_000_000_000, Number.NEGATIVE_INFINITY, 'held'],
    ];
    for (const [balance, amount, floor, outcome] of floors) {
      it(`answers ${outcome} to a reservation of ${amount} on ${balance} with the floor ${floor}`, async () => {
        const account = balance === 0 ? subject.name('account') : await funded(balance);
        assert.equal(await reserve(reservation({ account, requestId: 'r', amount, floor })), outcome);
        assert.equal((await ledger().balance(account)).held, outcome === 'held' ? amount : 0);
      });
    }

    it('counts what is held against the floor', async () => {
      const account = await funded(100);
      assert.equal(await reserve(reservation({ account, requestId: 'r1', amount: 60 })), 'held');
      assert.equal(await reserve(reservation({ account, requestId: 'r2', amount: 60 })), 'insufficient');
      await ledger().release(account, 'r1');
      assert.equal(await reserve(reservation({ account, requestId: 'r2', amount: 60 })), 'held');
    });
  });
}
