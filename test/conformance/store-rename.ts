import assert from 'node:assert/strict';
import type { CallFacts, CallFilter, CallPage, CallSearch, ReportDimension } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { DAYS, FACTS, NOW, reservation, type StoreUnderTest, settlement } from './store.ts';

/** Tests the erasure of a person's name from a ledger, where a store offers it. */
export function testRename(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  const floor = Number.NEGATIVE_INFINITY;
  const call = async (
    account: string,
    requestId: string,
    facts: Partial<CallFacts>,
    budgets: readonly string[] = [],
  ) => {
    const holds = budgets.map((id) => ({ id, limit: 1000 }));
    const whole = { ...FACTS, requestId, ...facts };
    await ledger().reserve(reservation({ account, requestId, floor, budgets: holds, facts: whole }));
    await ledger().settle(settlement({ account, requestId, facts: whole }));
  };
  const sumsBy = (by: readonly ReportDimension[], filter: object) => ledger().report({ edges: DAYS, by, ...filter });
  /** Counts calls on all pages of a list. */
  const countCalls = async (filter: CallFilter & CallSearch): Promise<number> => {
    let total = 0;
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: CallPage = await ledger().calls({ ...filter, limit: 10, ...(after !== '' && { after }) });
      total += page.calls.length;
      after = page.next;
    }
    return total;
  };
  const rename = async (name: string, id: string): Promise<void> => {
    assert.ok(ledger().rename, 'the store does not offer it');
    await ledger().rename?.(name, id);
  };
  const isOffered = () => ledger().rename !== undefined;

  describe('the erasure of a name', () => {
    it('moves account, entries, records and sums to the id, and leaves nothing under the name', async () => {
      if (!isOffered()) return;
      const name = `${subject.name('ann')}@example.com`;
      const id = subject.name('erased');
      const company = subject.name('company');
      const budget = `user:${name}`;
      const window = `plan:free:${name}:monthly:month@${NOW}`;
      await ledger().credit(name, `gift for ${name}`, 100, `thanks, ${name}`, NOW);
      await call(name, subject.name('r'), { userId: name, tags: [`owner=${name}`, 'team=a'], session: name }, [
        budget,
        window,
      ]);
      await call(company, subject.name('r'), {
        userId: name,
        errorMessage: `no access for ${name}`,
        address: '10.0.0.9',
      });
      await call(company, subject.name('r'), { userId: 'bea', endUser: name, address: '10.0.0.9' });
      await call(company, subject.name('r'), { userId: `not-${name}`, errorMessage: `not-${name} was refused` });
      const before = await ledger().balance(name);
      const ofCompany = await sumsBy(['account'], { account: company });

      await rename(name, id);

      assert.deepEqual(await ledger().balance(id), before);
      assert.equal((await ledger().balance(name)).updatedAt, 0);
      assert.deepEqual(await ledger().entries(name, { limit: 10 }), []);
      const entries = await ledger().entries(id, { limit: 10 });
      assert.deepEqual(
        entries.map(({ kind, amount, reason, ref }) => [kind, amount, reason, kind === 'credit' && ref]),
        [
          ['charge', -10, 'chat echo/echo-1', false],
          ['credit', 100, `thanks, ${id}`, `gift for ${id}`],
        ],
      );
      for (const filter of [{ userId: name }, { account: name }, { endUser: name }, { session: name }])
        assert.deepEqual((await ledger().calls({ ...filter, limit: 10 })).calls, []);
      const { calls } = await ledger().calls({ userId: id, limit: 10 });
      assert.deepEqual(
        calls
          .map(({ account, tags, session, errorMessage, address }) => [account, tags, session, errorMessage, address])
          .sort(),
        [
          [company, [], undefined, `no access for ${id}`, undefined],
          [id, [`owner=${id}`, 'team=a'], id, undefined, undefined],
        ].sort(),
      );
      const [ofEndUser] = (await ledger().calls({ account: company, userId: 'bea', limit: 10 })).calls;
      assert.deepEqual([ofEndUser?.endUser, ofEndUser?.address], [id, undefined]);
      for (const filter of [{ endUser: id }, { tag: `owner=${id}` }])
        assert.equal(await countCalls(filter), 1, JSON.stringify(filter));
      const others = (await ledger().calls({ userId: `not-${name}`, limit: 10 })).calls;
      assert.deepEqual(
        others.map(({ errorMessage }) => errorMessage),
        [`not-${name} was refused`],
      );
      assert.deepEqual(await sumsBy(['user'], { userId: name }), []);
      assert.deepEqual(
        (await sumsBy(['user'], { userId: id })).map(({ requests, cost }) => [requests, cost]),
        [[2, 20n]],
      );
      assert.deepEqual(await sumsBy(['account'], { account: company }), ofCompany);
      assert.deepEqual(
        (await ledger().budgets([budget, window])).map(({ spent, held }) => [spent, held]),
        [
          [0, 0],
          [0, 0],
        ],
      );
    });

    it('can be repeated, and a person of the same name begins with nothing', async () => {
      if (!isOffered()) return;
      const [name, id, other] = [subject.name('max'), subject.name('erased'), subject.name('erased')];
      const request = subject.name('r');
      await call(name, request, { userId: name }, [`user:${name}`]);
      await rename(name, id);
      await rename(name, id);
      await call(name, request, { userId: name }, [`user:${name}`]);
      assert.equal((await ledger().balance(name)).spent, 10);
      assert.equal((await ledger().budgets([`user:${name}`]))[0]?.spent, 10);
      assert.equal((await ledger().calls({ userId: name, limit: 10 })).calls.length, 1);
      await rename(name, other);
      for (const each of [id, other]) {
        assert.equal((await ledger().balance(each)).spent, 10);
        assert.equal((await sumsBy(['user'], { userId: each }))[0]?.requests, 1);
      }
      assert.equal((await ledger().balance(name)).spent, 0);
    });

    it('keeps the calls and sums of others whose tags have the name inside a longer word', async () => {
      if (!isOffered()) return;
      const [name, id, company] = [subject.name('ann'), subject.name('erased'), subject.name('company')];
      const tags = [`team=pl${name}ing`];
      await call(company, subject.name('r'), { userId: 'bea', tags });
      await call(name, subject.name('r'), { userId: name });
      const before = await sumsBy(['account', 'tags'], { account: company });
      await rename(name, id);
      assert.deepEqual(await sumsBy(['account', 'tags'], { account: company }), before);
      const { calls } = await ledger().calls({ account: company, limit: 10 });
      assert.deepEqual(
        calls.map((each) => each.tags),
        [tags],
      );
    });

    it('waits for running calls of the person, on any account', async () => {
      if (!isOffered()) return;
      const [name, id, company] = [subject.name('zoe'), subject.name('erased'), subject.name('company')];
      for (const account of [name, company]) {
        const requestId = subject.name('r');
        const facts = { ...FACTS, userId: name };
        await ledger().reserve(reservation({ account, requestId, floor, amount: 0, facts }));
        await assert.rejects(rename(name, id), { code: 'conflict' });
        await ledger().settle(settlement({ account, requestId, facts }));
        assert.equal((await ledger().balance(account)).spent, 10);
      }
      await rename(name, id);
      assert.equal((await sumsBy(['user'], { userId: id }))[0]?.requests, 2);
    });

    it('takes any text as a name', async () => {
      if (!isOffered()) return;
      for (const word of ["x' OR 1=1 --", '%', 'a_b', '\\', '[a-z]*', 'ä\u{1f600}', '"', `long${'x'.repeat(280)}`]) {
        const [name, id] = [subject.name(word), subject.name('erased')];
        await ledger().credit(name, 'c', 5, 'x', NOW);
        await call(name, subject.name('r'), { userId: name });
        await rename(name, id);
        assert.equal((await ledger().balance(id)).balance, -5, word);
        assert.equal((await ledger().balance(name)).updatedAt, 0, word);
        assert.equal((await ledger().calls({ userId: id, account: id, limit: 10 })).calls.length, 1, word);
        assert.equal((await sumsBy(['user'], { userId: id, account: id }))[0]?.requests, 1, word);
        assert.equal(
          (await ledger().accounts({ limit: 1000 })).some(({ account }) => account === name),
          false,
          word,
        );
      }
    });
  });
}
