import assert from 'node:assert/strict';
import type { CallFacts, ReportDimension, ReportRow } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { DAYS, FACTS, NOW, reservation, type StoreUnderTest, settlement } from './store.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const DIMENSIONS: readonly ReportDimension[] = [
  'account',
  'user',
  'key',
  'tags',
  'provider',
  'model',
  'operation',
  'session',
];

/** Tests every ledger's reports: with any grouping they add up to the spent amount. */
export function testReports(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const ledger = () => subject.store.ledger;
  /** Makes a call that is reserved at `at` and settled `lasts` later. */
  const call = async (
    account: string,
    requestId: string,
    at: number,
    facts: Partial<CallFacts> = {},
    amount = 10,
    lasts = 0,
  ) => {
    const floor = Number.NEGATIVE_INFINITY;
    await ledger().reserve(reservation({ account, requestId, floor, amount, now: at }));
    await ledger().settle(settlement({ account, requestId, now: at + lasts, amount, facts: { ...FACTS, ...facts } }));
  };
  const costs = (rows: readonly ReportRow[]) => rows.map(({ interval, cost }) => [interval, Number(cost)]);

  describe('reports', () => {
    it('add calls up by interval and dimension, in order, and omit what was not used', async () => {
      const account = subject.name('account');
      const speech = { operation: 'speech', units: { characters: 12 } };
      await call(account, 'r1', NOW);
      await call(account, 'r2', NOW + 1, { estimated: true, outcome: 'error' });
      await call(account, 'r3', NOW + 2, { ...speech, priced: false }, 0);
      await call(account, 'r4', NOW + 24 * HOUR_MS, {
        units: { prompt_tokens: 1, completion_tokens: 2, cached_tokens: 3, reasoning_tokens: 4, images: 5 },
        saved: 6,
      });
      const none = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, reasoning_tokens: 0, characters: 0 };
      const zero = { errors: 0, estimated: 0, unpriced: 0, saved: 0n };
      assert.deepEqual(await ledger().report({ edges: DAYS, by: ['operation', 'model'], account }), [
        {
          ...{
            ...zero,
            interval: 1,
            operation: 'chat',
            model: 'echo-1',
            requests: 2,
            errors: 1,
            estimated: 1,
            cost: 20n,
          },
          units: { ...none, prompt_tokens: 6, completion_tokens: 10 },
        },
        {
          ...{ ...zero, interval: 1, operation: 'speech', model: 'echo-1', requests: 1, unpriced: 1, cost: 0n },
          units: { ...none, characters: 12 },
        },
        {
          ...{ ...zero, interval: 2, operation: 'chat', model: 'echo-1', requests: 1, cost: 10n, saved: 6n },
          units: { ...none, prompt_tokens: 1, completion_tokens: 2, cached_tokens: 3, reasoning_tokens: 4 },
        },
      ]);
    });

    it('count a call in the interval that it was reserved in, whenever it ends, also where edges are within an hour (E48)', async () => {
      const account = subject.name('account');
      const minutes = [-90, -61, -31, -30, -1, 0, 14, 29, 30, 59, 60, 89, 90, 150, 180];
      for (const [n, minute] of minutes.entries())
        await call(account, `r${n}`, NOW + minute * MINUTE_MS, {}, 2 ** n, ([0, 17, 400][n % 3] ?? 0) * MINUTE_MS);
      const within = (from: number, to: number) =>
        minutes.reduce((sum, minute, n) => (minute >= from && minute < to ? sum + 2 ** n : sum), 0);
      for (const edges of [
        [-90, 180],
        [-30, 30],
        [-30, 0, 30, 60, 90],
        [-61, -60, -30, -29, 29, 30, 31, 151],
        [0, 15, 30, 45, 60],
        [-60, 60, 120, 180, 240],
        [29, 30],
        [-1000, 1000],
      ]) {
        const rows = await ledger().report({ edges: edges.map((edge) => NOW + edge * MINUTE_MS), by: [], account });
        const expected = edges.slice(1).map((to, interval) => [interval, within(edges[interval] ?? 0, to)]);
        assert.deepEqual(
          costs(rows),
          expected.filter(([, cost]) => cost !== 0),
          edges.join(),
        );
      }
    });

    it('leave a call on the day of its reservation when it is swept on the next, and corrected on the one after', async () => {
      const account = subject.name('account');
      const late = { account, requestId: 'late', floor: Number.NEGATIVE_INFINITY, expiresAt: NOW + 1000 };
      const dayOf = async (by: readonly ReportDimension[]) =>
        costs(await ledger().report({ edges: DAYS, by, account }));
      await ledger().reserve(reservation({ ...late, amount: 30 }));
      for (const by of [['user'], ['session']] as const) assert.deepEqual(await dayOf(by), []);
      await ledger().sweep(NOW + 20 * HOUR_MS);
      for (const by of [['user'], ['session']] as const) assert.deepEqual(await dayOf(by), [[1, 30]]);
      await ledger().settle(settlement({ ...late, amount: 4, now: NOW + 44 * HOUR_MS }));
      for (const by of [['user'], ['session']] as const) assert.deepEqual(await dayOf(by), [[1, 4]]);
    });

    it('sum to what was spent, whatever they are grouped by', async () => {
      const account = subject.name('account');
      for (let n = 0; n < 24; n++)
        await call(
          account,
          `r${n}`,
          NOW + n * 17 * MINUTE_MS,
          {
            userId: `u${n % 3}`,
            key: `k${n % 2}`,
            tags: n % 4 ? [`team=${n % 4}`, 'project=x'] : [],
            model: `m${n % 5}`,
            ...(n % 3 && { session: `s${n % 7}` }),
          },
          n,
        );
      const { spent } = await ledger().balance(account);
      const edges = [NOW - HOUR_MS, NOW + 30 * MINUTE_MS, NOW + 3 * HOUR_MS, NOW + 20 * HOUR_MS];
      for (const by of [[], ...DIMENSIONS.map((dimension) => [dimension]), DIMENSIONS]) {
        const rows = await ledger().report({ edges, by, account });
        assert.equal(
          rows.reduce((sum, { cost }) => sum + cost, 0n),
          BigInt(spent),
          by.join(),
        );
        assert.equal(
          rows.reduce((sum, { requests }) => sum + requests, 0),
          24,
        );
        assert.ok(rows.every((row) => by.every((dimension) => typeof row[dimension] === 'string')));
      }
      const byTags = await ledger().report({ edges: [NOW, NOW + 24 * HOUR_MS], by: ['tags'], account });
      assert.deepEqual(
        byTags.map(({ tags }) => tags),
        ['["project=x","team=1"]', '["project=x","team=2"]', '["project=x","team=3"]', '[]'],
      );
      const bySession = await ledger().report({ edges: [NOW, NOW + 24 * HOUR_MS], by: ['session'], account });
      assert.deepEqual(bySession[0]?.session, '-');
    });

    it('take the calls that a filter means, and no others', async () => {
      const account = subject.name('account');
      await call(account, 'a', NOW, { userId: 'ann', tags: ['team=a'], session: 's', provider: 'p' }, 1);
      await call(account, 'b', NOW, { userId: 'bob', tags: ['team=a', 'project=x'], outcome: 'aborted' }, 2);
      await call(account, 'c', NOW, { userId: 'bob', key: 'k', model: 'm', operation: 'speech' }, 4);
      const edges = [NOW - 90 * MINUTE_MS, NOW + 90 * MINUTE_MS];
      for (const [filter, cost] of [
        [{}, 7],
        [{ userId: 'bob' }, 6],
        [{ tag: 'team=a' }, 3],
        [{ tag: 'team=a', userId: 'bob' }, 2],
        [{ session: 's' }, 1],
        [{ outcome: 'aborted' }, 2],
        [{ key: 'k', model: 'm', operation: 'speech' }, 4],
        [{ provider: 'p' }, 1],
      ] as const) {
        const rows = await ledger().report({ edges, by: [], account, ...filter });
        assert.deepEqual(costs(rows), [[0, cost]], JSON.stringify(filter));
      }
      assert.deepEqual(await ledger().report({ edges, by: ['user'], account, provider: 'missing' }), []);
    });

    it('are exact where all accounts come to more than a number counts', async () => {
      const userId = subject.name('user');
      const most = 8_999_999_999_999_999;
      for (const each of ['a', 'b', 'c'])
        await call(subject.name(each), each, NOW, { userId, outcome: 'aborted', saved: most }, most);
      const all = 3n * BigInt(most);
      // From hourly sums, and from records.
      for (const filter of [{}, { outcome: 'aborted' } as const]) {
        const rows = await ledger().report({ edges: [NOW - HOUR_MS, NOW + HOUR_MS], by: [], userId, ...filter });
        assert.deepEqual(
          rows.map(({ cost, saved }) => [cost, saved]),
          [[all, all]],
        );
      }
    });

    it('count fifty parallel calls of one group fifty times', async () => {
      const account = subject.name('account');
      await Promise.all(Array.from({ length: 50 }, (_, n) => call(account, `r${n}`, NOW, {}, 3)));
      const [row] = await ledger().report({ edges: DAYS, by: ['user'], account });
      assert.deepEqual([row?.requests, row?.cost, row?.units.prompt_tokens], [50, 150n, 150]);
    });

    it('keep their sums when records are forgotten, by whole hours', async () => {
      const account = subject.name('account');
      // Long ago, so that records of other tests are not deleted.
      const then = Date.UTC(2001, 0, 1, 12);
      const at = (minutes: number) => then + minutes * MINUTE_MS;
      for (const [n, minutes] of [10, 40, 70, 100, 130].entries())
        await call(account, `r${n}`, at(minutes), {}, 2 ** n);
      // Edges at half past: the hours they divide are read from records.
      const edges = [at(-30), at(30), at(90), at(150)];
      assert.deepEqual(costs(await ledger().report({ edges, by: [], account })), [
        [0, 1],
        [1, 6],
        [2, 24],
      ]);
      const forgotten = await ledger().forgetCalls(at(119));
      assert.ok(forgotten >= 2, `${forgotten}`);
      assert.equal(await ledger().forgetCalls(at(119)), 0);
      const { calls } = await ledger().calls({ account, limit: 10 });
      assert.deepEqual(
        calls.map(({ id }) => id),
        ['r4', 'r3', 'r2'],
      );
      // Only the total of the first hour remains; it counts in the interval in which the hour began.
      assert.deepEqual(costs(await ledger().report({ edges, by: [], account })), [
        [0, 3],
        [1, 4],
        [2, 24],
      ]);
      const { spent } = await ledger().balance(account);
      const [all] = await ledger().report({ edges: [0, NOW], by: ['user'], account });
      assert.deepEqual([all?.requests, all?.cost], [5, BigInt(spent)]);
      // A call of those hours that is settled late is counted once.
      await call(account, 'late', at(20), {}, 32);
      const rows = await ledger().report({ edges, by: [], account });
      assert.equal(
        rows.reduce((sum, { cost }) => sum + cost, 0n),
        63n,
      );
    });

    it('refuse edges that do not rise, too many of them, and dimensions that there are not', async () => {
      const failure = { code: 'internal_error' };
      for (const edges of [[], [NOW], [NOW, NOW], [NOW, NOW - 1], [NOW, NOW + 0.5], [NOW, Number.NaN]])
        await assert.rejects(ledger().report({ edges, by: [] }), failure, edges.join());
      const edges = Array.from({ length: 1002 }, (_, n) => NOW + n);
      await assert.rejects(ledger().report({ edges, by: [] }), { code: 'invalid_request' });
      assert.deepEqual(await ledger().report({ edges: edges.slice(1), by: [], account: subject.name('unused') }), []);
      await assert.rejects(ledger().report({ edges: DAYS, by: ['user', 'user'] }), failure);
      await assert.rejects(ledger().report({ edges: DAYS, by: ['day' as ReportDimension] }), failure);
    });

    it('answer at once for all of time', async () => {
      const account = subject.name('account');
      await call(account, 'r', NOW);
      const [row] = await ledger().report({ edges: [0, Number.MAX_SAFE_INTEGER], by: ['account'], account });
      assert.deepEqual([row?.account, row?.cost], [account, 10n]);
    });
  });
}
