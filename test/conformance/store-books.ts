import assert from 'node:assert/strict';
import type { Reservation } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { budget, DAYS, NOW, reservation, type StoreUnderTest, settlement, sums } from './store.ts';

/** Tests every ledger's entries, usage, sweeper and exactness under parallel calls. */
export function testBooks(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  const reserve = async (request: Reservation) => (await ledger().reserve(request)).outcome;
  const funded = async (amount: number): Promise<string> => {
    const account = subject.name('account');
    await ledger().credit(account, 'first', amount, 'top-up', NOW);
    return account;
  };

  describe('books', () => {
    it('writes one entry per credit and charge, newest first, whose sum is the balance', async () => {
      const account = await funded(1000);
      for (const [index, amount] of [30, 0, 20].entries()) {
        await reserve(reservation({ account, requestId: `r${index}`, amount: 50 }));
        await ledger().settle(settlement({ account, requestId: `r${index}`, amount, now: NOW + index }));
      }
      const entries = await ledger().entries(account, { limit: 10 });
      assert.deepEqual(
        entries.map(({ kind, amount, ref, at }) => [kind, amount, ref, at]),
        [
          ['charge', -20, 'r2', NOW + 2],
          ['charge', 0, 'r1', NOW + 1],
          ['charge', -30, 'r0', NOW],
          ['credit', 1000, 'first', NOW],
        ],
      );
      assert.ok(entries.every((entry) => entry.account === account));
      assert.match(entries[0]?.reason ?? '', /chat echo\/echo-1/);
      const sum = entries.reduce((total, entry) => total + entry.amount, 0);
      assert.equal(sum, (await ledger().balance(account)).balance);
    });

    it('pages through the entries without a gap or a repetition', async () => {
      const account = subject.name('account');
      for (let n = 0; n < 7; n++) await ledger().credit(account, `c${n}`, n + 1, 'top-up', NOW);
      const seen: string[] = [];
      for (let after: string | undefined, page = 0; page < 5; page++) {
        const entries = await ledger().entries(account, { limit: 3, ...(after !== undefined && { after }) });
        seen.push(...entries.map((entry) => entry.ref));
        after = entries.at(-1)?.id ?? after;
      }
      assert.deepEqual(seen, ['c6', 'c5', 'c4', 'c3', 'c2', 'c1', 'c0']);
      assert.equal(new Set(seen).size, 7);
      await assert.rejects(ledger().entries(account, { limit: 3, after: "1' OR '1'='1" }), { code: 'invalid_request' });
    });

    it('charges a reservation that was not settled in time at its estimate, once', async () => {
      const account = await funded(100);
      const key = budget(subject.name('key'), 100);
      const expiresAt = NOW + 1000;
      await reserve(reservation({ account, requestId: 'lost', amount: 30, expiresAt, budgets: [key] }));
      await reserve(reservation({ account, requestId: 'running', amount: 5, expiresAt: NOW + 60_000 }));
      await ledger().sweep(NOW + 1000);
      assert.equal((await ledger().balance(account)).held, 35);
      assert.ok((await ledger().sweep(NOW + 1001)) >= 1);
      assert.equal(await ledger().sweep(NOW + 1001), 0);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 70, held: 5, spent: 30 });
      assert.deepEqual(await ledger().budgets([key.id]), [{ spent: 30, held: 0 }]);
      const [row] = await ledger().report({ edges: DAYS, by: [], account });
      assert.deepEqual([row?.interval, row?.requests, row?.cost], [1, 1, 30n]);
    });

    for (const { end, amount } of [
      { end: 'a settlement for less', amount: 4 },
      { end: 'a settlement for more', amount: 45 },
      { end: 'a settlement for the same', amount: 30 },
      { end: 'a release', amount: 0 },
    ])
      it(`corrects what the sweeper charged by ${end} that comes late, once`, async () => {
        const account = await funded(100);
        const key = budget(subject.name('key'), 60);
        await reserve(reservation({ account, requestId: 'late', amount: 30, expiresAt: NOW + 1000, budgets: [key] }));
        await ledger().sweep(NOW + 1001);
        const finish = () =>
          end === 'a release'
            ? ledger().release(account, 'late')
            : ledger().settle(settlement({ account, requestId: 'late', amount, now: NOW + 2000 }));
        assert.equal(await finish(), true);
        assert.equal(await finish(), false);
        assert.equal(await ledger().release(account, 'late'), false);
        assert.deepEqual(sums(await ledger().balance(account)), { balance: 100 - amount, held: 0, spent: amount });
        assert.deepEqual(await ledger().budgets([key.id]), [{ spent: amount, held: 0 }]);
        const entries = await ledger().entries(account, { limit: 10 });
        const charged = entries.filter(({ kind, ref }) => kind === 'charge' && ref === 'late');
        assert.equal(
          charged.reduce((sum, entry) => sum + entry.amount, 0),
          0 - amount,
        );
        const [row] = await ledger().report({ edges: DAYS, by: [], account });
        assert.deepEqual([row?.interval, row?.requests, row?.cost], [1, 1, BigInt(amount)]);
        assert.equal(await reserve(reservation({ account, requestId: 'late' })), 'duplicate');
      });

    it('sweeps more than one page of lost reservations', async () => {
      const account = subject.name('account');
      const lost = Array.from({ length: 450 }, (_, n) => `r${n}`);
      const floor = Number.NEGATIVE_INFINITY;
      await Promise.all(
        lost.map((requestId) => reserve(reservation({ account, requestId, amount: 1, floor, expiresAt: NOW }))),
      );
      assert.equal((await ledger().balance(account)).held, 450);
      await ledger().sweep(NOW + 1);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: -450, held: 0, spent: 450 });
    });

    it('admits exactly as many of fifty parallel reservations as there is money for', async () => {
      const account = await funded(100);
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, n) => reserve(reservation({ account, requestId: `r${n}` }))),
      );
      assert.equal(outcomes.filter((outcome) => outcome === 'held').length, 10);
      assert.equal(outcomes.filter((outcome) => outcome === 'insufficient').length, 40);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 100, held: 100, spent: 0 });
    });

    it('lets one of fifty parallel reservations of one request through', async () => {
      const account = await funded(1000);
      const one = reservation({ account, requestId: 'same' });
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => reserve(one)));
      assert.equal(outcomes.filter((outcome) => outcome === 'held').length, 1);
      const settled = await Promise.all(
        Array.from({ length: 50 }, () => ledger().settle(settlement({ account, requestId: 'same' }))),
      );
      assert.equal(settled.filter(Boolean).length, 1);
      assert.deepEqual(sums(await ledger().balance(account)), { balance: 990, held: 0, spent: 10 });
    });

    for (const hostile of [
      "x' OR 1=1 --",
      '{a}:b',
      'a:b',
      'ä\u{1f600}',
      '%_\\',
      '*',
      '__proto__',
      'x'.repeat(3000),
      'a\nb',
      'a\0b',
      '~',
      '',
    ]) {
      it(`keeps the books of the account ${JSON.stringify(hostile).slice(0, 24)} to itself`, async () => {
        const account = `${hostile}${subject.name('')}`;
        const requestId = `${hostile}r`;
        await ledger().credit(account, hostile, 100, hostile, NOW);
        const own = budget(`${hostile}${subject.name('')}`, 50);
        assert.equal(await reserve(reservation({ account, requestId, budgets: [own] })), 'held');
        assert.equal(await ledger().settle(settlement({ account, requestId })), true);
        assert.deepEqual(sums(await ledger().balance(account)), { balance: 90, held: 0, spent: 10 });
        assert.deepEqual(await ledger().budgets([own.id]), [{ spent: 10, held: 0 }]);
        const [entry] = await ledger().entries(account, { limit: 1 });
        assert.equal(entry?.account, account);
      });
    }

    for (const amount of [0.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      it(`refuses to hold or charge ${amount} nano-dollars`, async () => {
        const account = await funded(100);
        const failure = { code: 'internal_error' };
        await assert.rejects(reserve(reservation({ account, requestId: 'r', amount })), failure);
        await assert.rejects(ledger().settle(settlement({ account, requestId: 'r', amount })), failure);
        assert.deepEqual(sums(await ledger().balance(account)), { balance: 100, held: 0, spent: 0 });
      });
    }
  });
}
