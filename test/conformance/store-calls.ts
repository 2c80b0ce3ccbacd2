import assert from 'node:assert/strict';
import type { CallFacts, CallQuery, CallRow, CallSearch } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { FACTS, NOW, reservation, type StoreUnderTest, settlement } from './store.ts';

/** Texts that resemble patterns, code, or nothing. */
const HOSTILE = Object.freeze([
  "x' OR 1=1 --",
  '%',
  '_',
  '\\',
  '*',
  '[a-z]',
  '{a}:b',
  'ä\u{1f600}',
  'a\nb',
  'a\0b',
  '"',
  '',
]);

/** Tests every ledger's call records: one per call, searchable, with its outcome. */
export function testCalls(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  /** Makes a settled call with a cost of 10 by default. */
  const call = async (account: string, requestId: string, facts: Partial<CallFacts> = {}, fields: object = {}) => {
    const floor = Number.NEGATIVE_INFINITY;
    await ledger().reserve(reservation({ account, requestId, floor }));
    await ledger().settle(settlement({ account, requestId, facts: { ...FACTS, ...facts }, ...fields }));
  };
  /** Reads all calls, page by page. */
  const readAll = async (query: Omit<CallQuery, 'limit'>, limit = 1000): Promise<readonly CallRow[]> => {
    const all: CallRow[] = [];
    for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const page = await ledger().calls({ ...query, limit, ...(after !== undefined && { after }) });
      assert.ok(page.calls.length <= limit);
      all.push(...page.calls);
      after = page.next;
    }
    return all;
  };

  describe('records of calls', () => {
    it('has all reported fields of a call', async () => {
      const account = subject.name('account');
      const facts: CallFacts = {
        ...FACTS,
        userId: subject.name('user'),
        key: 'tg_1',
        tags: ['project=x', 'team=search'],
        session: 's 1',
        requested: 'fast',
        stream: true,
        outcome: 'aborted',
        errorCode: 'upstream_error',
        attempts: [
          { target: 'echo/echo-1', class: 'timeout', reason: 'no response within 5 s', ms: 5000 },
          { target: 'echo/echo-2', status: 200, ms: 11 },
        ],
        errorMessage: 'The caller disconnected.',
        refusedBy: 'budget "search"',
        lane: 'native',
        startedAt: NOW - 5000,
        durationMs: 4321,
        firstByteMs: 12,
        units: { prompt_tokens: 7, completion_tokens: 5, cached_tokens: 3, images: 2 },
        estimated: true,
        priced: false,
        saved: 9,
      };
      await call(account, 'full', facts, { amount: 12, now: NOW + 7 });
      const { calls, next } = await ledger().calls({ account, limit: 10 });
      assert.equal(next, undefined);
      assert.deepEqual(calls, [{ ...facts, id: 'full', account, cost: 12, at: NOW + 7, countedAt: NOW }]);
    });

    it('omits fields that were not reported', async () => {
      const account = subject.name('account');
      await call(account, 'plain');
      assert.deepEqual(await readAll({ account }), [
        { ...FACTS, id: 'plain', account, cost: 10, at: NOW, countedAt: NOW },
      ]);
    });

    it('is one, however often the end of a call is reported', async () => {
      const account = subject.name('account');
      await call(account, 'r');
      await ledger().settle(settlement({ account, requestId: 'r', amount: 99 }));
      await ledger().release(account, 'r', FACTS, NOW);
      assert.deepEqual(
        (await readAll({ account })).map(({ cost }) => cost),
        [10],
      );
    });

    it('is written for a released call with facts, at no cost and without an entry', async () => {
      const account = subject.name('account');
      const floor = Number.NEGATIVE_INFINITY;
      const failed: CallFacts = { ...FACTS, outcome: 'error', errorCode: 'rate_limited', units: {} };
      for (const requestId of ['reported', 'silent'])
        await ledger().reserve(reservation({ account, requestId, floor }));
      assert.equal(await ledger().release(account, 'reported', failed, NOW + 3), true);
      assert.equal(await ledger().release(account, 'reported', failed, NOW + 4), false);
      assert.equal(await ledger().release(account, 'silent'), true);
      assert.equal(await ledger().release(account, 'missing', failed, NOW), false);
      const record = { ...failed, id: 'reported', account, cost: 0, at: NOW + 3, countedAt: NOW };
      assert.deepEqual(await readAll({ account }), [record]);
      assert.deepEqual(await ledger().entries(account, { limit: 10 }), []);
    });

    it('has the plan of a call that only the sweeper settled, and its cost after a later report', async () => {
      for (const isReleased of [false, true]) {
        const account = subject.name('account');
        const planned: CallFacts = {
          ...FACTS,
          key: 'tg_1',
          session: 's',
          tags: ['team=a'],
          outcome: 'unknown',
          units: {},
        };
        const floor = Number.NEGATIVE_INFINITY;
        const expiresAt = NOW + 1000;
        await ledger().reserve(
          reservation({ account, requestId: 'late', amount: 30, floor, expiresAt, facts: planned }),
        );
        await ledger().sweep(NOW + 1001);
        const [swept] = await readAll({ account });
        assert.equal(swept?.at, NOW + 1001);
        assert.deepEqual(
          [swept.outcome, swept.estimated, swept.cost, swept.provider, swept.key, swept.session, swept.tags],
          ['expired', true, 30, 'echo', 'tg_1', 's', ['team=a']],
        );
        const true_: CallFacts = {
          ...planned,
          provider: 'other',
          outcome: isReleased ? 'error' : 'ok',
          estimated: false,
        };
        const cost = isReleased ? 0 : 12;
        const done = isReleased
          ? ledger().release(account, 'late', true_, NOW + 5000)
          : ledger().settle(settlement({ account, requestId: 'late', amount: cost, facts: true_, now: NOW + 5000 }));
        assert.equal(await done, true);
        const record = { ...true_, id: 'late', account, cost, at: NOW + 1001, countedAt: NOW };
        assert.deepEqual(await readAll({ account }), [record]);
        const edges = [NOW - 3_600_000, NOW + 7_200_000];
        const rows = await ledger().report({ edges, by: ['provider'], account });
        assert.deepEqual(
          rows.map((row) => [row.provider, row.requests, row.errors, row.estimated, Number(row.cost)]),
          [['other', 1, Number(isReleased), 0, cost]],
        );
      }
    });

    it('is found by each thing it has, by all together, and by nothing it has not', async () => {
      const account = subject.name('account');
      const own: Partial<CallFacts> = {
        userId: subject.name('user'),
        key: subject.name('key'),
        tags: ['project=x', 'team=a'],
        provider: 'p',
        model: 'm',
        operation: 'speech',
        session: 's',
        outcome: 'error',
      };
      await call(account, 'own', own);
      await call(account, 'other');
      const { tags: _, ...filters } = own;
      const found = async (query: Omit<CallQuery, 'limit'>) =>
        (await readAll({ account, ...query })).map(({ id }) => id);
      for (const [name, value] of Object.entries({ ...filters, tag: 'team=a' }))
        assert.deepEqual(await found({ [name]: value }), ['own'], name);
      assert.deepEqual(await found({ ...filters, tag: 'project=x' }), ['own']);
      assert.deepEqual(await found({ ...filters, tag: 'team=b' }), []);
      assert.deepEqual(await found({ tag: 'team' }), []);
      assert.deepEqual((await found({})).sort(), ['other', 'own']);
    });

    it('is found by parts of names and by what its record has, and keeps the time of each phase (G46)', async () => {
      const account = subject.name('account');
      const user = subject.name('user');
      const own: Partial<CallFacts> = {
        userId: user,
        endUser: 'Ann@example.com',
        address: '10.1.2.3',
        errorCode: 'rate_limited',
        requested: 'fast',
        attempts: [{ target: 'p/m', status: 429, ms: 3 }],
        durationMs: 900,
        receiveMs: 4,
        queueMs: 2,
        upstreamMs: 700,
        retryWaitMs: 100,
        hookTimes: [{ plugin: 'guard', hook: 'prepare', startMs: 1, ms: 30 }],
      };
      await call(account, 'own', own);
      await call(account, 'other', { address: '10.2.0.1' });
      const found = async (query: Omit<CallQuery, 'limit'>) =>
        (await readAll({ account, ...query })).map(({ id }) => id);
      const searches: readonly CallSearch[] = [
        ...[{ search: user.toUpperCase() }, { search: 'ann@' }, { search: '10.1.' }, { endUser: 'Ann@example.com' }],
        ...[{ address: '10.1.2.3' }, { address: '10.1.0.0/16' }, { errorCode: 'rate_limited' }, { status: 429 }],
        ...[{ requested: 'fast' }, { minDurationMs: 900 }],
      ];
      for (const search of searches) assert.deepEqual(await found(search), ['own'], JSON.stringify(search));
      for (const search of [{ search: 'bob' }, { endUser: 'ann' }, { status: 500 }, { minCost: 1e9 }])
        assert.deepEqual(await found(search), [], JSON.stringify(search));
      const [record] = await readAll({ account, endUser: 'Ann@example.com' });
      assert.deepEqual({ ...record, ...own }, record);
    });

    it('is found by each value of its own among the calls of all, and by all of them together', async () => {
      const [account, own] = [subject.name('account'), subject.name('own')];
      const facts: Partial<CallFacts> = {
        ...{ userId: own, tags: [`team=${own}`], provider: `p-${own}`, model: `m-${own}`, operation: `o-${own}` },
        ...{ requested: `alias-${own}`, endUser: `end-${own}`, outcome: 'refused', errorCode: `code-${own}` },
        ...{ address: '2001:db8:0:7::9', attempts: [{ target: 'p/m', status: 418, ms: 3 }], durationMs: 700_000 },
      };
      await call(account, 'own', facts, { amount: 7_000_000 });
      for (let n = 0; n < 5; n += 1) await call(account, `other ${n}`, { userId: own });
      const searches: readonly Omit<CallQuery, 'limit'>[] = [
        ...[{ tag: `team=${own}` }, { provider: `p-${own}` }, { model: `m-${own}` }, { operation: `o-${own}` }],
        ...[{ requested: `alias-${own}` }, { endUser: `end-${own}` }, { errorCode: `code-${own}` }],
        ...[{ address: '2001:db8:0:7:0::9' }, { address: '2001:db8::/48' }, { status: 418 }, { minCost: 6_999_999 }],
        ...[{ minDurationMs: 699_999 }, { outcome: 'refused' as const }, { search: `END-${own}` }],
      ];
      for (const search of [...searches, Object.assign({}, ...searches) as Omit<CallQuery, 'limit'>]) {
        const found = (await readAll(search)).filter((each) => each.account === account);
        assert.deepEqual(
          found.map(({ id }) => id),
          ['own'],
          JSON.stringify(search),
        );
      }
      for (const search of searches.slice(0, 3))
        assert.deepEqual(await readAll({ ...search, errorCode: 'none' }), [], JSON.stringify(search));
    });

    it('is found by the values of a later report, which correct those of its plan', async () => {
      const [account, own] = [subject.name('account'), subject.name('own')];
      await ledger().reserve(reservation({ account, requestId: 'late', expiresAt: NOW + 1, floor: -1000 }));
      await ledger().sweep(NOW + 60_000);
      const facts: CallFacts = { ...FACTS, outcome: 'error', errorCode: `code-${own}`, endUser: `end-${own}` };
      await ledger().settle(settlement({ account, requestId: 'late', facts, now: NOW + 90_000 }));
      for (const search of [{ errorCode: `code-${own}` }, { endUser: `end-${own}` }])
        assert.deepEqual(
          (await readAll(search)).map(({ id, outcome }) => [id, outcome]),
          [['late', 'error']],
        );
    });

    it('is found in the time it was settled in: from its first moment, before its last', async () => {
      const account = subject.name('account');
      for (const n of [0, 1, 2, 3]) await call(account, `r${n}`, {}, { now: NOW + n });
      const found = await readAll({ account, from: NOW + 1, to: NOW + 3 });
      assert.deepEqual(
        found.map(({ id }) => id),
        ['r2', 'r1'],
      );
    });

    it('is listed once and in order, newest first, page by page, while others are added', async () => {
      const account = subject.name('account');
      // Several have the same time, and they are not written in order of time.
      for (let n = 0; n < 23; n++) await call(account, `r${n}`, {}, { now: NOW + ((n * 7) % 5) });
      const seen: CallRow[] = [];
      for (let after: string | undefined, page = 0; page === 0 || after !== undefined; page++) {
        const found = await ledger().calls({ account, limit: 4, ...(after !== undefined && { after }) });
        seen.push(...found.calls);
        after = found.next;
        await call(account, `new${page}`, {}, { now: NOW + 100 + page });
      }
      const old = seen.filter(({ id }) => id.startsWith('r'));
      assert.equal(new Set(old.map(({ id }) => id)).size, 23);
      assert.equal(new Set(seen.map(({ id }) => id)).size, seen.length);
      const times = seen.map(({ at }) => at);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => b - a),
      );
    });

    it('E27: is on the first page of its account, user, key, session and request, however many newer calls others made', async () => {
      const [crowd, rare] = [subject.name('account'), subject.name('account')];
      const facts = {
        userId: subject.name('user'),
        key: subject.name('key'),
        session: subject.name('session'),
        requestId: subject.name('request'),
      };
      for (const n of [0, 1, 2]) await call(rare, `r${n}`, facts, { now: NOW + n });
      // Exceeds the scan limit of a page. Some are errors, which are not indexed.
      for (let first = 0; first < 2400; first += 200)
        await Promise.all(
          Array.from({ length: 200 }, (_, n) => {
            const outcome = (first + n) % 100 === 0 ? 'error' : 'ok';
            return call(crowd, `c${first + n}`, { key: 'crowd', outcome }, { now: NOW + 10 + first + n });
          }),
        );
      for (const filter of [{ account: rare }, ...Object.entries(facts).map(([name, value]) => ({ [name]: value }))]) {
        const first = await ledger().calls({ ...filter, limit: 2 });
        const ids = first.calls.map(({ id }) => id);
        assert.deepEqual(ids, ['r2', 'r1'], JSON.stringify(filter));
        assert.ok(first.next !== undefined);
        const { calls, next } = await ledger().calls({ ...filter, limit: 2, after: first.next });
        assert.deepEqual([calls.map(({ id }) => id), next], [['r0'], undefined]);
        const [row] = await ledger().report({ edges: [NOW, NOW + 10], by: [], ...filter });
        assert.equal(row?.requests, 3);
      }
      const errors = await readAll({ account: crowd, outcome: 'error' });
      assert.deepEqual(
        errors.map(({ id }) => id),
        Array.from({ length: 24 }, (_, n) => `c${2300 - 100 * n}`),
      );
      assert.equal((await readAll({ account: crowd })).length, 2400);
    });

    it('refuses a cursor of no page', async () => {
      for (const after of ['x', "1' OR '1'='1", '', 'WzEsMV0', Buffer.from('{}').toString('base64url')])
        await assert.rejects(ledger().calls({ limit: 3, after }), { code: 'invalid_request' }, after);
    });

    for (const hostile of [...HOSTILE, 'x'.repeat(1000), `${'\u{1f600}'.repeat(150)}`])
      it(`keeps the calls of ${JSON.stringify(hostile).slice(0, 24)} to itself`, async () => {
        const account = subject.name('account');
        const facts = { userId: hostile, key: hostile, session: hostile, model: hostile, tags: [`t=${hostile}`] };
        await call(account, 'own', facts);
        await call(account, 'other', { session: 'plain' });
        for (const query of [
          { userId: hostile },
          { key: hostile },
          { session: hostile },
          { model: hostile },
          { tag: `t=${hostile}` },
        ]) {
          const found = await readAll({ account, ...query });
          assert.deepEqual(
            found.map(({ id }) => id),
            ['own'],
            JSON.stringify(query).slice(0, 60),
          );
          const [row] = await ledger().report({ edges: [NOW - 1, NOW + 1], by: ['user'], account, ...query });
          assert.deepEqual([row?.requests, row?.cost], [1, 10n]);
          // A value from a report or a record can be used as a filter.
          const reported = await readAll({ account, userId: row?.user ?? '' });
          assert.deepEqual(
            reported.map(({ id }) => id),
            ['own'],
          );
        }
      });

    it('tells long texts shortened, apart from others that begin alike', async () => {
      const account = subject.name('account');
      const [one, two] = [`${'x'.repeat(300)}1`, `${'x'.repeat(300)}2`];
      await call(account, 'one', { userId: one });
      await call(account, 'two', { userId: two });
      const calls = await readAll({ account });
      assert.ok(calls.every(({ userId }) => userId.length <= 256 && userId.startsWith('x'.repeat(100))));
      assert.notEqual(calls[0]?.userId, calls[1]?.userId);
      assert.deepEqual(
        (await readAll({ account, userId: two })).map(({ id }) => id),
        ['two'],
      );
    });
  });

  describe('accounts', () => {
    const listed = async (limit: number) => {
      const all = [];
      for (let after: string | undefined, isFull = true; isFull; ) {
        const page = await ledger().accounts({ limit, ...(after !== undefined && { after }) });
        all.push(...page);
        after = page.at(-1)?.account;
        isFull = page.length > 0;
      }
      return all;
    };

    it('are listed once each, with their names and balances, page by page', async () => {
      const names = [...HOSTILE, 'plain', 'x'.repeat(700), '\u0001user:x'].map((word) => `${word}${subject.name('')}`);
      for (const [n, account] of names.entries())
        if (n % 2) await ledger().credit(account, 'c', n, 'top-up', NOW);
        else await call(account, 'r');
      for (const limit of [1000, 7]) {
        // Pages of seven suit stores with few accounts; a store of many runs has too many.
        if (limit < 1000 && (await listed(1000)).length > 300) continue;
        const rows = (await listed(limit)).filter(({ account }) => names.includes(account));
        assert.deepEqual(rows.map(({ account }) => account).sort(), [...names].sort());
        for (const { account, ...balance } of rows) assert.deepEqual(balance, await ledger().balance(account));
      }
    });
  });
}
