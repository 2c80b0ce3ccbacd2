import assert from 'node:assert/strict';
import { findRunner } from './runner.ts';
import type { StoreUnderTest } from './store.ts';

/** Tests the documents of every store, in addition to Keyv's own test suite for adapters. */
export function testDocuments(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const keyv = (namespace: string) => subject.store.keyv(namespace);

  describe('documents', () => {
    it('answers the same object for the same namespace', () => {
      assert.equal(keyv('conformance'), keyv('conformance'));
    });

    it('keeps, replaces and deletes a document', async () => {
      const key = subject.name('doc');
      assert.equal(await keyv('conformance').get(key), undefined);
      assert.equal(await keyv('conformance').has(key), false);
      assert.equal(await keyv('conformance').set(key, { name: 'ü', list: [1, null, ':x'], none: null }), true);
      assert.deepEqual(await keyv('conformance').get(key), { name: 'ü', list: [1, null, ':x'], none: null });
      await keyv('conformance').set(key, 'other');
      assert.equal(await keyv('conformance').get(key), 'other');
      assert.equal(await keyv('conformance').has(key), true);
      assert.equal(await keyv('conformance').delete(key), true);
      assert.equal(await keyv('conformance').delete(key), false);
      assert.equal(await keyv('conformance').get(key), undefined);
    });

    it('gives every reader an object of its own', async () => {
      const key = subject.name('doc');
      const document = { list: [1] };
      await keyv('conformance').set(key, document);
      document.list.push(2);
      ((await keyv('conformance').get(key)) as typeof document).list.push(3);
      assert.deepEqual(await keyv('conformance').get(key), { list: [1] });
    });

    it('reads, finds and deletes many at once', async () => {
      const keys = [subject.name('a'), subject.name('b'), subject.name('c')] as const;
      await keyv('conformance').set(keys[0], 1);
      await keyv('conformance').set(keys[2], 3);
      assert.deepEqual(await keyv('conformance').getMany([...keys]), [1, undefined, 3]);
      assert.deepEqual(await keyv('conformance').hasMany([...keys]), [true, false, true]);
      await keyv('conformance').deleteMany([...keys]);
      assert.deepEqual(await keyv('conformance').getMany([...keys]), [undefined, undefined, undefined]);
    });

    it('forgets a document whose time is over', async () => {
      const key = subject.name('doc');
      await keyv('conformance').set(key, 'short', 40);
      const deadline = Date.now() + 60_000;
      while ((await keyv('conformance').get(key)) !== undefined && Date.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      assert.equal(await keyv('conformance').get(key), undefined);
      assert.equal(await keyv('conformance').has(key), false);
    });

    it('keeps namespaces apart, also where one name begins like another', async () => {
      const key = subject.name('doc');
      for (const namespace of ['ns', 'ns-a', 'nsxa']) await keyv(namespace).set(key, namespace);
      await keyv('ns').set('ns-a:x', 1);
      await keyv('ns-a').set('x', 2);
      assert.equal(await keyv('ns').get(key), 'ns');
      assert.equal(await keyv('ns').get('ns-a:x'), 1);
      await keyv('ns').delete(key);
      assert.equal(await keyv('ns-a').get(key), 'ns-a');
      assert.equal(await keyv('nsxa').get(key), 'nsxa');
    });

    it('keeps keys apart that differ only in their namespace prefix', async () => {
      const key = subject.name('doc');
      await keyv('ns').set(key, 'plain');
      await keyv('ns').set(`ns:${key}`, 'prefixed');
      assert.equal(await keyv('ns').get(key), 'plain');
      assert.equal(await keyv('ns').get(`ns:${key}`), 'prefixed');
    });

    for (const hostile of ["' OR 1=1", '%_*', '{a}', 'x'.repeat(3000), 'ä\u{1f600}', '__proto__', 'a\0b', 'a\nb']) {
      it(`keeps a document under the key ${JSON.stringify(hostile).slice(0, 20)}`, async () => {
        const key = `${hostile}${subject.name('')}`;
        await keyv('conformance').set(key, { v: 1 });
        assert.deepEqual(await keyv('conformance').get(key), { v: 1 });
        assert.equal(await keyv('conformance').get(`${key}x`), undefined);
        assert.equal(await keyv('conformance').delete(key), true);
      });
    }

    for (const name of ['', 'a:b', 'A', '.a', 'a b', '../a', 'x'.repeat(161)]) {
      it(`refuses the namespace ${JSON.stringify(name).slice(0, 12)}`, () => {
        assert.throws(() => keyv(name), { code: 'internal_error' });
      });
    }

    it('refuses a document without a value', async () => {
      await assert.rejects(keyv('conformance').set(subject.name('doc'), undefined));
    });
  });
}
