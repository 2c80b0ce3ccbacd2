import assert from 'node:assert/strict';
import { findRunner } from './runner.ts';
import type { StoreUnderTest } from './store.ts';

/** Tests the sets of every store. */
export function testSets(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const sets = () => subject.store.sets;

  describe('sets', () => {
    it('adds, finds, counts and removes a member', async () => {
      const set = subject.name('set');
      assert.equal(await sets().has(set, 'a'), false);
      assert.equal(await sets().add(set, 'a'), 'added');
      assert.equal(await sets().add(set, 'a'), 'present');
      assert.equal(await sets().has(set, 'a'), true);
      assert.equal(await sets().size(set), 1);
      assert.equal(await sets().remove(set, 'a'), true);
      assert.equal(await sets().remove(set, 'a'), false);
      assert.equal(await sets().size(set), 0);
    });

    it('takes no more members than its maximum, and still knows those it has', async () => {
      const set = subject.name('set');
      assert.equal(await sets().add(set, 'a', 2), 'added');
      assert.equal(await sets().add(set, 'b', 2), 'added');
      assert.equal(await sets().add(set, 'c', 2), 'full');
      assert.equal(await sets().add(set, 'a', 2), 'present');
      assert.equal(await sets().add(set, 'a', 0), 'present');
      await sets().remove(set, 'a');
      assert.equal(await sets().add(set, 'c', 2), 'added');
    });

    it('lists members in ascending order of their bytes, page by page', async () => {
      const set = subject.name('set');
      const members = ['b', 'a', 'B', 'z9', 'z10', 'é', '\u{1f600}', '\uff5e', '_', 'a b'];
      for (const member of members) await sets().add(set, member);
      const sorted = [...members].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(await sets().list(set, { limit: 100 }), sorted);
      assert.deepEqual(await sets().list(set, { limit: 3 }), sorted.slice(0, 3));
      assert.deepEqual(await sets().list(set, { limit: 3, after: sorted[2] ?? '' }), sorted.slice(3, 6));
      assert.deepEqual(
        await sets().list(set, { limit: 3, after: 'zz' }),
        sorted.filter((m) => Buffer.compare(Buffer.from(m), Buffer.from('zz')) > 0).slice(0, 3),
      );
      assert.deepEqual(await sets().list(subject.name('empty'), { limit: 3 }), []);
    });

    it('lets exactly five of fifty parallel additions into a set of five', async () => {
      const set = subject.name('set');
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, n) => sets().add(set, `m${n}`, 5)));
      assert.equal(outcomes.filter((outcome) => outcome === 'added').length, 5);
      assert.equal(outcomes.filter((outcome) => outcome === 'full').length, 45);
      assert.equal(await sets().size(set), 5);
    });

    it('keeps all of fifty parallel additions', async () => {
      const set = subject.name('set');
      await Promise.all(Array.from({ length: 50 }, (_, n) => sets().add(set, `m${n}`)));
      assert.equal(await sets().size(set), 50);
    });

    for (const hostile of [
      '{a}:b',
      'x:y',
      '%',
      '*',
      "'; DROP TABLE members; --",
      'x'.repeat(3000),
      '(a',
      '[b',
      '-',
      '+',
    ]) {
      it(`keeps the set ${JSON.stringify(hostile).slice(0, 30)} and a member of that name apart from others`, async () => {
        const set = `${hostile}${subject.name('')}`;
        const member = hostile.slice(0, 100);
        assert.equal(await sets().add(set, member), 'added');
        assert.equal(await sets().has(set, member), true);
        assert.equal(await sets().has(set, `${member}x`), false);
        assert.deepEqual(await sets().list(set, { limit: 10 }), [member]);
        assert.deepEqual(await sets().list(set, { limit: 10, after: member }), []);
        assert.equal(await sets().size(`${set}x`), 0);
      });
    }

    for (const member of ['', 'a\0b', '\ud800', 'x'.repeat(513)]) {
      it(`refuses the member ${JSON.stringify(member).slice(0, 12)}`, async () => {
        await assert.rejects(sets().add(subject.name('set'), member), { code: 'invalid_request' });
      });
    }
  });
}
