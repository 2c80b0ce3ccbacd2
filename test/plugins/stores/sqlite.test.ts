import { fork } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Database, FILE, openDatabase } from '../../../plugins/stores/sqlite/database.ts';
import { createDocumentAdapters } from '../../../plugins/stores/sqlite/documents.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { createSqliteLedger } from '../../../plugins/stores/sqlite/ledger.ts';
import { createPurge } from '../../../plugins/stores/sqlite/purge.ts';
import { createWriter, type Writer } from '../../../plugins/stores/sqlite/writer.ts';
import { NOW, rejectsUnavailable, reservation, testStore } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/temp-folder.ts';
import { startWorker } from '../../support/worker-process.ts';

describe('sqlite store', () => {
  const folder = useTempFolder('sqlite');
  testStore('sqlite', () => openSqlite({ folder: path.join(folder, 'plain') }));
  testStore('sqlite with full durability', () => openSqlite({ folder: path.join(folder, 'full'), durability: 'full' }));
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

  it('is readable by its owner alone, with its folder', async () => {
    const folder = path.join(newFolder(), 'deep');
    const store = await openSqlite({ folder });
    await store.counters.next('n');
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
    for (const suffix of ['', '-wal', '-shm']) {
      expect(statSync(path.join(folder, FILE + suffix)).mode & 0o777, suffix).to.equal(0o600);
    }
    await store.close();
  });

  it('leaves the rights of a folder that was there as they are', async () => {
    const folder = newFolder();
    mkdirSync(folder);
    chmodSync(folder, 0o750);
    await (await openSqlite({ folder })).close();
    expect(statSync(folder).mode & 0o777).to.equal(0o750);
  });

  it('holds everything again after it was closed, in the file alone', async () => {
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

  it('is refused when its folder cannot be one, with what to do', async () => {
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

  it('is refused when a newer version wrote it', async () => {
    const folder = newFolder();
    const database = await openDatabase({ folder });
    database.exec('PRAGMA user_version=99');
    database.close();
    expect(await messageOf(openSqlite({ folder }))).to.match(/written by a newer version/);
  });

  it('is made once when four processes start at the same time', async function () {
    this.timeout(60_000);
    const address = { kind: 'sqlite', folder: newFolder() } as const;
    const race = { race: 'leases of ten places', name: 'starters', count: 5 } as const;
    const workers = await Promise.all([0, 1, 2, 3].map(() => startWorker('store-worker.ts', address)));
    const got = await Promise.all(workers.map((worker, n) => worker.ask<{ got: number }>({ ...race, by: `w${n}` })));
    expect(got.reduce((sum, answer) => sum + answer.got, 0)).to.equal(10);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  it('is missed by the health check when somebody moves it away', async () => {
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

  it('loses nothing that was acknowledged when its process is killed, ten times', async function () {
    this.timeout(60_000);
    const folder = newFolder();
    const acknowledged = new Set<string>();
    for (let round = 0; round < 10; round++) {
      const script = fileURLToPath(new URL('../../support/sqlite-writer.ts', import.meta.url));
      const child = fork(script, [JSON.stringify({ folder, by: `r${round}` })], { execArgv: ['--import', 'tsx'] });
      const gone = new Promise((resolve) => child.once('exit', resolve));
      const enough = acknowledged.size + 20 + Math.floor(Math.random() * 200);
      child.on('message', ({ id }: { id?: string }) => {
        if (id !== undefined) acknowledged.add(id);
        if (acknowledged.size >= enough) child.kill('SIGKILL');
      });
      await gone;
    }
    const store = await openSqlite({ folder });
    for (const id of acknowledged) expect(await store.ledger.credit('account', id, 1, 'test', NOW), id).to.equal(false);
    const { balance } = await store.ledger.balance('account');
    expect(balance).to.be.at.least(acknowledged.size);
    await store.close();
    const database = await openDatabase({ folder });
    expect(database.prepare('PRAGMA integrity_check').get()?.['integrity_check']).to.equal('ok');
    expect(database.prepare('SELECT sum(amount) AS sum FROM entries').get()?.['sum']).to.equal(balance);
    database.close();
  });
});

describe('the writer of the sqlite store', () => {
  const folder = useTempFolder('sqlite-writer');
  let database: Database;
  let other: Database;
  let writer: Writer;
  beforeEach(async () => {
    database = await openDatabase({ folder });
    other = await openDatabase({ folder });
    writer = createWriter(database);
  });
  afterEach(async () => {
    await writer.close();
    database.close();
    other.close();
  });
  const insert = (key: string) => database.prepare('INSERT INTO numbers (key, value) VALUES (?, 1)').run(key);
  const isKnown = (key: string) => other.prepare('SELECT 1 FROM numbers WHERE key = ?').get(key) !== undefined;

  it('resolves when others can see the change', async () => {
    const write = writer.write(() => insert('visible'));
    expect(isKnown('visible')).to.equal(false);
    await write;
    expect(isKnown('visible')).to.equal(true);
  });

  it('fails only the change that fails, and leaves nothing of it', async () => {
    const outcomes = await Promise.allSettled([
      writer.write(() => insert('before')),
      writer.write(() => {
        insert('half');
        throw new RangeError('a fault of the program');
      }),
      writer.write(() => insert('after')),
      writer.write(() => insert('before')),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    expect((outcomes[1] as PromiseRejectedResult).reason).to.be.instanceOf(RangeError);
    expect((outcomes[3] as PromiseRejectedResult).reason.code).to.equal('store_unavailable');
    expect(['before', 'half', 'after'].map(isKnown)).to.deep.equal([true, false, true]);
  });

  it('refuses within its bound while another process holds the lock, and goes on afterwards', async () => {
    other.exec('BEGIN IMMEDIATE');
    const waiting = Array.from({ length: 20 }, (_, n) => writer.write(() => insert(`busy-${n}`)));
    await Promise.all(waiting.map(rejectsUnavailable));
    const next = writer.write(() => insert('patient'));
    other.exec('COMMIT');
    await next;
    expect([isKnown('busy-0'), isKnown('patient')]).to.deep.equal([false, true]);
  });

  it('commits what is queued before it closes', async () => {
    const write = writer.write(() => insert('last'));
    await writer.close();
    await write;
    expect(isKnown('last')).to.equal(true);
    await rejectsUnavailable(writer.write(() => insert('too late')));
  });

  it('refuses changes on a full disk, keeps what was there, and goes on when there is room again', async () => {
    const ledger = createSqliteLedger(database, writer);
    await ledger.credit('rich', 'first', 1000, 'x', NOW);
    const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
    database.exec(`PRAGMA max_page_count=${pages}`);
    const facts = {
      operation: 'chat',
      provider: 'p',
      model: 'm'.repeat(3000),
      key: '-',
      outcome: 'ok',
      estimated: false,
    };
    const fill = Array.from({ length: 50 }, (_, n) =>
      ledger.reserve(reservation({ account: 'rich', requestId: `r${n}`, amount: 1, facts })),
    );
    const outcomes = await Promise.allSettled(fill);
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(failed.length).to.be.greaterThan(0);
    for (const { reason } of failed) expect(reason.message).to.match(/the disk is full/);
    expect((await ledger.balance('rich')).held).to.equal(50 - failed.length);
    database.exec('PRAGMA max_page_count=1073741823');
    expect(await ledger.reserve(reservation({ account: 'rich', requestId: 'room', amount: 1 }))).to.equal('held');
    expect(database.prepare('PRAGMA integrity_check').get()?.['integrity_check']).to.equal('ok');
  });

  it('refuses changes of a file that may only be read', async () => {
    database.exec('PRAGMA query_only=ON');
    const error = await writer.write(() => insert('forbidden')).catch((reason) => reason);
    expect(error.message).to.match(/read-only: check the rights/);
    expect(await createSqliteLedger(database, writer).balance('a')).to.include({ balance: 0 });
  });

  it('refuses a document that cannot be read, and goes on with the others', async () => {
    const store = await openSqlite({ folder });
    for (const [key, value] of Object.entries({ cut: '{"value":', empty: '', list: '[1]', bare: '7', none: '{}' })) {
      await store.keyv('docs').set(key, 1);
      other.prepare('UPDATE documents SET value = ? WHERE namespace = ? AND key = ?').run(value, 'docs', key);
      await rejectsUnavailable(store.keyv('docs').get(key));
    }
    await store.keyv('docs').set('good', 1);
    expect(await store.keyv('docs').get('good')).to.equal(1);
    await store.close();
  });

  it('purges what expired and nothing else, however much there is', async () => {
    const adapter = createDocumentAdapters(database, writer)('purge');
    await Promise.all(Array.from({ length: 1200 }, (_, n) => adapter.set(`old-${n}`, '{"value":1}', -1)));
    await adapter.set('young', '{"value":1}', 60_000);
    await adapter.set('for ever', '{"value":1}');
    const now = Date.now();
    for (const [key, resetsAt] of [
      ['old', now - 1],
      ['young', now + 1000],
    ] as const) {
      database.prepare('INSERT INTO windows VALUES (?, 1, ?)').run(key, resetsAt);
      database.prepare('INSERT INTO leases VALUES (?, ?, ?)').run(key, 'id', resetsAt);
    }
    const purge = createPurge(database);
    for (let round = 0; round < 4; round++) await writer.write(() => purge(now));
    const keys = (table: string, column: string) =>
      database
        .prepare(`SELECT ${column} AS name FROM ${table} ORDER BY 1`)
        .all()
        .map((row) => row['name']);
    expect(keys("documents WHERE namespace = 'purge'", 'key')).to.deep.equal(['for ever', 'young']);
    expect(keys('windows', 'key')).to.deep.equal(['young']);
    expect(keys('leases', 'key')).to.deep.equal(['young']);
  });
});
