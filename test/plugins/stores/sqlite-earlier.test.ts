import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { runExport, runImport } from '../../../cli/move-store.ts';
import type { LedgerEntry, Store } from '../../../contract/index.ts';
import { importDriver } from '../../../plugins/stores/sqlite/driver.ts';
import { FILE, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { FACTS } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import { captureTerminal } from '../../support/processes/plugin-command.ts';
import { writeSqliteFixture } from '../../support/stores/sqlite-fixture.ts';

const LONG = `user-${'x'.repeat(250)}`;
/** Totals of both fixtures, in nano-dollars. */
const ADA = { balance: 24_483_292_000, held: 700_000, spent: 16_708_000, credited: 24_500_000_000 };
const EVER = [0, 1_900_000_000_000];

async function entriesOf(store: Store, account: string): Promise<readonly LedgerEntry[]> {
  return store.ledger.entries(account, { limit: 100 });
}

/** Asserts that a store contains the fixtures' data: sums, entries, records, reports, requests. */
async function checkBooks(store: Store, end: number): Promise<void> {
  const { ledger } = store;
  expect(await ledger.balance('ada')).to.include(ADA);
  expect((await ledger.balance(LONG)).spent).to.equal(300_000);
  for (const account of ['ada', LONG]) {
    const entries = await entriesOf(store, account);
    const { balance } = await ledger.balance(account);
    expect(entries.reduce((sum, { amount }) => sum + amount, 0)).to.equal(balance);
  }
  const { calls } = await ledger.calls({ limit: 100 });
  expect(calls.reduce((sum, { cost }) => sum + cost, 0)).to.equal(ADA.spent + 300_000);
  expect(calls.map(({ id }) => id)).to.include.members(['l1', 'swept']);
  expect((await ledger.calls({ key: 'k1', limit: 100 })).calls.map(({ id }) => id).sort()).to.deep.equal([
    'l1',
    'swept',
  ]);
  const reports = await ledger.report({ edges: EVER, by: ['account'] });
  expect(reports.map(({ account, cost }) => [account, cost])).to.deep.equal([
    ['ada', BigInt(ADA.spent)],
    [(await ledger.calls({ limit: 1, session: 's1', account: LONG })).calls[0]?.account, 300_000n],
  ]);
  // A finished request stays finished, an open one is settled once, and a swept one is corrected.
  const now = Math.max(end, Date.now());
  const again = { amount: 1, floor: 0, expiresAt: now + 60_000, facts: FACTS, now };
  for (const requestId of ['released', 'open', 'swept'])
    expect(await ledger.reserve({ ...again, account: 'ada', requestId })).to.deep.equal({ outcome: 'duplicate' });
  expect(await ledger.credit('ada', 'refund', 5, 'again', now)).to.equal(false);
  const settle = { account: 'ada', amount: 500_000, facts: { ...FACTS, key: 'k1' }, now };
  expect(await ledger.settle({ ...settle, requestId: 'open' })).to.equal(true);
  expect(await ledger.settle({ ...settle, requestId: 'open' })).to.equal(false);
  expect(await ledger.settle({ ...settle, requestId: 'swept' })).to.equal(true);
  expect(await ledger.balance('ada')).to.include({ held: 0, spent: ADA.spent + 500_000 - 200_000 });
  expect(await ledger.budgets(['key:k1'])).to.deep.equal([{ spent: 1_000_000 + 500_000 - 200_000, held: 0 }]);
  const after = await ledger.report({ edges: EVER, by: [], account: 'ada' });
  expect(after[0]?.cost).to.equal(BigInt(ADA.spent + 300_000));
}

describe('a sqlite store of an earlier build', () => {
  const root = useTempFolder('sqlite-earlier');
  let count = 0;
  let folder: string;
  beforeEach(() => {
    folder = path.join(root, `store-${count++}`);
  });
  const openErrorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error) => error);
  const versionOf = async (): Promise<number> => {
    const { DatabaseSync } = await importDriver();
    const database = new DatabaseSync(path.join(folder, FILE), { readOnly: true });
    try {
      return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
    } finally {
      database.close();
    }
  };

  it('G50: of schema 7 opens with its sums, books, records, reports and requests', async () => {
    await writeSqliteFixture(folder, 'sqlite-schema-7.sql');
    const store = await openSqlite({ folder });
    await store.health();
    await checkBooks(store, 0);
    await store.close();
  });

  it('of schema 7 finds its old calls by every value, and new ones too', async () => {
    await writeSqliteFixture(folder, 'sqlite-schema-7.sql');
    const store = await openSqlite({ folder });
    const { ledger } = store;
    const all = (await ledger.calls({ limit: 100 })).calls;
    const facts = { ...FACTS, model: all[0]?.model ?? '', endUser: 'new' };
    const now = Date.now();
    await ledger.reserve({
      account: 'ada',
      requestId: 'new',
      amount: 1,
      floor: 0,
      expiresAt: now + 60_000,
      facts,
      now,
    });
    await ledger.settle({ account: 'ada', requestId: 'new', amount: 1, facts, now });
    for (const { id, model, provider, outcome } of all) {
      const { calls } = await ledger.calls({ model, provider, outcome, limit: 100 });
      expect(calls.map((call) => call.id)).to.include(id);
    }
    const ofModel = await ledger.calls({ model: facts.model, limit: 100 });
    expect(ofModel.calls.map(({ id }) => id)).to.include.members(['new', all[0]?.id]);
    const [sums] = await ledger.report({ edges: [0, now + 7_200_000], by: [] });
    const groups = await ledger.report({ edges: [0, now + 7_200_000], by: ['model'] });
    expect(sums?.requests).to.equal(groups.reduce((sum, { requests }) => sum + requests, 0));
    await store.close();
  });

  it('G50: of schema 7 is refused while a process of that build has it open, and opens afterwards @slow', async () => {
    await writeSqliteFixture(folder, 'sqlite-schema-7.sql');
    const { DatabaseSync } = await importDriver();
    const other = new DatabaseSync(path.join(folder, FILE));
    // A prepared statement would keep the file open after the end of the connection.
    other.exec('SELECT count(*) FROM sums');
    const error = await openErrorOf(openSqlite({ folder }));
    expect(error.code).to.equal('store_unavailable');
    expect(error.message).to.match(/another process has it open: stop all processes of that version/);
    other.close();
    const stores = await Promise.all([openSqlite({ folder }), openSqlite({ folder })]);
    for (const store of stores) expect((await store.ledger.balance('ada')).balance).to.equal(ADA.balance);
    await Promise.all(stores.map((store) => store.close()));
  }).timeout(90_000);

  it('G50: of schema 4 does not start, is exported, and is imported with the same amounts in nano-dollars', async () => {
    await writeSqliteFixture(folder, 'sqlite-schema-4.sql');
    const before = await openSqlite({ folder });
    const error = await openErrorOf(before.begin?.() ?? Promise.resolve());
    expect(error.message).to.match(/run "tollgate store export <file>" on it/);
    expect((await openErrorOf(before.ledger.balance('ada'))).code).to.equal('store_unavailable');
    await before.close();

    const config = path.join(root, 'tollgate.config.json');
    const file = path.join(root, `export-${count}`);
    const run = async (command: typeof runExport, at: string) => {
      await writeFile(config, JSON.stringify({ store: `sqlite:${at}`, providers: { echo: {} } }));
      const { terminal, out } = captureTerminal();
      await command({ terminal, globals: { config, json: true }, args: [file], options: {} });
      return JSON.parse(out()).data as { sums: Record<string, string> };
    };
    const exported = await run(runExport, folder);
    expect(exported.sums['spent']).to.equal(String(ADA.spent + 300_000));
    expect(exported.sums['balance']).to.equal(exported.sums['entry_amount']);
    expect(await versionOf()).to.equal(4);
    const text = await readFile(file, 'utf8');
    expect(text).to.include(String.raw`\"budget\":5000000000`);
    expect(text).to.include(String.raw`\"amount\":7000000000`);

    const next = path.join(root, `imported-${count}`);
    await run(runImport, next);
    const after = await openSqlite({ folder: next });
    await checkBooks(after, 0);
    await after.close();
  }).timeout(90_000);
});
