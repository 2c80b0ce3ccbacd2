import { expect } from 'chai';
import type { Store, Window } from '../../../contract/index.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import { startWorker } from '../../support/stores/worker-process.ts';

describe('counters of the sqlite store, between processes that start and end', () => {
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

  it('are the same for two that have the store open', async () => {
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

  it('go on after a restart', async () => {
    const first = await openStore();
    await take(first);
    await take(first);
    await first.close();
    expect(await take(await openStore())).to.equal(7);
  });

  it('are exact for a key of any length and content', async () => {
    const key = `ü\0${'x'.repeat(3000)}`;
    const first = await openStore();
    const taken = async (store: Store) => (await store.counters.take([{ ...window, key }], NOW)).states[0]?.remaining;
    await taken(first);
    const second = await openStore();
    expect([await taken(second), await taken(first)]).to.deep.equal([8, 7]);
  });

  it('go on after a process that counted was killed', async () => {
    const worker = await startWorker('store-worker.ts', { kind: 'sqlite', folder });
    const race = { race: 'calls in a window of ten', name: 'race', by: 'w', count: 4 } as const;
    expect(await worker.send({ ...race })).to.deep.equal({ got: 4 });
    const narrow = { ...window, key: 'race' };
    const store = await openStore();
    expect((await store.counters.take([narrow], NOW)).states[0]?.remaining).to.equal(5);
    await worker.kill();
    expect((await store.counters.take([narrow], NOW)).states[0]?.remaining).to.equal(4);
    await store.close();
    expect((await (await openStore()).counters.take([narrow], NOW)).states[0]?.remaining).to.equal(3);
  });

  it('keep the places of a process that was killed until their time is over', async () => {
    const worker = await startWorker('store-worker.ts', { kind: 'sqlite', folder });
    await worker.send({ race: 'leases of ten places', name: 'places', by: 'w', count: 10 });
    await worker.kill();
    const { counters } = await openStore();
    expect(await counters.lease('places', 'mine', 10, 60_000, NOW + 59_999)).to.equal(false);
    expect(await counters.lease('places', 'mine', 10, 60_000, NOW + 60_000)).to.equal(true);
  });

  it('admit exactly the limit while stores open and close concurrently', async () => {
    const LIMIT = 3000;
    const wide = { ...window, limit: LIMIT };
    let admitted = 0;
    let isFull = false;
    const neighbours = Array.from({ length: 3 }, async () => {
      while (!isFull) {
        const { counters, close } = await openSqlite({ folder });
        const calls = Math.random() < 0.5 ? 5 : 200;
        for (let call = 0; call < calls && !isFull; call++) {
          const taken = await Promise.all([0, 1, 2].map(() => counters.take([wide], NOW)));
          admitted += taken.filter(({ refused }) => refused === undefined).length;
          isFull ||= taken.some(({ refused }) => refused !== undefined);
        }
        await close();
      }
    });
    await Promise.all(neighbours);
    expect(admitted).to.equal(LIMIT);
  });
});
