import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { Database } from '../../../plugins/stores/sqlite/driver.ts';
import { closeDatabase, openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { MIGRATIONS, type Migration, migrate } from '../../../plugins/stores/sqlite/schema.ts';
import { NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

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
  /** Creates a file of another version that contains money. */
  const leaveFile = async (version: number): Promise<void> => {
    const store = await openSqlite({ folder });
    await store.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await store.close();
    const file = await openDatabase({ folder });
    file.exec(`PRAGMA user_version=${version}`);
    closeDatabase(file);
  };
  /** All files except the index of SQLite's write-ahead log, which is rebuilt at every opening. */
  const readFiles = () =>
    readdirSync(folder)
      .filter((name) => !name.endsWith('-shm'))
      .sort()
      .map((name) => [name, readFileSync(path.join(folder, name), 'hex')]);

  it('has steps whose versions rise', () => {
    const versions = MIGRATIONS.map(({ version }) => version);
    expect(versions).to.deep.equal([...new Set(versions)].sort((a, b) => a - b));
  });

  it('is that of the last step in a new file', async () => {
    database = await openDatabase({ folder });
    expect(versionOf(database)).to.equal(newest);
  });

  for (const version of [1, 2, 3, 5, 6])
    it(`of version ${version}, which was not released, is refused with the remedy, and is not modified`, async () => {
      await leaveFile(version);
      // The first version wrote charges that were not yet in its tables to a separate file.
      writeFileSync(path.join(folder, 'tollgate.journal'), 'tollgate journal 1\n');
      const before = readFiles();
      const error = await openErrorOf(openSqlite({ folder }));
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(
        /was made by an earlier version of Tollgate \(schema [1-6]\).*set store to a new folder\. Nothing in it was changed/,
      );
      expect(readFiles()).to.deep.equal(before);
    });

  it('of a newer version is refused with the remedy, and is not modified', async () => {
    await leaveFile(99);
    const before = readFiles();
    const error = await openErrorOf(openSqlite({ folder }));
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect(readFiles()).to.deep.equal(before);
  });

  const next: Migration = { version: newest + 1, sql: 'ALTER TABLE sums ADD COLUMN note TEXT' };

  it('is taken by a further step to the next version, with the rows that are there, once', async () => {
    await leaveFile(newest);
    database = await openDatabase({ folder });
    for (let start = 0; start < 2; start++) migrate(database, [...MIGRATIONS, next]);
    expect(versionOf(database)).to.equal(next.version);
    expect({ ...database.prepare('SELECT id, balance, note FROM sums').get() }).to.deep.equal({
      id: 'a',
      balance: 5,
      note: null,
    });
  });

  it('stays unchanged when a step fails', async () => {
    await leaveFile(newest);
    database = await openDatabase({ folder });
    const file = database;
    const broken: Migration = { version: newest + 2, sql: 'DROP TABLE sums; DROP TABLE not_there' };
    expect(() => migrate(file, [...MIGRATIONS, next, broken])).to.throw(/not_there/);
    expect(versionOf(file)).to.equal(newest);
    expect({ ...file.prepare('SELECT * FROM sums').get() }).to.include({ id: 'a', balance: 5 });
  });
});
