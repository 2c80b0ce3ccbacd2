import { expect } from 'chai';
import pg from 'pg';
import type { Ledger, Log, Store } from '../../../contract/index.ts';
import { JournalMover } from '../../../plugins/stores/kit/journal-mover.ts';
import { connect as connectPostgres } from '../../../plugins/stores/postgres/connection.ts';
import { MOVE_LOCK } from '../../../plugins/stores/postgres/functions.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import * as postgres from '../../../plugins/stores/postgres/ledger.ts';
import { createKeys } from '../../../plugins/stores/redis/calls.ts';
import { connect as connectRedis } from '../../../plugins/stores/redis/connection.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { createJournal } from '../../../plugins/stores/redis/journal.ts';
import { createRedisLedger, RedisLedgerRows } from '../../../plugins/stores/redis/ledger.ts';
import { FACTS, NOW, reservation, settlement } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../../support/stores/redis-server.ts';
import { eventually } from '../../support/wait.ts';

/** Mover without a timer: its rows stay until the next read, like the rows of a killed process. */
class StillMover extends JournalMover {
  override moveLater(): void {
    // Only reads move rows.
  }
}

/** Store on a server, with access to its journal. */
interface Subject {
  readonly kind: string;
  start(): Promise<TestServer>;
  /** Deletes all data of the store. */
  empty(): Promise<void>;
  open(log?: Log): Promise<Store>;
  /** Opens the ledger of a separate process that moves rows only when it reads. */
  openStill(): Promise<{ readonly ledger: Ledger; close(): Promise<void> }>;
  /** Number of rows in the journal, and of damaged rows. */
  rows(): Promise<readonly [journal: number, damaged: number]>;
  /** Changes the second row of the journal. */
  damage(how: (typeof DAMAGES)[number]): Promise<unknown>;
}

const DAMAGES = ['cut off', 'changed in one digit', 'of another form'] as const;

