import { expect } from 'chai';
import type { CallFacts, CallPage, CallQuery, Ledger } from '../../../contract/index.ts';
import { type CallsSql, prepareCalls, type RecordReads } from '../../../plugins/stores/sqlite/calls-sql.ts';
import type { Database, Statement } from '../../../plugins/stores/sqlite/driver.ts';
import { closeDatabase, openDatabase } from '../../../plugins/stores/sqlite/index.ts';
import { openCallsTables } from '../../../plugins/stores/sqlite/journal.ts';
import { createCallReads, openSqliteLedger } from '../../../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../../../plugins/stores/sqlite/writer.ts';
import { FACTS, NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

const CALLS = 60_000;

/** Calls of five keys; the three oldest belong to another key. */
function callOf(n: number): CallFacts {
  if (n < 3)
    return {
      ...{ ...FACTS, userId: 'rare', key: 'rare', session: 'rare', requestId: 'rare', model: 'rare' },
      ...{ tags: ['team=rare'], provider: 'rare', operation: 'rare', outcome: 'refused', errorCode: 'rare' },
      ...{ attempts: [{ target: 'a/b', status: 418, ms: 1 }], requested: 'rare', endUser: 'rare' },
      ...{ address: '192.0.2.7', durationMs: 90_000 },
    };
  return {
    ...FACTS,
    userId: `u${n % 5}`,
    key: `k${n % 5}`,
    session: `s${n % 100}`,
    requestId: `req_${n}`,
    outcome: n % 500 === 0 ? 'error' : 'ok',
    ...(n % 500 === 0 && { attempts: [{ target: 'a/b', status: 429, ms: 1 }] }),
    ...{ endUser: `person-${n % 50}`, address: `10.1.0.${n % 250}` },
  };
}

describe('lists and reports of a sqlite store with many calls', () => {
  const folder = useTempFolder('sqlite-lists');
  let database: Database;
  let ledger: Pick<Ledger, 'calls' | 'report'>;
  /** Limits of records that each statement may scan. */
  let looked: number[] = [];

  before(async () => {
    database = await openDatabase({ folder });
    const writer = new Writer(database, 'tollgate.db');
    const { journal } = openSqliteLedger(database, writer);
    await writer.write('test', () => {
      for (let n = 0; n < CALLS; n++) {
        const facts = callOf(n);
        const keys = { account: facts.userId, name: facts.userId, kind: 'charge', ref: `call_${n}` } as const;
        journal.add(keys, undefined, { facts, cost: n < 3 ? 9000 : 1, at: NOW + n, countedAt: NOW + n });
      }
    });
    await journal.close();
    ledger = createCallReads(openCallsTables(counted(prepareCalls(database))), writer, journal);
  });
  after(() => closeDatabase(database));
  beforeEach(() => {
    looked = [];
  });

  function counted(sql: CallsSql): CallsSql {
    const count = (reads: RecordReads): RecordReads => ({ ...reads, page: countPage(reads.page) });
    const { all, failed, account, userId, key, session, requestId } = sql.reads;
    const reads = {
      ...{ all: count(all), failed: count(failed), account: count(account), userId: count(userId) },
      ...{ key: count(key), session: count(session), requestId: count(requestId) },
    };
    return { ...sql, reads };
  }
  function countPage(page: Statement): Statement {
    return {
      run: (...values) => page.run(...values),
      get: (...values) => page.get(...values),
      all: (...values) => {
        looked.push(Number(values[4]));
        return page.all(...values);
      },
    };
  }
  const idsOf = ({ calls }: CallPage) => calls.map(({ id }) => id);
  /** Number of event loop turns during the work. */
  const turnsDuring = async (work: Promise<unknown>): Promise<number> => {
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await work;
    isDone = true;
    return turns;
  };

  for (const filter of [
    { account: 'rare' },
    { userId: 'rare' },
    { key: 'rare' },
    { session: 'rare' },
    { requestId: 'rare' },
    { account: 'rare', key: 'rare' },
  ])
    it(`E27: reads no call of others for ${JSON.stringify(filter)}`, async () => {
      const page = await ledger.calls({ ...filter, limit: 50 });
      expect(idsOf(page)).to.deep.equal(['call_2', 'call_1', 'call_0']);
      expect(page.next).to.equal(undefined);
      expect(looked).to.have.length(1);
    });

  for (const filter of [
    ...[{ model: 'rare' }, { tag: 'team=rare' }, { provider: 'rare' }, { operation: 'rare' }, { outcome: 'refused' }],
    ...[{ errorCode: 'rare' }, { status: 418 }, { requested: 'rare' }, { endUser: 'rare' }],
    ...[{ address: '192.0.2.7' }, { address: '192.0.2.0/23' }, { minCost: 5000 }, { minDurationMs: 60_000 }],
    ...[
      { model: 'rare', endUser: 'rare' },
      { key: 'rare', status: 418 },
      { userId: 'rare', errorCode: 'rare' },
    ],
  ] as const)
    it(`the first page has the oldest calls that alone have ${JSON.stringify(filter)}`, async () => {
      const page = await ledger.calls({ ...filter, limit: 50 });
      expect(idsOf(page)).to.deep.equal(['call_2', 'call_1', 'call_0']);
      expect(page.next).to.equal(undefined);
    });

  it('the first page of a value that no call has is the whole list', async () => {
    for (const filter of [{ model: 'none' }, { errorCode: 'none' }, { endUser: 'none', model: 'echo-1' }])
      expect(await ledger.calls({ ...filter, limit: 50 })).to.deep.equal({ calls: [] });
  });

  it('the pages of a frequent value have each call once, newest first', async () => {
    const ids: string[] = [];
    for (let query: CallQuery | undefined = { status: 429, limit: 50 }; query; ) {
      const page: CallPage = await ledger.calls(query);
      ids.push(...idsOf(page));
      query = page.next === undefined ? undefined : { ...query, after: page.next };
    }
    expect(ids).to.deep.equal(Array.from({ length: 119 }, (_, n) => `call_${CALLS - 500 * (n + 1)}`));
  });

  it('E27: a page reads a limited number of calls without an index, and its cursor continues after them', async () => {
    const page = await ledger.calls({ search: 'rare', limit: 50 });
    expect(page.calls).to.deep.equal([]);
    expect(page.next).to.be.a('string');
    expect(looked.reduce((sum, each) => sum + each)).to.be.at.most(2000);
  });

  it('E27: the pages of a filter without an index have each call once, and the loop turns before each', async () => {
    const ids: string[] = [];
    let pages = 0;
    const readAll = async (): Promise<void> => {
      for (let query: CallQuery | undefined = { search: 'rare', limit: 50 }; query; pages++) {
        const page: CallPage = await ledger.calls(query);
        ids.push(...idsOf(page));
        query = page.next === undefined ? undefined : { ...query, after: page.next };
      }
    };
    const turns = await turnsDuring(readAll());
    expect(ids).to.deep.equal(['call_2', 'call_1', 'call_0']);
    expect(pages).to.be.at.least(CALLS / 2000);
    expect(turns).to.be.at.least(pages);
  });

  it('E27: five reports at once leave the loop to others between their pieces', async () => {
    const query = { edges: [NOW, NOW + CALLS], by: ['session'] as const };
    let reports: Awaited<ReturnType<Ledger['report']>>[] = [];
    const work = Promise.all(Array.from({ length: 5 }, () => ledger.report(query)));
    const turns = await turnsDuring(
      work.then((found) => {
        reports = found;
      }),
    );
    for (const rows of reports) {
      expect(rows).to.have.length(101);
      expect(rows.reduce((sum, { requests }) => sum + requests, 0)).to.equal(CALLS);
    }
    expect(turns).to.be.at.least(5);
  });

  it('E27: a report of one session reads only that session', async () => {
    const [row] = await ledger.report({ edges: [NOW, NOW + CALLS], by: ['user'], session: 'rare' });
    expect([row?.user, row?.requests, row?.cost]).to.deep.equal(['rare', 3, 27_000n]);
  });

  it('E27: each list and report of an index searches it, and sorts only its results', () => {
    const prepared: string[] = [];
    prepareCalls({
      ...{ exec: () => undefined, close: () => undefined },
      prepare: (text) => {
        prepared.push(text);
        return database.prepare(text);
      },
    });
    const plans = (mark: string) =>
      prepared
        .filter((text) => text.includes(mark))
        .map((text) => database.prepare(`EXPLAIN QUERY PLAN ${text}`).all())
        .map((plan) => plan.map((row) => String(row['detail'])).join('\n'));
    // Both ends of the range are found by a search: pages, parts and pieces, in that order, with the search for an end.
    const [before, part, between, behind] = [
      'at>? AND (at,n)<(?,?)',
      'at>? AND at<?',
      '(at,n)>(?,?) AND (at,n)<(?,?)',
      '(at,n)>(?,?) AND at<?',
    ];
    const ends = [before, part, before, between, between, behind];
    const failed = plans('INDEXED BY calls_failed');
    const all = plans('?1 IS NULL').slice(0, ends.length);
    for (const [n, end] of ends.entries()) {
      expect(all[n]).to.include(`SEARCH c USING PRIMARY KEY (${end})`);
      expect(failed[n]).to.include(`INDEX calls_failed (${end})`);
    }
    for (const column of ['account', 'user', 'key', 'session', 'request']) {
      const own = plans(`INDEXED BY calls_${column}`);
      expect(own).to.have.length(ends.length);
      for (const [n, end] of ends.entries())
        expect(own[n]).to.include(`INDEX calls_${column} (${column}=? AND ${end})`);
    }
    const [hours, end] = plans('FROM rollup\n').concat(plans('FROM rollup WHERE (hour'));
    expect(hours).to.include('SEARCH rollup USING PRIMARY KEY ((hour,group_id)>(?,?) AND hour<?)');
    expect(end).to.include('SEARCH rollup USING PRIMARY KEY ((hour,group_id)>(?,?) AND (hour,group_id)<(?,?))');
  });
});
