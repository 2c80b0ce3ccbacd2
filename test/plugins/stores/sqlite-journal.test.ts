import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { Ledger, Store } from '../../../core/index.ts';
import { createCensus } from '../../../plugins/stores/sqlite/census.ts';
import { closeDatabase, openDatabase, openLock } from '../../../plugins/stores/sqlite/database.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { createJournal, JOURNAL_FILE } from '../../../plugins/stores/sqlite/journal.ts';
import { createSqliteLedger } from '../../../plugins/stores/sqlite/ledger.ts';
import { createLedgerAlone } from '../../../plugins/stores/sqlite/ledger-alone.ts';
import { chargeRecord, holdRecord, type LedgerRecord } from '../../../plugins/stores/sqlite/ledger-record.ts';
import { createLedgerTables } from '../../../plugins/stores/sqlite/ledger-tables.ts';
import { createPresence } from '../../../plugins/stores/sqlite/presence.ts';
import { createWriter } from '../../../plugins/stores/sqlite/writer.ts';
import { NOW, rejectsUnavailable, reservation, settlement, sums } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/temp-folder.ts';

describe('the journal of the sqlite store', () => {
  const root = useTempFolder('sqlite-journal');
  let count = 0;
  let folder: string;
  let file: string;
  const open: Store[] = [];
  const openStore = async (durability: 'normal' | 'full' = 'normal'): Promise<Store> => {
    const store = await openSqlite({ folder, durability });
    open.push(store);
    return store;
  };
  /** Opens the store, asks it something, and closes it. */
  const ask = async <T>(question: (ledger: Ledger) => Promise<T>): Promise<T> => {
    const store = await openSqlite({ folder });
    try {
      return await question(store.ledger);
    } finally {
      await store.close();
    }
  };
  beforeEach(async () => {
    folder = path.join(root, `store-${count++}`);
    file = path.join(folder, JOURNAL_FILE);
    await ask((ledger) => ledger.credit('a', 'first', 1000, 'top-up', NOW));
  });
  afterEach(() => Promise.all(open.splice(0).map((store) => store.close())));

  const hold = (requestId: string, amount: number): LedgerRecord =>
    holdRecord(reservation({ account: 'a', requestId, amount, purse: { id: 'k', limit: 500 } }));
  const charge = (requestId: string, amount: number): LedgerRecord =>
    chargeRecord('a', requestId, settlement({ account: 'a', requestId, amount }));
  const release = (ref: string): LedgerRecord => ({ do: 'release', account: 'a', ref });

  /** Leaves what a process that was killed leaves: lines that are not in the tables. */
  const leaveJournal = (lines: readonly (readonly LedgerRecord[])[], from = 1): void => {
    const journal = createJournal(file);
    journal.clear();
    let first = from;
    for (const records of lines) {
      journal.append({ first, records });
      first += records.length;
    }
    journal.close();
  };
  const LINES = [
    [hold('r1', 100), hold('r2', 50)],
    [charge('r1', 70), hold('r3', 30)],
    [release('r2'), hold('r4', 5), charge('r4', 5)],
  ];
  /** The account after so many of the lines. */
  const AFTER = [
    { balance: 1000, held: 0, spent: 0 },
    { balance: 1000, held: 150, spent: 0 },
    { balance: 930, held: 80, spent: 70 },
    { balance: 925, held: 30, spent: 75 },
  ];

  it('is written to the tables by the next process, whatever the one that died had come to', async () => {
    leaveJournal(LINES);
    const { ledger } = await openStore();
    expect(sums(await ledger.balance('a'))).to.deep.equal(AFTER[3]);
    expect(await ledger.purse('a', 'k')).to.deep.equal({ spent: 75, held: 30 });
    const entries = await ledger.entries('a', { limit: 10 });
    expect(entries.map(({ ref, amount }) => [ref, amount])).to.deep.equal([
      ['r4', -5],
      ['r1', -70],
      ['first', 1000],
    ]);
    const day = new Date(NOW).toISOString().slice(0, 10);
    const usage = await ledger.usage('a', day, day);
    expect(usage.map(({ requests, cost }) => ({ requests, cost }))).to.deep.equal([{ requests: 2, cost: 75 }]);
    for (const requestId of ['r1', 'r2', 'r3', 'r4']) {
      expect(await ledger.reserve(reservation({ account: 'a', requestId })), requestId).to.equal('duplicate');
    }
    expect(await ledger.settle(settlement({ account: 'a', requestId: 'r3', amount: 20 }))).to.equal(true);
    expect(await ledger.release('a', 'r2')).to.equal(false);
    expect(sums(await ledger.balance('a'))).to.deep.equal({ balance: 905, held: 0, spent: 95 });
  });

  it('is written to the tables once, also by a process that finds what the one before had written', async () => {
    leaveJournal(LINES);
    const left = readFileSync(file);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal(AFTER[3]);
    writeFileSync(file, left);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal(AFTER[3]);
    // Of a line that was partly written, the rest is what is new.
    leaveJournal([[charge('r3', 30), hold('r5', 1)]], 8);
    await ask((ledger) => ledger.balance('a'));
    leaveJournal([[charge('r3', 30), hold('r5', 1), hold('r6', 2)]], 8);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal({ balance: 895, held: 3, spent: 105 });
  });

  it('counts as far as its lines are whole, wherever it breaks off', async function () {
    this.timeout(60_000);
    leaveJournal(LINES);
    const whole = readFileSync(file);
    const ends = [...whole.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
    const cuts = new Set([0, 5, ...ends.flatMap((end) => [end - 2, end - 1, end, end + 9, end + 40]), whole.length]);
    for (const cut of cuts) {
      if (cut > whole.length) continue;
      rmSync(folder, { recursive: true });
      await ask((ledger) => ledger.credit('a', 'first', 1000, 'top-up', NOW));
      leaveJournal(LINES);
      truncateSync(file, cut);
      // The line end is the last byte of a line; without it the line is as whole.
      const lines = ends.filter((end) => end - 1 <= cut).length - 1;
      expect(sums(await ask((ledger) => ledger.balance('a'))), `cut at ${cut}`).to.deep.equal(
        AFTER[Math.max(0, lines)],
      );
    }
  });

  it('makes no request id new again, wherever it is by now and in whatever order ids come', async () => {
    const ids = ['m5', 'm1', 'm9', 'é', '😀', '\uFFFD', 'z', 'A', ''];
    const reserve = (ledger: Ledger, requestId: string) =>
      ledger.reserve(reservation({ account: 'a', requestId, amount: 1 }));
    const expectDuplicates = async (ledger: Ledger) => {
      for (const id of ids) expect(await reserve(ledger, id), id).to.equal('duplicate');
    };
    const first = await openStore();
    for (const [at, id] of ids.entries()) {
      expect(await reserve(first.ledger, id), id).to.equal('held');
      if (at % 3 === 0) await first.ledger.settle(settlement({ account: 'a', requestId: id, amount: 1 }));
      if (at % 3 === 1) await first.ledger.release('a', id);
    }
    await expectDuplicates(first.ledger);
    expect((await first.ledger.balance('a')).balance, 'now they are in the tables').to.equal(997);
    await expectDuplicates(first.ledger);
    await first.close();
    await expectDuplicates((await openStore()).ledger);
  });

  it('counts up to a line that somebody changed', async () => {
    leaveJournal(LINES);
    const text = readFileSync(file, 'utf8');
    const changed = text.replace(',70,', ',71,');
    expect(changed).not.to.equal(text);
    writeFileSync(file, changed);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal(AFTER[1]);
  });

  it('is left aside when the tables are older than it, as after a power cut or beside a restored backup', async () => {
    leaveJournal([[hold('r8', 100)]], 5);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal(AFTER[0]);
  });

  it('is refused when a newer version wrote it, before anything is decided', async () => {
    writeFileSync(file, 'tollgate journal 2\nsomething else\n');
    const error = await openSqlite({ folder }).catch((reason: Error) => reason);
    expect((error as Error).message).to.match(/written by a newer version/);
    expect(readFileSync(file, 'utf8')).to.match(/something else/);
  });

  it('is readable by its owner alone, holds what waits for the tables, and is empty after a clean stop', async () => {
    const store = await openStore();
    await store.ledger.reserve(reservation({ account: 'a', requestId: 'r1', amount: 10 }));
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    await store.close();
    expect(statSync(file).size).to.equal(0);
    expect(sums(await ask((ledger) => ledger.balance('a')))).to.deep.equal({ balance: 1000, held: 10, spent: 0 });
  });

  it('is missed by the health check when somebody removes it', async () => {
    const store = await openStore();
    await store.ledger.reserve(reservation({ account: 'a', requestId: 'r1', amount: 10 }));
    await store.health();
    rmSync(file);
    await rejectsUnavailable(store.health());
  });

  it('is not used when every commit waits for the disk, but read', async () => {
    leaveJournal(LINES);
    const { ledger } = await openStore('full');
    expect(sums(await ledger.balance('a'))).to.deep.equal(AFTER[3]);
    await ledger.reserve(reservation({ account: 'a', requestId: 'r9', amount: 10 }));
    expect(existsSync(file) ? statSync(file).size : 0).to.equal(0);
    const other = await openDatabase({ folder });
    expect(other.prepare("SELECT amount FROM holds WHERE ref = 'r9'").get()?.['amount']).to.equal(10);
    other.close();
  });

  it('has no trace of reservations that the disk had no room for, and goes on when there is room', async () => {
    const database = await openDatabase({ folder });
    const writer = createWriter(database);
    const presence = createPresence(writer, async () => createCensus(await openLock(folder), database));
    const tables = createLedgerTables(database);
    let room = Number.POSITIVE_INFINITY;
    const journal = createJournal(file, ((fd: number, bytes: Buffer, from: number, length: number, at: number) => {
      if (room === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      const part = Math.min(room, length);
      room -= part;
      return writeSync(fd, bytes, from, part, at);
    }) as typeof writeSync);
    const alone = createLedgerAlone(database, writer, tables, journal);
    presence.add(alone);
    const ledger = createSqliteLedger(writer, presence, tables, alone);
    const reserve = (requestId: string) => ledger.reserve(reservation({ account: 'a', requestId, amount: 300 }));
    expect(await reserve('before')).to.equal('held');
    for (const left of [0, 10, 200]) {
      room = left;
      const turn = [
        reserve(`r${left}`),
        reserve(`s${left}`),
        ledger.settle(settlement({ account: 'a', requestId: 'before' })),
      ];
      for (const refused of turn) await rejectsUnavailable(refused);
    }
    room = Number.POSITIVE_INFINITY;
    // Had the disk kept 600 held, this would be too much.
    expect(await Promise.all([reserve('r0'), reserve('r10'), reserve('r200')])).to.deep.equal([
      'held',
      'held',
      'insufficient',
    ]);
    // Nor would the next process find any.
    const found = createJournal(file);
    const refs = found.read().flatMap(({ records }) => records.map(({ ref }) => ref));
    found.close();
    expect(refs.filter((ref) => !['before', 'r0', 'r10'].includes(ref))).to.deep.equal([]);
    expect(sums(await ledger.balance('a'))).to.deep.equal({ balance: 1000, held: 900, spent: 0 });
    await presence.close();
    await writer.close();
    presence.leave();
    closeDatabase(database);
  });
});
