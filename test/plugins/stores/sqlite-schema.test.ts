import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { Ledger, ReportDimension } from '../../../core/index.ts';
import { closeDatabase, openDatabase } from '../../../plugins/stores/sqlite/database.ts';
import { type Database, importDriver } from '../../../plugins/stores/sqlite/driver.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { MIGRATIONS, type Migration, migrate } from '../../../plugins/stores/sqlite/schema.ts';
import { NOW, outcomeOf, reservation, settlement } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

/** Facts of a hold, as versions before 4 wrote them. */
const OLD_FACTS = '{"operation":"chat","provider":"p","model":"m","key":"k1","outcome":"unknown","estimated":true}';

/** A charge, a hold, a document and a member. */
const VERSION_2 = `
  INSERT INTO accounts VALUES ('a', 95, 20, 5, 100, 2, 1);
  INSERT INTO entries VALUES (1, 0, 'a', 'credit', 'first', 100, 'top-up', 1), (2, 1, 'a', 'charge', 'over', -5, 'chat p/m', 1);
  INSERT INTO finished VALUES ('first', 'a', 'credit', NULL), ('over', 'a', 'charge', ${NOW});
  INSERT INTO holds VALUES ('a', 'running', 20, ${NOW}, NULL, '${OLD_FACTS}');
  INSERT INTO documents VALUES ('keys', 'k1', '{"value":"document"}', NULL);
  INSERT INTO members VALUES ('keys-of-a', 'k1');
  INSERT INTO usage VALUES ('2026-01-01', 'a', 'chat', 'p', 'm', 'k1', 1, 3, 5, 0, 5);`;

/**
 * Two accounts with purses of keys, one key in both; users' accounts: ann's with a hold of a running call and a swept one, bob's
 * with a hold whose call has ended.
 */
