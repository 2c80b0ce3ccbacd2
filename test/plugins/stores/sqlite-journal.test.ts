import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import type { Ledger } from '../../../contract/index.ts';
import type { Database } from '../../../plugins/stores/sqlite/driver.ts';
import { openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { openSqliteLedger, type SqliteLedger } from '../../../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../../../plugins/stores/sqlite/writer.ts';
import { FACTS, NOW, reservation, settlement } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import { createSilentLog } from '../../support/log.ts';

describe('the journal of the sqlite store', () => {
  const root = useTempFolder('sqlite-journal');
  let count = 0;
  let folder: string;
  let database: Database;
  let writer: Writer;
  beforeEach(async () => {
    folder = `${root}/store-${count++}`;
    database = await openDatabase({ folder });
    writer = new Writer(database, 'tollgate.db');
  });
  afterEach(async () => {
    for (const { journal } of opened.splice(0)) await journal.close();
    await writer.close();
    database.close();
  });
  const opened: SqliteLedger[] = [];
  const openLedger = (): SqliteLedger => {
    const ledger = openSqliteLedger(database, writer);
    opened.push(ledger);
    return ledger;
  };
  const rowsOf = (table: string): number => Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']);
  /** Makes a call that costs 10. */
  const call = async (ledger: Ledger, requestId: string, account = 'a'): Promise<void> => {
    await ledger.reserve(reservation({ account, requestId, amount: 20, floor: Number.NEGATIVE_INFINITY }));
    await ledger.settle(settlement({ account, requestId, amount: 10 }));
  };
  /** Asserts that entries, records, reports and sums of an account match this number of calls, each counted once. */
  const check = async (ledger: Ledger, calls: number, account = 'a'): Promise<void> => {
    expect(await ledger.balance(account)).to.include({ balance: -10 * calls, held: 0, spent: 10 * calls });
    expect(await ledger.entries(account, { limit: 1000 })).to.have.length(calls);
    const page = await ledger.calls({ account, limit: 1000 });
    expect(new Set(page.calls.map(({ id }) => id)).size).to.equal(calls);
    expect(page.calls).to.have.length(calls);
    const [row] = await ledger.report({ edges: [NOW - 1, NOW + 1], by: [], account });
    expect([row?.requests, row?.cost]).to.deep.equal([calls, BigInt(10 * calls)]);
    expect(rowsOf('journal')).to.equal(0);
    expect(rowsOf('holds')).to.equal(0);
  };

  it('has one row for the ends of all calls of a commit, and reads see them at once', async () => {
    const { ledger } = openLedger();
    await Promise.all(['r1', 'r2', 'r3'].map((id) => call(ledger, id)));
    expect([rowsOf('journal'), rowsOf('calls'), rowsOf('entries')]).to.deep.equal([1, 0, 0]);
    await check(ledger, 3);
  });

  it('of schema 8, whose records have no terms, is moved with them', async () => {
    const { ledger, journal } = openLedger();
    await call(ledger, 'r1');
    const items = JSON.parse(String(database.prepare('SELECT data FROM journal').get()?.['data'])) as unknown[][][];
    database.exec('DELETE FROM journal');
    await journal.drain();
    // The last value of a record is its list of terms.
    for (const item of items) item[3]?.pop();
    const data = JSON.stringify(items);
    database.prepare('INSERT INTO journal (checksum, data) VALUES (?, ?)').run(crc32(data), data);
    const found = await openLedger().ledger.calls({ model: FACTS.model, provider: FACTS.provider, limit: 10 });
    expect(found.calls.map(({ id }) => id)).to.deep.equal(['r1']);
  });

  it('is moved without a reader, within moments', async () => {
    const { ledger } = openLedger();
    await call(ledger, 'r1');
    while (rowsOf('journal') > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect([rowsOf('calls'), rowsOf('entries'), rowsOf('ended')]).to.deep.equal([1, 1, 1]);
  });

  it('of a process that was killed before the move is moved by the next one, each call once', async () => {
    const first = openLedger();
    for (const id of ['r1', 'r2']) await call(first.ledger, id);
    expect(rowsOf('journal')).to.equal(2);
    // The first store is abandoned, as after a kill.
    const next = await openSqlite({ folder });
    await check(next.ledger, 2);
    for (const requestId of ['r1', 'r2']) {
      expect(await next.ledger.settle(settlement({ account: 'a', requestId }))).to.equal(false);
      expect(await next.ledger.reserve(reservation({ account: 'a', requestId }))).to.deep.equal({
        outcome: 'duplicate',
      });
    }
    expect(await next.ledger.sweep(NOW + 10 ** 9)).to.equal(0);
    await check(next.ledger, 2);
    await next.close();
  });

  it('of two processes on one file is merged by either reader, each call once', async () => {
    const other = await openSqlite({ folder });
    const { ledger } = openLedger();
    for (let round = 0; round < 5; round += 1)
      await Promise.all([
        call(ledger, `a${round}`),
        call(other.ledger, `b${round}`),
        ledger.calls({ limit: 5 }),
        other.ledger.report({ edges: [NOW - 1, NOW + 1], by: [] }),
      ]);
    await check(ledger, 10);
    await check(other.ledger, 10);
    await other.close();
  });

  it('also accepts a correction of a call whose first record is in it', async () => {
    const { ledger } = openLedger();
    await ledger.reserve(reservation({ account: 'a', requestId: 'late', amount: 20, floor: -100, expiresAt: NOW - 1 }));
    expect(await ledger.sweep(NOW)).to.equal(1);
    expect(await ledger.settle(settlement({ account: 'a', requestId: 'late', amount: 10 }))).to.equal(true);
    expect(rowsOf('calls')).to.equal(0);
    const { calls } = await ledger.calls({ limit: 10 });
    expect(calls.map(({ cost, outcome }) => [cost, outcome])).to.deep.equal([[10, 'ok']]);
    const [row] = await ledger.report({ edges: [NOW - 1, NOW + 1], by: [] });
    expect([row?.requests, row?.cost]).to.deep.equal([1, 10n]);
    expect((await ledger.entries('a', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([10, -20]);
  });

  for (const [how, change] of [
    ['cut off', 'UPDATE journal SET data = substr(data, 1, 50) WHERE n = 2'],
    ['changed in one digit', "UPDATE journal SET data = replace(data, '-10', '-90') WHERE n = 2"],
    ['of another form', "UPDATE journal SET data = x'00ff' WHERE n = 2"],
  ] as const)
    it(`sets a row aside that is ${how}, reports it, and moves the others`, async () => {
      const log = createSilentLog();
      const first = openLedger();
      for (const id of ['r1', 'r2', 'r3']) await call(first.ledger, id);
      database.exec(change);
      const store = await openSqlite({ folder }, undefined, log);
      const { calls } = await store.ledger.calls({ limit: 10 });
      expect(calls.map(({ id }) => id).sort()).to.deep.equal(['r1', 'r3']);
      // Money does not depend on the journal.
      expect(await store.ledger.balance('a')).to.include({ balance: -30, held: 0, spent: 30 });
      expect(await store.ledger.sweep(NOW + 10 ** 9)).to.equal(0);
      expect(await store.ledger.reserve(reservation({ account: 'a', requestId: 'r2' }))).to.deep.equal({
        outcome: 'duplicate',
      });
      expect([rowsOf('journal'), rowsOf('damaged_journal')]).to.deep.equal([0, 1]);
      expect(log.lines.filter(({ message }) => /journal of the sqlite store are damaged/.test(message))).to.have.length(
        1,
      );
      const error = await store.health().catch((reason) => reason);
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(/has 1 damaged journal rows.*balances are right/);
      await store.close();
    });

  it('keeps its rows when the disk is full, and moves them when there is room again', async () => {
    const { ledger } = openLedger();
    const facts = { ...FACTS, model: 'm'.repeat(250), attempts: [{ target: 't'.repeat(250), ms: 1 }] };
    for (let n = 0; n < 20; n += 1) {
      await ledger.reserve(reservation({ account: 'a', requestId: `r${n}`, floor: -10_000, facts }));
      await ledger.settle(settlement({ account: 'a', requestId: `r${n}`, amount: 10, facts }));
    }
    database.exec(`PRAGMA max_page_count=${database.prepare('PRAGMA page_count').get()?.['page_count']}`);
    const error = await ledger.calls({ limit: 100 }).then(
      () => undefined,
      (reason) => reason,
    );
    expect(error?.message).to.match(/the disk is full/);
    expect(await ledger.balance('a')).to.include({ spent: 200 });
    database.exec('PRAGMA max_page_count=1073741823');
    await check(ledger, 20);
  });
});
