import assert from 'node:assert/strict';
import type { Window } from '../../contract/index.ts';
import { findRunner } from './runner.ts';
import { NOW, type StoreUnderTest } from './store.ts';

const MINUTE = 60_000;

/** Tests the counters of every store. */
export function testCounters(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const counters = () => subject.store.counters;
  const window = (key: string, fields: Partial<Window> = {}): Window => ({
    key,
    limit: 3,
    windowMs: MINUTE,
    amount: 1,
    ...fields,
  });

  describe('windows', () => {
    it('count from the first call and are empty again when their time is over', async () => {
      const w = window(subject.name('w'));
      const at = async (offset: number) => (await counters().take([w], NOW + offset)).states[0];
      assert.deepEqual(await at(0), { remaining: 2, resetMs: MINUTE });
      assert.deepEqual(await at(10_000), { remaining: 1, resetMs: 50_000 });
      assert.deepEqual(await at(20_000), { remaining: 0, resetMs: 40_000 });
      const refused = await counters().take([w], NOW + 30_000);
      assert.deepEqual(refused, { refused: 0, states: [{ remaining: 0, resetMs: 30_000 }] });
      assert.deepEqual(await at(MINUTE), { remaining: 2, resetMs: MINUTE });
    });

    it('are taken from all or from none', async () => {
      const [wide, narrow] = [
        window(subject.name('wide'), { limit: 10 }),
        window(subject.name('narrow'), { limit: 1 }),
      ];
      assert.equal((await counters().take([wide, narrow], NOW)).refused, undefined);
      const second = await counters().take([wide, narrow], NOW);
      assert.equal(second.refused, 1);
      assert.deepEqual(
        second.states.map((state) => state.remaining),
        [9, 0],
      );
      assert.equal((await counters().take([wide], NOW)).states[0]?.remaining, 8);
    });

    it('refuse an amount that is over the limit by itself, and take one of nothing', async () => {
      const w = window(subject.name('w'));
      assert.equal((await counters().take([{ ...w, amount: 4 }], NOW)).refused, 0);
      assert.deepEqual((await counters().take([{ ...w, amount: 0 }], NOW)).states[0]?.remaining, 3);
      assert.deepEqual((await counters().take([{ ...w, amount: 3 }], NOW)).states[0]?.remaining, 0);
      assert.equal((await counters().take([{ ...w, amount: 0 }], NOW)).refused, undefined);
    });

    it('refuse everything when the limit is zero', async () => {
      assert.equal((await counters().take([window(subject.name('w'), { limit: 0 })], NOW)).refused, 0);
    });

    it('answer a call without windows', async () => {
      assert.deepEqual(await counters().take([], NOW), { refused: undefined, states: [] });
    });

    it('are corrected by what a call truly took, never below nothing', async () => {
      const w = window(subject.name('w'), { limit: 100, amount: 50 });
      const remaining = async () => (await counters().take([{ ...w, amount: 0 }], NOW)).states[0]?.remaining;
      await counters().take([w], NOW);
      await counters().adjust(w.key, MINUTE, 30, NOW);
      assert.equal(await remaining(), 20);
      await counters().adjust(w.key, MINUTE, -60, NOW);
      assert.equal(await remaining(), 80);
      await counters().adjust(w.key, MINUTE, -60, NOW);
      assert.equal(await remaining(), 100);
      await counters().adjust(w.key, MINUTE, 130, NOW);
      assert.equal(await remaining(), 0);
      assert.equal((await counters().take([{ ...w, amount: 1 }], NOW)).refused, 0);
    });

    it('are not corrected after their time is over', async () => {
      const w = window(subject.name('w'));
      await counters().take([w], NOW);
      await counters().adjust(w.key, MINUTE, 3, NOW + MINUTE);
      assert.equal((await counters().take([w], NOW + MINUTE)).states[0]?.remaining, 2);
    });

    it('admit exactly ten of fifty parallel calls at a limit of ten', async () => {
      const w = window(subject.name('w'), { limit: 10 });
      const other = window(subject.name('other'), { limit: 1000 });
      const taken = await Promise.all(Array.from({ length: 50 }, () => counters().take([other, w], NOW)));
      assert.equal(taken.filter(({ refused }) => refused === undefined).length, 10);
      assert.equal((await counters().take([{ ...other, amount: 0 }], NOW)).states[0]?.remaining, 990);
    });
  });

  describe('leases', () => {
    it('are given up to the limit and again after a release', async () => {
      const key = subject.name('lease');
      const lease = (id: string) => counters().lease(key, id, 2, 1000, NOW);
      assert.equal(await lease('a'), true);
      assert.equal(await lease('b'), true);
      assert.equal(await lease('c'), false);
      assert.equal(await lease('a'), true);
      await counters().release(key, 'a');
      await counters().release(key, 'a');
      assert.equal(await lease('c'), true);
      assert.equal(await lease('a'), false);
    });

    it('end by themselves, unless they are renewed', async () => {
      const key = subject.name('lease');
      const lease = (id: string, now: number) => counters().lease(key, id, 2, 1000, now);
      await lease('a', NOW);
      await lease('b', NOW);
      assert.equal(await lease('a', NOW + 600), true);
      assert.equal(await lease('c', NOW + 999), false);
      assert.equal(await lease('c', NOW + 1000), true);
      assert.equal(await lease('b', NOW + 1000), false);
    });

    it('are given to exactly ten of fifty parallel callers at a limit of ten', async () => {
      const key = subject.name('lease');
      const given = await Promise.all(
        Array.from({ length: 50 }, (_, n) => counters().lease(key, `c${n}`, 10, 1000, NOW)),
      );
      assert.equal(given.filter(Boolean).length, 10);
    });
  });

  describe('numbers', () => {
    it('grow by one or by what was said, and are read with 0', async () => {
      const key = subject.name('n');
      assert.equal(await counters().next(key, 0), 0);
      assert.equal(await counters().next(key), 1);
      assert.equal(await counters().next(key, 5), 6);
      assert.equal(await counters().next(key, 0), 6);
    });

    it('give fifty parallel callers fifty different values', async () => {
      const key = subject.name('n');
      const values = await Promise.all(Array.from({ length: 50 }, () => counters().next(key)));
      assert.deepEqual(
        values.sort((a, b) => a - b),
        Array.from({ length: 50 }, (_, n) => n + 1),
      );
    });
  });

  for (const hostile of ['{a}:b', '}{', "' --", 'x'.repeat(3000), 'a\nb', '%_']) {
    it(`keeps windows, leases and numbers named ${JSON.stringify(hostile).slice(0, 20)} apart from others`, async () => {
      const key = `${hostile}${subject.name('')}`;
      assert.equal((await counters().take([window(key, { limit: 1 })], NOW)).refused, undefined);
      assert.equal((await counters().take([window(`${key}x`, { limit: 1 })], NOW)).refused, undefined);
      assert.equal((await counters().take([window(key, { limit: 1 })], NOW)).refused, 0);
      assert.equal(await counters().lease(key, hostile, 1, 1000, NOW), true);
      assert.equal(await counters().lease(key, `${hostile}x`, 1, 1000, NOW), false);
      assert.equal(await counters().next(key), 1);
    });
  }
}