function testJournal(subject: Subject): void {
  const open: { close(): Promise<void> }[] = [];
  let server: TestServer;
  before(async () => {
    server = await subject.start();
  });
  beforeEach(() => subject.empty());
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
  });
  after(() => server?.close());

  const openStore = async (log?: Log): Promise<Store> => {
    const store = await subject.open(log);
    open.push(store);
    return store;
  };
  const openStill = async (): Promise<Ledger> => {
    const still = await subject.openStill();
    open.push(still);
    return still.ledger;
  };
  /** Makes a call that costs 10. */
  const call = async (ledger: Ledger, requestId: string, account = 'a'): Promise<void> => {
    await ledger.reserve(reservation({ account, requestId, amount: 20, floor: Number.NEGATIVE_INFINITY }));
    await ledger.settle(settlement({ account, requestId, amount: 10 }));
  };
  /** Asserts that books, records, reports and sums of an account contain this number of calls, each once. */
  const check = async (ledger: Ledger, calls: number, account = 'a'): Promise<void> => {
    expect(await ledger.balance(account)).to.include({ balance: -10 * calls, held: 0, spent: 10 * calls });
    const entries = await ledger.entries(account, { limit: 1000 });
    expect(entries.map(({ id }) => Number(id))).to.deep.equal(Array.from({ length: calls }, (_, n) => calls - n));
    const page = await ledger.calls({ account, limit: 1000 });
    expect(new Set(page.calls.map(({ id }) => id)).size).to.equal(calls);
    expect(page.calls).to.have.length(calls);
    const [row] = await ledger.report({ edges: [NOW - 1, NOW + 1], by: [], account });
    expect([row?.requests, row?.cost]).to.deep.equal([calls, BigInt(10 * calls)]);
    expect(await subject.rows()).to.deep.equal([0, 0]);
  };

  it('has one row for the ends of all calls of a commit, and reads see them at once', async () => {
    const ledger = await openStill();
    await Promise.all(['r1', 'r2', 'r3'].map((id) => call(ledger, id)));
    expect(await subject.rows()).to.deep.equal([1, 0]);
    await check(ledger, 3);
  });

  it('is moved soon without a read', async () => {
    const { ledger } = await openStore();
    await call(ledger, 'r1');
    await eventually(async () => expect(await subject.rows()).to.deep.equal([0, 0]));
    await check(ledger, 1);
  });

  it('of a process that was killed before the move is moved by the next process, each call once', async () => {
    const first = await openStill();
    for (const id of ['r1', 'r2']) await call(first, id);
    expect(await subject.rows()).to.deep.equal([2, 0]);
    const { ledger } = await openStore();
    await check(ledger, 2);
    for (const requestId of ['r1', 'r2']) {
      expect(await ledger.settle(settlement({ account: 'a', requestId }))).to.equal(false);
      expect(await ledger.reserve(reservation({ account: 'a', requestId }))).to.deep.equal({ outcome: 'duplicate' });
    }
    expect(await ledger.sweep(NOW + 10 ** 9)).to.equal(0);
    await check(ledger, 2);
  });

  it('of two processes is moved by the one that reads first, each call once', async () => {
    const [one, other] = [await openStore(), await openStill()];
    for (let round = 0; round < 5; round += 1)
      await Promise.all([
        call(one.ledger, `a${round}`),
        call(other, `b${round}`),
        one.ledger.calls({ limit: 5 }),
        other.report({ edges: [NOW - 1, NOW + 1], by: [] }),
        other.entries('a', { limit: 3 }),
      ]);
    await check(one.ledger, 10);
    await check(other, 10);
  });

  it('is read completely, whatever its length', async () => {
    const ledger = await openStill();
    for (let n = 0; n < 120; n += 1) await call(ledger, `r${n}`);
    await Promise.all(Array.from({ length: 180 }, (_, n) => call(ledger, `s${n}`)));
    await check(ledger, 300);
  });

  it('also accepts a correction of a call whose first record is in the journal', async () => {
    const ledger = await openStill();
    await ledger.reserve(reservation({ account: 'a', requestId: 'late', amount: 20, floor: -100, expiresAt: NOW - 1 }));
    expect(await ledger.sweep(NOW)).to.equal(1);
    expect(await ledger.settle(settlement({ account: 'a', requestId: 'late', amount: 10 }))).to.equal(true);
    expect(await subject.rows()).to.deep.equal([2, 0]);
    const { calls } = await ledger.calls({ limit: 10 });
    expect(calls.map(({ cost, outcome }) => [cost, outcome])).to.deep.equal([[10, 'ok']]);
    const [row] = await ledger.report({ edges: [NOW - 1, NOW + 1], by: [] });
    expect([row?.requests, row?.cost]).to.deep.equal([1, 10n]);
    expect((await ledger.entries('a', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([10, -20]);
  });

  it('has records that are deleted with the others, and their sums stay', async () => {
    const ledger = await openStill();
    await ledger.reserve(reservation({ account: 'a', requestId: 'late', amount: 20, floor: -100, expiresAt: NOW - 1 }));
    await ledger.sweep(NOW);
    await call(ledger, 'r1');
    const hour = 3_600_000;
    expect(await ledger.forgetCalls(NOW + 2 * hour)).to.equal(2);
    // A correction of a deleted record changes only the sums.
    await ledger.settle(settlement({ account: 'a', requestId: 'late', amount: 5 }));
    expect((await ledger.calls({ limit: 10 })).calls).to.deep.equal([]);
    const [row] = await ledger.report({ edges: [NOW - hour, NOW + 4 * hour], by: [] });
    expect([row?.requests, row?.cost]).to.deep.equal([2, 15n]);
  });

  it('preserves records as they were written, whatever their texts are', async () => {
    const ledger = await openStill();
    const odd = 'a "quoted" \\ \u2028 text, 🦄, \t and \u0001';
    const facts = { ...FACTS, userId: odd, session: odd, tags: [odd], attempts: [{ target: odd, ms: 3, reason: odd }] };
    await ledger.reserve(reservation({ account: odd, requestId: odd, floor: Number.NEGATIVE_INFINITY }));
    await ledger.settle(settlement({ account: odd, requestId: odd, facts }));
    const { calls } = await ledger.calls({ session: odd, limit: 10 });
    expect(calls).to.have.length(1);
    expect(calls[0]).to.deep.include({ ...facts, account: odd, id: odd, cost: 10, at: NOW, countedAt: NOW });
    expect((await ledger.entries(odd, { limit: 10 })).map(({ ref }) => ref)).to.deep.equal([odd]);
  });

  it('is part of the export', async () => {
    const ledger = await openStill();
    await call(ledger, 'r1');
    const store = await openStore();
    const rows: string[] = [];
    for await (const { is } of store.transfer?.().read() ?? []) rows.push(is);
    expect(rows).to.include.members(['entry', 'call', 'hour', 'account', 'request']);
  });

  for (const how of DAMAGES)
    it(`moves a row that is ${how} to the damaged ones, reports it, and moves the others`, async () => {
      const first = await openStill();
      for (const id of ['r1', 'r2', 'r3']) await call(first, id);
      await subject.damage(how);
      const log = createSilentLog();
      const store = await openStore(log);
      const { calls } = await store.ledger.calls({ limit: 10 });
      expect(calls.map(({ id }) => id).sort()).to.deep.equal(['r1', 'r3']);
      // Money does not depend on the journal.
      expect(await store.ledger.balance('a')).to.include({ balance: -30, held: 0, spent: 30 });
      expect((await store.ledger.entries('a', { limit: 10 })).map(({ id }) => Number(id))).to.deep.equal([3, 1]);
      expect(await store.ledger.reserve(reservation({ account: 'a', requestId: 'r2' }))).to.deep.equal({
        outcome: 'duplicate',
      });
      expect(await subject.rows()).to.deep.equal([0, 1]);
      const reported = log.lines.filter(({ message }) =>
        message.includes(`journal of the ${subject.kind} store are damaged`),
      );
      expect(reported.map(({ level }) => level)).to.deep.equal(['error']);
      const error = await store.health().catch((reason) => reason);
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(/has 1 damaged journal rows.*balances are right/);
    });
}

describeWith('the journal of the redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  const keys = createKeys('tollgate');
  const numberOf = async (key: string): Promise<number> =>
    Number((await sendToRedis(server.port, 'LLEN', key)).slice(1));
  const change = (script: string) =>
    sendToRedis(
      server.port,
      'EVAL',
      `local row = redis.call('LINDEX', KEYS[1], 1) redis.call('LSET', KEYS[1], 1, ${script})`,
      '1',
      keys.journal,
    );

  testJournal({
    kind: 'redis',
    start: async () => (server = await startRedisServer()),
    empty: async () => void (await sendToRedis(server.port, 'FLUSHALL')),
    open: (log) => openRedis({ url: server.url, timeoutMs: 5000, ...(log && { log }) }),
    openStill: async () => {
      const options = { url: server.url, cluster: false, prefix: 'tollgate', timeoutMs: 5000 };
      const connection = await connectRedis(options);
      const mover = new StillMover(createJournal(connection, keys, 1000), undefined);
      return {
        ledger: createRedisLedger(connection, new RedisLedgerRows(connection, { ...options, journal: mover })),
        close: () => connection.close(),
      };
    },
    rows: async () => [await numberOf(keys.journal), await numberOf(keys.damagedJournal)],
    damage: (how) => {
      if (how === 'cut off') return change('string.sub(row, 1, 90)');
      if (how === 'of another form') return change(`string.char(0, 255)`);
      return change(`(string.gsub(row, '-10', '-90'))`);
    },
  });

  it('moves a row whose key is of another kind to the damaged ones, and continues', async () => {
    const store = await openRedis({ url: server.url, timeoutMs: 5000 });
    await sendToRedis(server.port, 'SET', 'tollgate:{ledger}:entries:odd', 'no list');
    for (const account of ['odd', 'even']) {
      await store.ledger.reserve(reservation({ account, requestId: 'r', floor: -100 }));
      await store.ledger.settle(settlement({ account, requestId: 'r' }));
    }
    expect((await store.ledger.entries('even', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([-10]);
    expect(await numberOf(keys.damagedJournal)).to.equal(1);
    await store.close();
  });
});

describeWith('the journal of the postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  const query = async (text: string) => {
    const client = new pg.Pool({ connectionString: server.url, max: 1 });
    try {
      return (await client.query({ text })).rows;
    } finally {
      await client.end();
    }
  };
  const second = 'WHERE n = (SELECT n FROM tollgate.journal ORDER BY n OFFSET 1 LIMIT 1)';
  const openStill = async () => {
    const connection = await connectPostgres({ url: server.url, connections: 4, timeoutMs: 5000 });
    const mover = new StillMover(postgres.createJournal(connection), undefined);
    return { ledger: postgres.createPostgresLedger(connection, 5000, mover), close: () => connection.close() };
  };

  testJournal({
    kind: 'postgres',
    start: async () => (server = await startPostgresServer()),
    empty: async () => void (await query('DROP SCHEMA IF EXISTS tollgate CASCADE')),
    open: (log) => openPostgres({ url: server.url, connections: 4, timeoutMs: 5000, ...(log && { log }) }),
    openStill,
    rows: async () => {
      const [found] = await query(
        'SELECT (SELECT count(*) FROM tollgate.journal) AS rows, (SELECT count(*) FROM tollgate.damaged_journal) AS damaged',
      );
      return [Number(found?.['rows']), Number(found?.['damaged'])];
    },
    damage: (how) => {
      if (how === 'cut off') return query(`UPDATE tollgate.journal SET data = left(data, 90) ${second}`);
      if (how === 'changed in one digit')
        return query(`UPDATE tollgate.journal SET data = replace(data, '-10', '-90') ${second}`);
      return query(`UPDATE tollgate.journal SET data = 'no JSON', checksum = sha256('no JSON') ${second}`);
    },
  });

  it('loses no row of a transaction that is committed while later ones are moved', async () => {
    const { ledger, close } = await openStill();
    const client = new pg.Pool({ connectionString: server.url, max: 1 });
    const run = async (text: string) => (await client.query({ text })).rows;
    const data = JSON.stringify({
      entries: [{ account: 'early', n: 1, kind: 'credit', ref: 'c', amount: 5, reason: '', at: 1 }],
    });
    await run(`BEGIN; INSERT INTO tollgate.journal (checksum, data) VALUES (sha256('${data}'), '${data}')`);
    await ledger.credit('a', 'c', 5, 'top-up', NOW);
    expect(await ledger.entries('a', { limit: 10 })).to.have.length(1);
    await run('COMMIT');
    expect(await ledger.entries('early', { limit: 10 })).to.have.length(1);
    await client.end();
    await close();
  });

  it('is moved by one process at a time: a reader waits for the other one, and commits do not', async () => {
    const { ledger, close } = await openStill();
    const client = new pg.Pool({ connectionString: server.url, max: 1 });
    const run = async (text: string) => (await client.query({ text })).rows;
    await ledger.credit('a', 'c', 5, 'top-up', NOW);
    // Another process is in the middle of its move.
    await run(`BEGIN; SELECT pg_advisory_xact_lock(${MOVE_LOCK})`);
    let isRead = false;
    const read = ledger.entries('a', { limit: 10 }).finally(() => {
      isRead = true;
    });
    expect(await ledger.credit('a', 'd', 5, 'top-up', NOW)).to.equal(true);
    expect(isRead).to.equal(false);
    await run('COMMIT');
    expect(await read).to.have.length(2);
    await client.end();
    await close();
  });
});
