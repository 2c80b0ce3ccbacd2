import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { closeDatabase, openDatabase } from '../../../plugins/stores/sqlite/database.ts';
import type { Database } from '../../../plugins/stores/sqlite/driver.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { MIGRATIONS, type Migration, migrate } from '../../../plugins/stores/sqlite/schema.ts';
import { NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/temp-folder.ts';

describe('the schema of the sqlite store', () => {
  const root = useTempFolder('sqlite-schema');
  let count = 0;
  let folder: string;
  let database: Database | undefined;
  beforeEach(() => {
    folder = path.join(root, `store-${count++}`);
  });
  afterEach(() => {
    database?.close();
    database = undefined;
  });

  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const versionOf = (of: Database) => of.prepare('PRAGMA user_version').get()?.['user_version'];
  const openErrorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error) => error);
  /** Leaves a file that holds money and says that another version made it. */
  const leaveFile = async (version: number): Promise<void> => {
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await store.close();
    const file = await openDatabase({ folder });
    file.exec(`PRAGMA user_version=${version}`);
    closeDatabase(file);
  };
  const facts = { operation: 'chat', provider: 'p', model: 'm', key: 'k1', outcome: 'ok', estimated: false } as const;
  const reservationOf = (requestId: string, amount: number) =>
    ({ account: 'a', requestId, amount, floor: 0, expiresAt: NOW + 60_000, facts, now: NOW }) as const;
  /** Leaves a file as version 2 made it, with money, a hold, a document and a member: version 3 only added one table. */
  const leaveVersion2 = async (): Promise<void> => {
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'first', 100, 'top-up', NOW);
    await store.ledger.reserve(reservationOf('over', 10));
    await store.ledger.settle({ account: 'a', requestId: 'over', amount: 5, usage: facts, now: NOW });
    await store.ledger.reserve(reservationOf('running', 20));
    await store.keyv('keys').set('k1', 'document');
    await store.sets.add('keys-of-a', 'k1');
    await store.close();
    const file = await openDatabase({ folder });
    file.exec('DROP TABLE swept');
    file.exec('PRAGMA user_version=2');
    closeDatabase(file);
  };
  /** All files but SQLite's index of its write-ahead log, which whoever opens the file makes anew. */
  const readFiles = () =>
    readdirSync(folder)
      .filter((name) => !name.endsWith('-shm'))
      .sort()
      .map((name) => [name, readFileSync(path.join(folder, name), 'hex')]);

  it('has steps whose versions rise', () => {
    const versions = MIGRATIONS.map(({ version }) => version);
    expect(versions).to.deep.equal([...new Set(versions)].sort((a, b) => a - b));
    expect(versions[0]).to.equal(2);
  });

  it('is that of the last step in a new file', async () => {
    database = await openDatabase({ folder });
    expect(versionOf(database)).to.equal(newest);
  });

  it('of an earlier version is refused with what to do, and nothing of it is touched', async () => {
    await leaveFile(1);
    // The first build kept charges that were not in its tables yet in a file of its own.
    writeFileSync(path.join(folder, 'tollgate.journal'), 'tollgate journal 1\n');
    const before = readFiles();
    const error = await openErrorOf(openSqlite({ folder }));
    expect(error.code).to.equal('store_unavailable');
    expect(error.message).to.match(
      /was made by an earlier version of Tollgate \(schema 1\).*set store to a new folder\. Nothing in it was changed/,
    );
    expect(readFiles()).to.deep.equal(before);
  });

  it('of a newer version is refused with what to do, and nothing of it is touched', async () => {
    await leaveFile(99);
    const before = readFiles();
    const error = await openErrorOf(openSqlite({ folder }));
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect(readFiles()).to.deep.equal(before);
  });

  it('of version 2 is taken to the newest with its money, holds, documents and members, and its holds are settled', async () => {
    await leaveVersion2();
    const store = await openSqlite({ folder });
    try {
      const account = await store.ledger.balance('a');
      expect(account).to.include({ balance: 95, held: 20, spent: 5, credited: 100 });
      expect(await store.keyv<string>('keys').get('k1')).to.equal('document');
      expect(await store.sets.has('keys-of-a', 'k1')).to.equal(true);
      const settled = await store.ledger.settle({
        account: 'a',
        requestId: 'running',
        amount: 7,
        usage: facts,
        now: NOW,
      });
      expect(settled).to.equal(true);
      expect(await store.ledger.balance('a')).to.include({ balance: 88, held: 0, spent: 12 });
    } finally {
      await store.close();
    }
    database = await openDatabase({ folder });
    expect(versionOf(database)).to.equal(newest);
  });

  const next: Migration = { version: newest + 1, sql: 'ALTER TABLE accounts ADD COLUMN note TEXT' };

  it('is taken by a further step to the next version, with the rows that are there, once', async () => {
    await leaveFile(newest);
    database = await openDatabase({ folder });
    for (let start = 0; start < 2; start++) migrate(database, [...MIGRATIONS, next]);
    expect(versionOf(database)).to.equal(next.version);
    expect({ ...database.prepare('SELECT id, balance, note FROM accounts').get() }).to.deep.equal({
      id: 'a',
      balance: 5,
      note: null,
    });
  });

  it('stays as it was when a step fails', async () => {
    await leaveFile(newest);
    database = await openDatabase({ folder });
    const file = database;
    const broken: Migration = { version: newest + 2, sql: 'DROP TABLE accounts; DROP TABLE not_there' };
    expect(() => migrate(file, [...MIGRATIONS, next, broken])).to.throw(/not_there/);
    expect(versionOf(file)).to.equal(newest);
    expect({ ...file.prepare('SELECT * FROM accounts').get() }).to.include({ id: 'a', balance: 5 });
  });
});
