import assert from 'node:assert/strict';
import { findRunner } from './runner.ts';
import { budget, NOW, reservation, type StoreUnderTest, settlement, sums } from './store.ts';

/** Tests every ledger's budgets: any number of them on one reservation, all or none. */
export function testBudgets(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  const funded = async (amount: number): Promise<string> => {
    const account = subject.name('account');
    await ledger().credit(account, 'first', amount, 'top-up', NOW);
    return account;
  };
  /** Spent and held amounts of budgets. */
  const states = async (...budgets: readonly { readonly id: string }[]) =>
    (await ledger().budgets(budgets.map(({ id }) => id))).map(({ spent, held }) => [spent, held]);

  describe('budgets', () => {
    it('keeps a budget within its limit, whatever the account has', async () => {
      const account = await funded(1000);
      const key = budget(subject.name('key'), 100);
      const reserve = (requestId: string, amount: number, budgets = [key]) =>
        ledger().reserve(reservation({ account, requestId, amount, budgets }));
      assert.deepEqual(await reserve('r1', 60), { outcome: 'held', used: [60] });
      assert.deepEqual(await reserve('r2', 41), { outcome: 'over_budget', budget: 0, used: 60 });
      assert.deepEqual(await states(key), [[0, 60]]);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 1000, held: 60, spent: 0 });
      await ledger().settle(settlement({ account, requestId: 'r1', amount: 50 }));
      assert.deepEqual(await states(key), [[50, 0]]);
      assert.deepEqual(await reserve('r3', 50), { outcome: 'held', used: [100] });
      await ledger().release(account, 'r3');
      assert.deepEqual(await states(key), [[50, 0]]);
      const other = budget(subject.name('key'), 100);
      assert.deepEqual(await reserve('r4', 101, [other]), { outcome: 'over_budget', budget: 0, used: 0 });
      assert.deepEqual(await states(other), [[0, 0]]);
    });

    it('holds in all budgets or in none, and names the first that refuses', async () => {
      const account = await funded(1000);
      const [wide, narrow, tight] = [100, 20, 5].map((limit) => budget(subject.name('b'), limit));
      assert.ok(wide && narrow && tight);
      const reserve = (requestId: string, amount: number) =>
        ledger().reserve(reservation({ account, requestId, amount, budgets: [wide, narrow, tight] }));
      assert.deepEqual(await reserve('r1', 5), { outcome: 'held', used: [5, 5, 5] });
      assert.deepEqual(await reserve('r2', 1), { outcome: 'over_budget', budget: 2, used: 5 });
      assert.deepEqual(await reserve('r3', 16), { outcome: 'over_budget', budget: 1, used: 5 });
      assert.deepEqual(await states(wide, narrow, tight), [
        [0, 5],
        [0, 5],
        [0, 5],
      ]);
      assert.equal((await ledger().balance(account)).held, 5);
      // A refused reservation leaves no trace: the same request may be sent again.
      assert.deepEqual(await reserve('r2', 0), { outcome: 'held', used: [5, 5, 5] });
    });

    it('asks the account before its budgets, and leaves no trace of a refusal', async () => {
      const account = await funded(10);
      const key = budget(subject.name('key'), 5);
      const reserve = (amount: number) =>
        ledger().reserve(reservation({ account, requestId: 'r1', amount, budgets: [key] }));
      assert.deepEqual(await reserve(11), { outcome: 'insufficient' });
      assert.deepEqual(await reserve(6), { outcome: 'over_budget', budget: 0, used: 0 });
      assert.deepEqual(await states(key), [[0, 0]]);
      assert.deepEqual(await reserve(5), { outcome: 'held', used: [5] });
      assert.deepEqual(await reserve(5), { outcome: 'duplicate' });
    });

    it('adds an opening amount once, without the calls that the budget includes', async () => {
      const { openBudget } = ledger();
      if (!openBudget) return;
      const account = await funded(1000);
      const key = budget(subject.name('key'), 100);
      const before = NOW + 1000;
      const open = (spent: number, since = NOW) => ledger().openBudget?.({ id: key.id, since, before, spent });
      const reserve = (requestId: string, amount: number, now = NOW) =>
        ledger().reserve(reservation({ account, requestId, amount, budgets: [key], now }));
      // Nothing is spent yet; the first call runs.
      assert.deepEqual(await open(0), { spent: 0, held: 0, start: { since: NOW, before, counted: 0 } });
      await reserve('early', 10);
      await ledger().settle(settlement({ account, requestId: 'early', amount: 8 }));
      await reserve('late', 20, before);
      await ledger().settle(settlement({ account, requestId: 'late', amount: 20, now: before }));
      assert.deepEqual(await states(key), [[28, 0]]);
      // 38 were spent before: 8 of them are included. Two processes report the same amount.
      await Promise.all([open(38), open(38)]);
      assert.deepEqual(await states(key), [[58, 0]]);
      // An older amount changes nothing.
      await open(30);
      assert.deepEqual(await ledger().budgets([key.id]), [
        { spent: 58, held: 0, start: { since: NOW, before, counted: 38 } },
      ]);
      assert.deepEqual(await reserve('r3', 43), { outcome: 'over_budget', budget: 0, used: 58 });
      // The budget is created again: all that it includes was spent before.
      const again = await open(70, NOW + 1);
      assert.deepEqual([again?.spent, again?.start?.counted], [70, 70]);
    });

    it('counts a budget over all accounts that name it', async () => {
      const [one, two] = [await funded(100), await funded(100)];
      const team = budget(subject.name('team'), 15);
      const reserve = (account: string) =>
        ledger().reserve(reservation({ account, requestId: 'r', amount: 10, budgets: [team] }));
      assert.deepEqual(await reserve(one), { outcome: 'held', used: [10] });
      assert.deepEqual(await reserve(two), { outcome: 'over_budget', budget: 0, used: 10 });
      await ledger().settle(settlement({ account: one, requestId: 'r', amount: 4 }));
      assert.deepEqual(await reserve(two), { outcome: 'held', used: [14] });
    });

    it('counts without a limit where it is infinite', async () => {
      const account = await funded(100);
      const key = budget(subject.name('key'));
      await ledger().reserve(reservation({ account, requestId: 'r', amount: 90, budgets: [key] }));
      await ledger().settle(settlement({ account, requestId: 'r', amount: 95 }));
      assert.deepEqual(await states(key), [[95, 0]]);
    });

    it('gives uncharged budgets back without a charge, also when the sweeper has charged them', async () => {
      for (const isSwept of [false, true]) {
        const account = await funded(100);
        const [key, vendor] = [budget(subject.name('key'), 50), budget(subject.name('vendor'), 50)];
        const expiresAt = NOW + 1000;
        await ledger().reserve(reservation({ account, requestId: 'r', amount: 30, budgets: [key, vendor], expiresAt }));
        if (isSwept) {
          await ledger().sweep(NOW + 1001);
          assert.deepEqual(await states(key, vendor), [
            [30, 0],
            [30, 0],
          ]);
        }
        const uncharged = [vendor.id, subject.name('never held')];
        assert.equal(
          await ledger().settle(settlement({ account, requestId: 'r', amount: 7, uncharged, now: NOW + 2000 })),
          true,
        );
        assert.deepEqual(await states(key, vendor), [
          [7, 0],
          [0, 0],
        ]);
        assert.deepEqual(sums(await ledger().balance(account)), { balance: 93, held: 0, spent: 7 });
      }
    });

    it('admits exactly as many of fifty parallel reservations as the narrowest of three budgets allows', async () => {
      const account = subject.name('account');
      const floor = Number.NEGATIVE_INFINITY;
      const [a, b, c] = [1000, 70, 400].map((limit) => budget(subject.name('b'), limit));
      assert.ok(a && b && c);
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          // Alternates the order, because locks in different orders can cause deadlocks.
          ledger().reserve(reservation({ account, requestId: `r${n}`, floor, budgets: n % 2 ? [a, b, c] : [c, b, a] })),
        ),
      );
      assert.equal(results.filter(({ outcome }) => outcome === 'held').length, 7);
      assert.equal(results.filter(({ outcome }) => outcome === 'over_budget').length, 43);
      assert.deepEqual(await states(a, b, c), [
        [0, 70],
        [0, 70],
        [0, 70],
      ]);
      assert.equal((await ledger().balance(account)).held, 70);
    });

    it('takes 32 budgets, and refuses more, one named twice, and a limit that is no number', async () => {
      const account = await funded(100);
      const many = Array.from({ length: 33 }, () => budget(subject.name('b'), 50));
      const failure = { code: 'internal_error' };
      const reserve = (budgets: typeof many) =>
        ledger().reserve(reservation({ account, requestId: 'r', amount: 1, budgets }));
      await assert.rejects(reserve(many), failure);
      await assert.rejects(reserve([...many.slice(0, 1), ...many.slice(0, 1)]), failure);
      await assert.rejects(reserve([budget(subject.name('b'), Number.NaN)]), failure);
      const result = await reserve(many.slice(1));
      assert.deepEqual(result, { outcome: 'held', used: Array.from({ length: 32 }, () => 1) });
      await ledger().settle(settlement({ account, requestId: 'r', amount: 2 }));
      assert.deepEqual(await states(...many), [[0, 0], ...Array.from({ length: 32 }, () => [2, 0])]);
    });

    it('returns zeros for unused budgets, in the requested order', async () => {
      const account = await funded(100);
      const [unused, used] = [budget(subject.name('b')), budget(subject.name('b'))];
      await ledger().reserve(reservation({ account, requestId: 'r', amount: 3, budgets: [used] }));
      assert.deepEqual(await states(unused, used, unused), [
        [0, 0],
        [0, 3],
        [0, 0],
      ]);
      assert.deepEqual(await ledger().budgets([]), []);
    });
  });
}