const VERSION_3 = `
  INSERT INTO accounts VALUES ('a', 92, 20, 8, 100, 4, 1), ('b', -4, 0, 4, 0, 3, 1),
    (char(1) || 'user:ann', -7, 20, 7, 0, 5, 1), (char(1) || 'user:bob', -2, 4, 2, 0, 0, 1);
  INSERT INTO purses VALUES ('a', 'k1', 8, 20), ('b', 'k1', 1, 0), ('b', 'k2', 3, 0);
  INSERT INTO entries VALUES (1, 0, 'a', 'credit', 'first', 100, 'top-up', 1), (2, 1, 'a', 'charge', 'r1', -6, 'chat p/m', 1),
    (3, 0, 'b', 'charge', 'r3', -4, 'chat p/m', 1), (4, 2, 'a', 'charge', 'r2', -2, 'chat p/m', 1),
    (5, 0, char(1) || 'user:ann', 'charge', 'r2', -7, 'chat p/m', 1);
  INSERT INTO holds VALUES ('a', 'running', 20, ${NOW}, 'k1', '${OLD_FACTS}'),
    (char(1) || 'user:ann', 'running', 20, ${NOW}, NULL, '${OLD_FACTS}'),
    (char(1) || 'user:bob', 'r3', 4, ${NOW}, NULL, '${OLD_FACTS}');
  INSERT INTO swept VALUES ('r2', 'a', 2, 'k1', '${OLD_FACTS}', ${Date.parse('2026-01-02T05:00Z')}, ${NOW}),
    ('r2', char(1) || 'user:ann', 2, NULL, '${OLD_FACTS}', ${Date.parse('2026-01-02T05:00Z')}, ${NOW});
  INSERT INTO usage VALUES ('2026-01-01', 'a', 'chat', 'p', 'm', 'k1', 1, 3, 5, 0, 6),
    ('2026-01-02', 'a', 'chat', 'p', 'm', 'k1', 1, 1, 1, 0, 2), ('2026-01-02', 'b', 'chat', 'p', 'm', 'k2', 2, 2, 2, 9, 4),
    ('2026-01-02', char(1) || 'user:ann', 'chat', 'p', 'm', 'k1', 1, 1, 1, 0, 7);`;

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
  /** Makes a file of an earlier version, with what `sql` puts there. */
  const leaveOld = async (version: number, sql: string): Promise<void> => {
    const { DatabaseSync } = await importDriver();
    mkdirSync(folder);
    const file = new DatabaseSync(path.join(folder, 'tollgate.db'));
    migrate(
      file,
      MIGRATIONS.filter((step) => step.version <= version),
    );
    file.exec(sql);
    file.close();
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
    await leaveOld(2, VERSION_2);
    const store = await openSqlite({ folder });
    try {
      const account = await store.ledger.balance('a');
      expect(account).to.include({ balance: 95, held: 20, spent: 5, credited: 100 });
      expect(await store.keyv<string>('keys').get('k1')).to.equal('document');
      expect(await store.sets.has('keys-of-a', 'k1')).to.equal(true);
      expect(await store.ledger.settle(settlement({ account: 'a', requestId: 'running', amount: 7 }))).to.equal(true);
      expect(await store.ledger.balance('a')).to.include({ balance: 88, held: 0, spent: 12 });
      const again = store.ledger.reserve(reservation({ account: 'a', requestId: 'over' }));
      expect(await outcomeOf(again)).to.equal('duplicate');
    } finally {
      await store.close();
    }
    database = await openDatabase({ folder });
    expect(versionOf(database)).to.equal(newest);
  });

  it('E27: of version 4 is taken to the newest, and its calls are found by what they are indexed by', async () => {
    await leaveOld(
      4,
      `INSERT INTO call_groups VALUES (1, 'a', 'ann', 'k1', '[]', 'chat', 'p', 'm');
       INSERT INTO calls VALUES (${NOW}, '["call_1","a"]', 1, 's1', 'ok', 0, 0, 0, 3, 5, 0, 0, 0, 10, 0, '{"requestId":"req_1","units":{}}');`,
    );
    const store = await openSqlite({ folder });
    for (const filter of [
      { account: 'a' },
      { userId: 'ann' },
      { key: 'k1' },
      { session: 's1' },
      { requestId: 'req_1' },
    ]) {
      const { calls } = await store.ledger.calls({ ...filter, limit: 10 });
      expect(calls.map(({ id, requestId }) => [id, requestId])).to.deep.equal([['call_1', 'req_1']]);
    }
    await store.close();
  });

  describe('of version 3', () => {
    const withStore = async (use: (ledger: Ledger) => Promise<void>): Promise<void> => {
      await leaveOld(3, VERSION_3);
      const store = await openSqlite({ folder });
      try {
        await use(store.ledger);
      } finally {
        await store.close();
      }
    };
    const allOf = (ledger: Ledger, by: readonly ReportDimension[]) => ledger.report({ edges: [0, NOW + 1], by });

    it('counts what purses and users\u2019 accounts had in budgets of keys and users, and lists those accounts no more', () =>
      withStore(async (ledger) => {
        expect(await ledger.budgets(['key:k1', 'key:k2', 'user:ann', 'user:bob', 'key:none'])).to.deep.equal([
          // Of two accounts together.
          { spent: 9, held: 20 },
          { spent: 3, held: 0 },
          { spent: 7, held: 20 },
          // 4 was held for a call that ended: the sweeper would have charged it.
          { spent: 6, held: 0 },
          { spent: 0, held: 0 },
        ]);
        const accounts = await ledger.accounts({ limit: 10 });
        expect(accounts.map(({ account, balance, held, spent }) => [account, balance, held, spent])).to.deep.equal([
          ['a', 92, 20, 8],
          ['b', -4, 0, 4],
        ]);
        const entries = await ledger.entries('a', { limit: 10 });
        expect(entries.map(({ ref }) => ref)).to.deep.equal(['r2', 'r1', 'first']);
      }));

    it('settles its holds, and corrects what was swept, in the account and in the budgets of key and user', () =>
      withStore(async (ledger) => {
        expect(await ledger.settle(settlement({ account: 'a', requestId: 'running', amount: 5 }))).to.equal(true);
        expect(await ledger.settle(settlement({ account: 'a', requestId: 'r2', amount: 1 }))).to.equal(true);
        expect(await ledger.balance('a')).to.include({ balance: 88, held: 0, spent: 12 });
        expect(await ledger.budgets(['key:k1', 'user:ann'])).to.deep.equal([
          { spent: 13, held: 0 },
          { spent: 11, held: 0 },
        ]);
        const [day] = await ledger.report({ edges: [2, 3].map((at) => Date.UTC(2026, 0, at)), by: [], account: 'a' });
        expect([day?.requests, day?.cost]).to.deep.equal([1, 1]);
        expect((await allOf(ledger, [])).reduce((sum, { cost }) => sum + cost, 0)).to.equal(12 + 4);
      }));

    it('keeps its usage, each day at its first hour, and it sums to what was spent', () =>
      withStore(async (ledger) => {
        const days = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04'].map((day) => Date.parse(day));
        const rows = await ledger.report({ edges: days, by: ['account', 'user', 'key', 'model'] });
        expect(
          rows.map(({ interval, account, user, key, model, requests, cost, units }) => [
            ...[interval, account, user, key, model, requests, cost, units.prompt_tokens, units.characters],
          ]),
        ).to.deep.equal([
          [0, 'a', 'a', 'k1', 'm', 1, 6, 3, 0],
          [1, 'a', 'a', 'k1', 'm', 1, 2, 1, 0],
          [1, 'b', 'b', 'k2', 'm', 2, 4, 2, 9],
        ]);
        const accounts = await ledger.accounts({ limit: 10 });
        for (const by of [[], ['user'], ['tags', 'operation']] as const)
          expect((await allOf(ledger, by)).reduce((sum, { cost }) => sum + cost, 0)).to.equal(
            accounts.reduce((sum, { spent }) => sum + spent, 0),
          );
        // In a zone of half hours, the first hour of a day counts whole, where it begins.
        const halves = [
          Date.parse('2026-01-01T18:30Z'),
          Date.parse('2026-01-02T00:30Z'),
          Date.parse('2026-01-03T00:30Z'),
        ];
        const half = await ledger.report({ edges: halves, by: [] });
        expect(half.map(({ interval, cost }) => [interval, cost])).to.deep.equal([[0, 6]]);
      }));
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
