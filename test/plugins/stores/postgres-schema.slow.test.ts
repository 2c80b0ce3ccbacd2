import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import pg from 'pg';
import type { Store } from '../../../contract/index.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { pageStatement } from '../../../plugins/stores/postgres/ledger.ts';
import { VERSION } from '../../../plugins/stores/postgres/schema.ts';
import { FACTS, NOW } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { eventually } from '../../support/wait.ts';
import { expectEarlierRows } from './earlier-rows.ts';

/** Schema 6, with rows written by a gateway of that version. */
const SCHEMA_6 = readFileSync(new URL('../../fixtures/stores/postgres-schema-6.sql', import.meta.url), 'utf8');

const EARLIER =
  /^The postgres store was made by an earlier version of Tollgate \(schema [12345]\).*set store to a new database\. Nothing in it was changed\.$/;
interface PlanNode extends Readonly<Record<string, unknown>> {
  readonly Plans?: readonly PlanNode[];
}
interface PlanRoot {
  readonly Plan: PlanNode;
}
const flatten = (node: PlanNode): readonly PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];
const openErrorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error) => error);

describeWith('the schema of the postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());

  const query = async (text: string) => {
    const client = new pg.Pool({ connectionString: server.url, max: 1 });
    try {
      return (await client.query({ text })).rows;
    } finally {
      await client.end();
    }
  };
  /** Creates a schema of another version that contains money and lacks a function. */
  const leaveSchema = async (version: number): Promise<void> => {
    await query('DROP SCHEMA IF EXISTS tollgate CASCADE');
    const store = await openPostgres({ url: server.url });
    await store.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await store.close();
    await query('DROP FUNCTION tollgate.next');
    await query(`UPDATE tollgate.meta SET value = '${version}' WHERE name = 'version'`);
  };
  const readSchema = async () => [
    await query('SELECT * FROM tollgate.meta ORDER BY name'),
    await query('SELECT * FROM tollgate.accounts'),
    await query(
      `SELECT oid::int, xmin::text, relname FROM pg_class WHERE relnamespace = 'tollgate'::regnamespace ORDER BY oid`,
    ),
    await query(
      `SELECT oid::int, xmin::text, proname FROM pg_proc WHERE pronamespace = 'tollgate'::regnamespace ORDER BY oid`,
    ),
  ];

  for (const version of [1, 2, 3, 4, 5])
    it(`of version ${version}, which was not released, is refused with the remedy, also by gateways that start at the same time, and is not modified`, async () => {
      await leaveSchema(version);
      const before = await readSchema();
      const errors = await Promise.all([0, 1, 2].map(() => openErrorOf(openPostgres({ url: server.url }))));
      for (const error of errors) {
        expect(error.code).to.equal('store_unavailable');
        expect(error.message).to.match(EARLIER);
      }
      expect(await readSchema()).to.deep.equal(before);
    });
  it('of version 6 is migrated with its rows by gateways that start at the same time', async () => {
    await query(`DROP SCHEMA IF EXISTS tollgate CASCADE; ${SCHEMA_6}`);
    const stores = await Promise.all([0, 1, 2].map(() => openPostgres({ url: server.url, connections: 2 })));
    expect(await query("SELECT value FROM tollgate.meta WHERE name = 'version'")).to.deep.equal([
      { value: String(VERSION) },
    ]);
    await expectEarlierRows(stores[0] as Store);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('of version 6 still accepts changes by gateways of that version after its migration', async () => {
    await query(`DROP SCHEMA IF EXISTS tollgate CASCADE; ${SCHEMA_6}`);
    const store = await openPostgres({ url: server.url });
    const rows = [
      { id: 'account:eve', text: '{"balance":-7,"held":0,"spent":7,"credited":0,"last_entry":1,"updated_at":1}' },
    ];
    const entries = [{ account: 'eve', n: 1, kind: 'charge', ref: 'r', amount: -7, at: 1, reason: 'chat p/m' }];
    const call = {
      ...{ account: 'eve', ref: 'r', at: 1, counted_at: 1, name: 'eve', user_id: 'u', key: 'k', tags: '[]' },
      ...{ operation: 'chat', provider: 'p', model: 'm', request_id: 'r', outcome: 'ok' },
      ...{ sums: [1, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0], facts: '{"stream":false}' },
    };
    const changes = JSON.stringify({ rows, entries, calls: [call] });
    const [changed] = await query(
      `SELECT tollgate.change_ledger(9e15, '6', '{account:eve}', '{""}', 'v1', '${changes}') AS newer`,
    );
    expect(changed).to.deep.equal({ newer: null });
    expect((await store.ledger.balance('eve')).balance).to.equal(-7);
    expect((await store.ledger.entries('eve', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([-7]);
    const { calls } = await store.ledger.calls({ account: 'eve', limit: 10 });
    expect(calls.map(({ id, cost, stream }) => [id, cost, stream])).to.deep.equal([['r', 7, false]]);
    await store.close();
  });

  it('finds calls of before and after the migration by every value, and those of a gateway of schema 7', async () => {
    await query(`DROP SCHEMA IF EXISTS tollgate CASCADE; ${SCHEMA_6}`);
    const store = await openPostgres({ url: server.url });
    const { ledger } = store;
    const idsOf = async (filter: object) => (await ledger.calls({ ...filter, limit: 50 })).calls.map(({ id }) => id);
    const [earlier] = (await ledger.calls({ session: 's1', limit: 1 })).calls;
    expect(await idsOf({ model: earlier?.model, provider: earlier?.provider })).to.include('r1');
    // As after a day without gateways of schema 7.
    await query("UPDATE tollgate.meta SET value = '0' WHERE name = 'terms_from'");
    const now = Date.now();
    const facts = { ...FACTS, model: 'new', endUser: 'eve' };
    await ledger.reserve({
      account: 'eve',
      requestId: 'own',
      amount: 1,
      floor: -10,
      expiresAt: now + 60_000,
      facts,
      now,
    });
    await ledger.settle({ account: 'eve', requestId: 'own', amount: 1, facts, now });
    expect(await idsOf({ model: 'new', endUser: 'eve' })).to.deep.equal(['own']);
    const call = {
      ...{ account: 'eve', ref: 'of 7', at: now, counted_at: now, name: 'eve', user_id: 'u', key: 'k', tags: '[]' },
      ...{ operation: 'chat', provider: 'p', model: 'new', request_id: 'r', outcome: 'error' },
      ...{ sums: [1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0], facts: '{"errorCode":"odd"}' },
    };
    const ends = JSON.stringify({ entries: [], calls: [call], corrected: [], rollup: [] });
    await query(`SELECT tollgate.change_ledger(9e15, '7', '{}', '{}', 'v1', '[]', '${ends}', NULL)`);
    expect((await idsOf({ model: 'new' })).sort()).to.deep.equal(['of 7', 'own']);
    expect(await idsOf({ errorCode: 'odd' })).to.deep.equal(['of 7']);
    await store.close();
  });

  it('E27: reads a list of one account, user, key, session or request from its index, with any other filters', async () => {
    await query('DROP SCHEMA IF EXISTS tollgate CASCADE');
    const store = await openPostgres({ url: server.url });
    await query(`INSERT INTO tollgate.calls (account, ref, at, counted_at, name, user_id, key, tags, operation, provider, model, request_id,
        session, outcome, sums, facts) SELECT 'a' || i % 7, 'r' || i, i, i, 'a' || i % 7, 'u' || i % 7, 'k' || i % 7, '[]', 'chat',
        'p', 'm', 'q' || i % 7, 's' || i % 7, 'ok', array_fill(0::bigint, ARRAY[11]), '{}' FROM generate_series(1, 20000) AS i`);
    await query('ANALYZE tollgate.calls');
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    try {
      for (const [name, value, index] of [
        ['account', 'a', 'calls_of_account'],
        ['userId', 'u', 'calls_of_user'],
        ['key', 'k', 'calls_of_key'],
        ['session', 's', 'calls_of_session'],
        ['requestId', 'q', 'calls_of_request'],
        ['model', 'none', 'calls_at'],
      ] as const)
        for (const [own, read] of [
          ['of-missing', 0],
          [`${value}3`, 51],
        ] as const)
          for (const rest of [{}, { outcome: 'error' } as const]) {
            const { text, values } = pageStatement({ [name]: own, limit: 50, ...rest });
            const plan = await pool.query({ text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values: [...values] });
            const found = plan.rows.map((row) => (row['QUERY PLAN'] as readonly PlanRoot[])[0]?.Plan ?? {});
            const nodes = found.flatMap(flatten).filter((node) => node['Relation Name'] === 'calls');
            expect(
              nodes.map((node) => node['Index Name']),
              `${name} ${own}`,
            ).to.deep.equal([index === 'calls_at' && 'outcome' in rest ? 'calls_failed' : index]);
            const looked = Number(nodes[0]?.['Actual Rows']) + Number(nodes[0]?.['Rows Removed by Filter'] ?? 0);
            if (index === 'calls_at' || 'outcome' in rest) expect(looked).to.be.at.most(2000);
            else expect(looked).to.equal(read);
          }
    } finally {
      await pool.end();
      await store.close();
    }
  });

  it('of a newer version is refused with the remedy, and is not modified', async () => {
    await leaveSchema(99);
    const before = await readSchema();
    const error = await openErrorOf(openPostgres({ url: server.url }));
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect(await readSchema()).to.deep.equal(before);
  });

  it('of a newer version created by another gateway in the meantime is not modified by running ones', async () => {
    await query('DROP SCHEMA IF EXISTS tollgate CASCADE');
    const store = await openPostgres({ url: server.url });
    await store.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await query("UPDATE tollgate.meta SET value = '99' WHERE name = 'version'");
    const error = await openErrorOf(store.ledger.credit('a', 'second', 5, 'top-up', NOW));
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect((await store.ledger.balance('a')).balance).to.equal(5);
    await store.close();
  });

  it('is checked when a server responds that was unavailable at the start, and reported to the operator and callers', async () => {
    await leaveSchema(1);
    await server.kill();
    const log = createSilentLog();
    const store = await openPostgres({ url: server.url, log });
    await server.start();
    await eventually(async () => expect((await openErrorOf(store.ledger.balance('a'))).message).to.match(EARLIER));
    const reported = log.lines.filter(({ message }) => message === 'the store rejects this gateway');
    expect(reported.map(({ level }) => level)).to.deep.equal(['error']);
    await store.close();
  });

  it('is this version’s in a new database', async () => {
    await query('DROP SCHEMA IF EXISTS tollgate CASCADE');
    await (await openPostgres({ url: server.url })).close();
    expect(await query("SELECT value FROM tollgate.meta WHERE name = 'version'")).to.deep.equal([
      { value: String(VERSION) },
    ]);
  });
});
