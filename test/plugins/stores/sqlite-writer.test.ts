import { expect } from 'chai';
import { createDocumentAdapters } from '../../../plugins/stores/sqlite/documents.ts';
import type { Database } from '../../../plugins/stores/sqlite/driver.ts';
import { createPurge, openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { openSqliteLedger } from '../../../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../../../plugins/stores/sqlite/writer.ts';
import { FACTS, NOW, rejectsUnavailable, reservation, settlement } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

describe('the writer of the sqlite store', () => {
  const folder = useTempFolder('sqlite-writer');
  let database: Database;
  let other: Database;
  let writer: Writer;
  beforeEach(async () => {
    database = await openDatabase({ folder });
    other = await openDatabase({ folder });
    writer = new Writer(database, 'tollgate.db');
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
    await writer.close();
    database.close();
    other.close();
  });
  const closers: (() => Promise<void>)[] = [];
  const openOn = (on: Database, by: Writer) => {
    const { ledger, journal } = openSqliteLedger(on, by);
    closers.push(async () => {
      await journal.close();
      await by.close();
    });
    return ledger;
  };
  const openLedger = () => openOn(database, writer);
  const insert = (key: string) => database.prepare('INSERT INTO numbers (key, value) VALUES (?, 1)').run(key);
  const isKnown = (key: string) => other.prepare('SELECT 1 FROM numbers WHERE key = ?').get(key) !== undefined;

  it('resolves when others can see the change', async () => {
    const write = writer.write('test', () => insert('visible'));
    expect(isKnown('visible')).to.equal(false);
    await write;
    expect(isKnown('visible')).to.equal(true);
  });

  it('fails only the change that fails, and leaves nothing of it', async () => {
    const outcomes = await Promise.allSettled([
      writer.write('test', () => insert('before')),
      writer.write('test', () => {
        insert('half');
        throw new RangeError('a bug of the program');
      }),
      writer.write('test', () => insert('after')),
      writer.write('test', () => insert('before')),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    expect((outcomes[1] as PromiseRejectedResult).reason).to.be.instanceOf(RangeError);
    expect((outcomes[3] as PromiseRejectedResult).reason.code).to.equal('store_unavailable');
    expect(['before', 'half', 'after'].map(isKnown)).to.deep.equal([true, false, true]);
  });

  it('refuses within its bound while another process holds the lock, and goes on afterwards @slow', async () => {
    other.exec('BEGIN IMMEDIATE');
    const waiting = Array.from({ length: 20 }, (_, n) => writer.write('test', () => insert(`busy-${n}`)));
    await Promise.all(waiting.map(rejectsUnavailable));
    const next = writer.write('test', () => insert('patient'));
    other.exec('COMMIT');
    await next;
    expect([isKnown('busy-0'), isKnown('patient')]).to.deep.equal([false, true]);
  });

  it('commits queued changes before it closes', async () => {
    const write = writer.write('test', () => insert('last'));
    await writer.close();
    await write;
    expect(isKnown('last')).to.equal(true);
    await rejectsUnavailable(writer.write('test', () => insert('too late')));
  });

  it('waits for the lock of another process before it closes', async () => {
    other.exec('BEGIN IMMEDIATE');
    const writes = [writer.write('test', () => insert('first')), writer.write('test', () => insert('second'))];
    const closed = writer.close();
    setTimeout(() => other.exec('COMMIT'), 100);
    await closed;
    await Promise.all(writes);
    expect(['first', 'second'].map(isKnown)).to.deep.equal([true, true]);
  });

  it('refuses changes over the queue limit, and applies the queued ones', async () => {
    const waiting = Array.from({ length: 10_000 }, (_, n) => writer.write('test', () => insert(`many-${n}`)));
    const error = await writer.write('test', () => insert('one too many')).catch((reason) => reason);
    expect(error.message).to.match(/is overloaded/);
    await Promise.all(waiting);
    expect(['many-0', 'many-9999', 'one too many'].map(isKnown)).to.deep.equal([true, true, false]);
  });

  it('includes queued changes in a query for the latest state', async () => {
    const count = () => database.prepare("SELECT count(*) AS n FROM numbers WHERE key = 'queued'").get()?.['n'];
    const write = writer.write('test', () => insert('queued'));
    expect(await Promise.all([writer.read('test', count), writer.readLatest('test', count)])).to.deep.equal([0, 1]);
    await write;
  });

  it('responds to a query also if changes queued before it are refused, because another process holds the lock @slow', async () => {
    other.exec('BEGIN IMMEDIATE');
    const write = writer.write('test', () => insert('refused'));
    const query = writer.readLatest('test', () => isKnown('refused'));
    await rejectsUnavailable(write);
    expect(await query).to.equal(false);
    other.exec('ROLLBACK');
  });

  it('remembers no row of the ledger that was undone with a failing change, or changed by another process', async () => {
    const ledger = openLedger();
    await ledger.credit('turn', 'first', 100, 'x', NOW);
    const hold = (requestId: string) => ledger.reserve(reservation({ account: 'turn', requestId, amount: 40 }));
    const turn = await Promise.allSettled([
      hold('r1'),
      writer.write('test', () => {
        throw new RangeError('a bug of the program');
      }),
      hold('r2'),
      hold('r3'),
    ]);
    const outcomes = turn.map((each) => (each.status === 'fulfilled' ? each.value.outcome : 'failed'));
    expect(outcomes).to.deep.equal(['held', 'failed', 'held', 'insufficient']);
    const elsewhere = openOn(other, new Writer(other, 'tollgate.db'));
    expect(await elsewhere.balance('turn')).to.include({ balance: 100, held: 80 });
    expect(await elsewhere.settle(settlement({ account: 'turn', requestId: 'r1', amount: 10 }))).to.equal(true);
    expect(await ledger.settle(settlement({ account: 'turn', requestId: 'r1', amount: 10 }))).to.equal(false);
    expect(await hold('r4')).to.include({ outcome: 'held' });
    expect(await hold('r5')).to.include({ outcome: 'insufficient' });
    expect(await elsewhere.balance('turn')).to.include({ balance: 90, held: 80, spent: 10 });
    expect((await elsewhere.entries('turn', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([-10, 100]);
  });

  it('ends a hold on top of other processes’ later changes: their sums, their entries, their sweep', async () => {
    const ledger = openLedger();
    const elsewhere = openOn(other, new Writer(other, 'tollgate.db'));
    const hold = (requestId: string, expiresAt = NOW + 1000) =>
      ledger.reserve(reservation({ account: 'shared', requestId, amount: 40, budgets: [BUDGET], expiresAt }));
    const BUDGET = { id: 'shared-budget', limit: 1000 };
    await ledger.credit('shared', 'first', 200, 'x', NOW);
    for (const id of ['s1', 's2']) expect(await hold(id)).to.include({ outcome: 'held' });
    await hold('s3', NOW - 1);
    await elsewhere.credit('shared', 'second', 50, 'x', NOW);
    await elsewhere.reserve(reservation({ account: 'shared', requestId: 't1', amount: 5, budgets: [BUDGET] }));
    await elsewhere.settle(settlement({ account: 'shared', requestId: 't1', amount: 3 }));
    expect(await elsewhere.sweep(NOW)).to.equal(1);
    const settle = (requestId: string, amount: number) =>
      ledger.settle(settlement({ account: 'shared', requestId, amount }));
    expect(await Promise.all([settle('s1', 10), settle('s2', 20), settle('s3', 30)])).to.deep.equal([true, true, true]);
    for (const each of [ledger, elsewhere]) {
      expect(await each.balance('shared')).to.include({ balance: 187, held: 0, spent: 63, credited: 250 });
      expect(await each.budgets(['shared-budget'])).to.deep.equal([{ spent: 63, held: 0 }]);
      const entries = await each.entries('shared', { limit: 10 });
      expect(entries.map(({ amount }) => amount)).to.deep.equal([10, -20, -10, -40, -3, 50, 200]);
    }
  });

  it('refuses changes on a full disk, keeps existing data, and continues when there is room again', async () => {
    const ledger = openLedger();
    await ledger.credit('rich', 'first', 1000, 'x', NOW);
    const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
    database.exec(`PRAGMA max_page_count=${pages}`);
    const facts = { ...FACTS, model: 'm'.repeat(3000) };
    const fill = Array.from({ length: 50 }, (_, n) =>
      ledger.reserve(reservation({ account: 'rich', requestId: `r${n}`, amount: 1, facts })),
    );
    const outcomes = await Promise.allSettled(fill);
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(failed.length).to.be.greaterThan(0);
    for (const { reason } of failed) expect(reason.message).to.match(/the disk is full/);
    expect((await ledger.balance('rich')).held).to.equal(50 - failed.length);
    database.exec('PRAGMA max_page_count=1073741823');
    expect(await ledger.reserve(reservation({ account: 'rich', requestId: 'room', amount: 1 }))).to.include({
      outcome: 'held',
    });
    expect(database.prepare('PRAGMA integrity_check').get()?.['integrity_check']).to.equal('ok');
  });

  it('loses nothing that was reserved before another process took the lock, and refuses more until it is free @slow', async () => {
    const store = await openSqlite({ folder });
    const { ledger } = store;
    await ledger.credit('full', 'first', 1000, 'x', NOW);
    const reserve = async (requestId: string) =>
      (await ledger.reserve(reservation({ account: 'full', requestId, amount: 1 }))).outcome;
    expect(await reserve('before')).to.equal('held');
    other.exec('BEGIN IMMEDIATE');
    await rejectsUnavailable(reserve('meanwhile'));
    expect((await ledger.balance('full')).held).to.equal(1);
    other.exec('ROLLBACK');
    expect(await reserve('meanwhile')).to.equal('held');
    expect((await ledger.balance('full')).held).to.equal(2);
    await store.close();
  });

  it('refuses changes of a file that may only be read', async () => {
    const ledger = openLedger();
    await ledger.balance('a');
    database.exec('PRAGMA query_only=ON');
    const error = await writer.write('test', () => insert('forbidden')).catch((reason) => reason);
    expect(error.message).to.match(/read-only: check the rights/);
    expect(await ledger.balance('a')).to.include({ balance: 0 });
  });

  it('refuses an unreadable document, and continues with the others', async () => {
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

  it('purges only expired data, however much there is', async () => {
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
    for (let round = 0; round < 4; round++) await writer.write('test', () => purge(now));
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
