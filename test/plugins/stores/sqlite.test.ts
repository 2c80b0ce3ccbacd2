import { chmodSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { FILE, openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW, outcomeOf, reservation, settlement, sums, testStore } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

describe('sqlite store', () => {
  const folder = useTempFolder('sqlite');
  testStore({
    ...{ name: 'sqlite', keeps: true, shared: true },
    open: () => openSqlite({ folder }),
  });
});

describe('the file of the sqlite store', () => {
  const root = useTempFolder('sqlite-file');
  let count = 0;
  const newFolder = (): string => path.join(root, `store-${count++}`);
  const messageOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'it did not fail',
      (error: Error) => error.message,
    );

  it('is readable only by its owner, with its folder', async () => {
    const folder = path.join(newFolder(), 'deep');
    const store = await openSqlite({ folder });
    await store.counters.next('n');
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
    for (const suffix of ['', '-wal', '-shm']) {
      expect(statSync(path.join(folder, FILE + suffix)).mode & 0o777, suffix).to.equal(0o600);
    }
    await store.close();
  });

  it('does not change the rights of an existing folder', async () => {
    const folder = newFolder();
    mkdirSync(folder);
    chmodSync(folder, 0o750);
    await (await openSqlite({ folder })).close();
    expect(statSync(folder).mode & 0o777).to.equal(0o750);
  });

  it('contains everything after it was closed, in one file', async () => {
    const folder = newFolder();
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'c', 5, 'x', NOW);
    await store.keyv('docs').set('k', 1);
    await store.close();
    expect(statSync(path.join(folder, `${FILE}-wal`), { throwIfNoEntry: false })?.size ?? 0).to.equal(0);
    const again = await openSqlite({ folder });
    expect((await again.ledger.balance('a')).balance).to.equal(5);
    expect(await again.keyv('docs').get('k')).to.equal(1);
    await again.close();
  });

  it('knows every request id again after a restart, however its request ended', async () => {
    const folder = newFolder();
    const ids = ['m5', 'm1', 'm9', 'é', '😀', '\uFFFD', 'z', 'A', ''];
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'first', 1000, 'top-up', NOW);
    for (const [at, requestId] of ids.entries()) {
      expect(
        await outcomeOf(store.ledger.reserve(reservation({ account: 'a', requestId, amount: 1 }))),
        requestId,
      ).to.equal('held');
      if (at % 3 === 0) await store.ledger.settle(settlement({ account: 'a', requestId, amount: 1 }));
      if (at % 3 === 1) await store.ledger.release('a', requestId);
    }
    await store.close();
    const again = await openSqlite({ folder });
    for (const requestId of ids) {
      expect(await outcomeOf(again.ledger.reserve(reservation({ account: 'a', requestId }))), requestId).to.equal(
        'duplicate',
      );
    }
    expect(sums(await again.ledger.balance('a'))).to.deep.equal({ balance: 997, held: 3, spent: 3 });
    await again.close();
  });

  it('is refused for an invalid folder, with the remedy', async () => {
    const file = newFolder();
    writeFileSync(file, '');
    expect(await messageOf(openSqlite({ folder: path.join(file, 'sub') }))).to.match(
      /folder of the sqlite store cannot be written: check/,
    );
  });

  it('is refused when another program wrote it', async () => {
    const folder = newFolder();
    mkdirSync(folder);
    writeFileSync(
      path.join(folder, FILE),
      'this is no database, and long enough to be read as a header of one'.repeat(20),
    );
    expect(await messageOf(openSqlite({ folder }))).to.match(/not a database/);
  });

  it('is reported as missing by the health check after it was moved', async () => {
    const folder = newFolder();
    const store = await openSqlite({ folder });
    await store.health();
    renameSync(path.join(folder, FILE), path.join(folder, 'elsewhere.db'));
    expect(await messageOf(store.health())).to.match(/removed or replaced/);
    await store.close();
  });

  it('waits for the disk at every commit when durability is full', async () => {
    for (const [durability, level] of [
      ['normal', 1],
      ['full', 2],
    ] as const) {
      const database = await openDatabase({ folder: newFolder(), durability });
      expect(database.prepare('PRAGMA synchronous').get()?.['synchronous']).to.equal(level);
      database.close();
    }
  });
});
