import { expect } from 'chai';
import type { Store, Window } from '../../../core/index.ts';
import { createCensus } from '../../../plugins/stores/sqlite/census.ts';
import { createSqliteCounters } from '../../../plugins/stores/sqlite/counters.ts';
import { openDatabase, openLock } from '../../../plugins/stores/sqlite/database.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { createPresence } from '../../../plugins/stores/sqlite/presence.ts';
import { createWriter } from '../../../plugins/stores/sqlite/writer.ts';
import { NOW } from '../../conformance/store.ts';
import { prepareRace } from '../../support/store-race.ts';
import { useTempFolder } from '../../support/temp-folder.ts';
import { startWorker } from '../../support/worker-process.ts';

describe('counters of the sqlite store, between processes that come and go', () => {
  const root = useTempFolder('sqlite-counters');
  let count = 0;
  let folder: string;
  const open: Store[] = [];
  const openStore = async (): Promise<Store> => {
    const store = await openSqlite({ folder });
    open.push(store);
    return store;
  };
  beforeEach(() => {
    folder = `${root}/store-${count++}`;
  });
  afterEach(() => Promise.all(open.splice(0).map((store) => store.close())));

  const window: Window = { key: 'w', limit: 10, windowMs: 60_000, amount: 1 };
  const take = async (store: Store): Promise<number | undefined> =>
    (await store.counters.take([window], NOW)).states[0]?.remaining;
  const storedWindows = async (): Promise<number> => {
    const database = await openDatabase({ folder });
    const rows = database.prepare('SELECT count(*) AS count FROM windows').get()?.['count'];
    database.close();
    return Number(rows);
  };

  it('write nothing while one is alone', async () => {
    const store = await openStore();
    expect([await take(store), await take(store)]).to.deep.equal([9, 8]);
    expect(await storedWindows()).to.equal(0);
  });

  it('go on from where the first one is when a second one counts, and on both from then', async () => {
    const first = await openStore();
    for (let n = 0; n < 3; n++) await take(first);
    await first.counters.lease('l', 'first', 2, 60_000, NOW);
    const second = await openStore();
    expect(await take(second)).to.equal(6);
    expect(await take(first)).to.equal(5);
    expect(await second.counters.lease('l', 'second', 2, 60_000, NOW)).to.equal(true);
    expect(await first.counters.lease('l', 'third', 2, 60_000, NOW)).to.equal(false);
    await first.counters.release('l', 'first');
    expect(await second.counters.lease('l', 'third', 2, 60_000, NOW)).to.equal(true);
  });

  it('stay with the first one while a second one only reads and writes other things', async () => {
    const first = await openStore();
    await take(first);
    const second = await openStore();
    await second.sets.add('s', 'member');
    await second.counters.next('n');
    expect(await storedWindows()).to.equal(0);
    expect(await take(first)).to.equal(8);
  });

  it('go on after a restart', async () => {
    const first = await openStore();
    await take(first);
    await take(first);
    await first.close();
    expect(await take(await openStore())).to.equal(7);
  });

  it('are exact for a key of any length and content, wherever they are counted', async () => {
    const key = `ü\0${'x'.repeat(3000)}`;
    const first = await openStore();
    const taken = async (store: Store) => (await store.counters.take([{ ...window, key }], NOW)).states[0]?.remaining;
    await taken(first);
    const second = await openStore();
    expect([await taken(second), await taken(first)]).to.deep.equal([8, 7]);
  });

  it('come back to a process whose neighbour was killed', async function () {
    this.timeout(60_000);
    const worker = await startWorker('store-worker.ts', { kind: 'sqlite', folder });
    const race = { race: 'calls in a window of ten', name: 'race', by: 'w', count: 4 } as const;
    expect(await worker.ask({ ...race })).to.deep.equal({ got: 4 });
    const store = await openStore();
    await prepareRace(store, race.race, race.name);
    const narrow = { ...window, key: 'race' };
    // The first count here makes the neighbour share; then it dies without a word, and its locks with it.
    expect((await store.counters.take([narrow], NOW)).states[0]?.remaining).to.equal(5);
    await worker.kill();
    expect((await store.counters.take([narrow], NOW)).states[0]?.remaining).to.equal(4);
    await store.close();
    const next = await openStore();
    expect((await next.counters.take([narrow], NOW)).states[0]?.remaining).to.equal(3);
    expect(await storedWindows()).to.equal(0);
  });

  it('start afresh when a process that was alone is killed: its calls are gone too', async function () {
    this.timeout(60_000);
    const worker = await startWorker('store-worker.ts', { kind: 'sqlite', folder });
    await worker.ask({ race: 'leases of ten places', name: 'places', by: 'w', count: 10 });
    await worker.kill();
    const store = await openStore();
    expect(await store.counters.lease('places', 'mine', 10, 60_000, NOW)).to.equal(true);
  });

  it('lose and invent no call while they move, however often', async function () {
    this.timeout(60_000);
    // Comes back to being alone every few milliseconds, so that counts meet every kind of move.
    const openRestless = async () => {
      const database = await openDatabase({ folder });
      const writer = createWriter(database);
      const presence = createPresence(writer, async () => createCensus(await openLock(folder), database), 15);
      const counters = createSqliteCounters(database, writer, presence);
      const close = async () => {
        await presence.close();
        await writer.close();
        presence.leave();
        database.close();
      };
      return { counters, close };
    };
    const LIMIT = 3000;
    const wide = { ...window, limit: LIMIT };
    let admitted = 0;
    let isFull = false;
    const neighbours = Array.from({ length: 3 }, async (_, n) => {
      while (!isFull) {
        const { counters, close } = await openRestless();
        const calls = Math.random() < 0.5 ? 5 : 200;
        for (let call = 0; call < calls && !isFull; call++) {
          const taken = await Promise.all([0, 1, 2].map(() => counters.take([wide], NOW)));
          admitted += taken.filter(({ refused }) => refused === undefined).length;
          isFull ||= taken.some(({ refused }) => refused !== undefined);
          if (n === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await close();
      }
    });
    await Promise.all(neighbours);
    expect(admitted).to.equal(LIMIT);
  });
});
