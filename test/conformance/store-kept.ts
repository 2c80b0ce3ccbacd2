import assert from 'node:assert/strict';
import { findRunner } from './runner.ts';
import type { StoreUnderTest } from './store.ts';

const HOUR_MS = 3_600_000;
/**
 * Maximum number of one-megabyte documents written until the first one is evicted. No store holds more for one account.
 */
const MOST = 64;
const LARGE = 'x'.repeat(1024 * 1024);

/** Tests the documents that every store holds for accounts. */
export function testStored(subject: StoreUnderTest): void {
  const { describe, it } = findRunner();
  const stored = () => subject.store.stored('conformance');

  /** Writes large documents, numbered from `from` on, until the store drops one. Returns how many it wrote. */
  async function writeUntilDropped(account: string, key: string, from = 0, lasting?: 'lasting'): Promise<number> {
    const before = stored().known.dropped;
    let at = from;
    do {
      await stored().set(account, `${key}-${at}`, LARGE, HOUR_MS, lasting);
      at += 1;
    } while (at < MOST && stored().known.dropped === before);
    return at - from;
  }

  describe('what it keeps for accounts', () => {
    it('is written, read, replaced and deleted, and counted by its bytes', async () => {
      const [account, key] = [subject.name('account'), subject.name('key')];
      assert.equal(await stored().get(key), undefined);
      assert.equal(await stored().bytes(account), 0);
      assert.equal(await stored().set(account, key, { text: 'one' }, HOUR_MS), true);
      const bytes = await stored().bytes(account);
      assert.ok(bytes >= 14);
      assert.equal(await stored().set(account, key, { text: 'two' }, HOUR_MS), true);
      assert.deepEqual(await stored().get(key), { text: 'two' });
      assert.equal(await stored().bytes(account), bytes);
      assert.equal(await stored().delete(account, key), true);
      assert.equal(await stored().delete(account, key), false);
      assert.equal(await stored().get(key), undefined);
      assert.equal(await stored().bytes(account), 0);
    });

    it('is gone, and counted no longer, when its time is over', async () => {
      const [account, key] = [subject.name('account'), subject.name('key')];
      await stored().set(account, key, 'soon gone', 20);
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.equal(await stored().get(key), undefined);
      assert.equal(await stored().bytes(account), 0);
    });

    it('is bounded for each account: what was written least recently goes first, and others keep theirs (E29)', async () => {
      const [account, other, key] = [subject.name('account'), subject.name('other'), subject.name('key')];
      await stored().set(other, `${key}-other`, 'stays', HOUR_MS);
      const written = await writeUntilDropped(account, key);
      assert.equal(await stored().get(`${key}-0`), undefined);
      assert.equal(await stored().get(`${key}-${written - 1}`), LARGE);
      assert.ok((await stored().bytes(account)) < written * LARGE.length);
      assert.equal(await stored().get(`${key}-other`), 'stays');
      assert.ok(stored().known.dropped > 0);
    });

    it('is found while it is replaced', async () => {
      const [account, key] = [subject.name('account'), subject.name('key')];
      await stored().set(account, key, 0, HOUR_MS);
      let isOver = false;
      const looking = (async () => {
        while (!isOver) {
          assert.notEqual(await stored().get(key), undefined);
          // Yields to other tasks, also for a synchronous store.
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      for (let at = 1; at <= 20; at += 1) await stored().set(account, key, at, HOUR_MS);
      isOver = true;
      await looking;
      assert.equal(await stored().get(key), 20);
      assert.equal(await stored().count(account), 1);
    });

    it('goes last where it is lasting, such as a session, and is counted with the rest', async () => {
      const [account, key] = [subject.name('account'), subject.name('key')];
      assert.equal(await stored().set(account, `${key}-session`, LARGE, HOUR_MS, 'lasting'), true);
      const bytes = await stored().bytes(account);
      assert.ok(bytes >= LARGE.length);
      await writeUntilDropped(account, key);
      assert.equal(await stored().get(`${key}-0`), undefined);
      assert.equal(await stored().get(`${key}-session`), LARGE);
      assert.ok((await stored().bytes(account)) > bytes);
      // Lasting documents are limited too.
      let more = 0;
      do {
        more += await writeUntilDropped(account, `${key}-more`, more, 'lasting');
      } while (more < MOST && (await stored().get(`${key}-more-0`)) !== undefined);
      assert.equal(await stored().get(`${key}-more-0`), undefined);
      assert.ok((await stored().bytes(account)) < more * LARGE.length);
    });

    it('takes no document that is larger than one may be', async () => {
      const [account, key] = [subject.name('account'), subject.name('key')];
      assert.equal(await stored().set(account, key, LARGE.repeat(MOST / 4), HOUR_MS), false);
      assert.equal(await stored().get(key), undefined);
      assert.equal(await stored().bytes(account), 0);
    });
  });
}
