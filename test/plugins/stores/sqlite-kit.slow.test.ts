import path from 'node:path';
import { expect } from 'chai';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { testStore } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import { startWorker } from '../../support/stores/worker-process.ts';

describe('sqlite store, with a process that is killed', () => {
  const folder = useTempFolder('sqlite-kit');
  testStore({
    ...{ name: 'sqlite with full durability', keeps: true, shared: true },
    open: () => openSqlite({ folder: path.join(folder, 'full'), durability: 'full' }),
  });
  testStore({
    ...{ name: 'sqlite', keeps: true, shared: true },
    open: () => openSqlite({ folder: path.join(folder, 'plain') }),
    module: new URL(
      `../../fixtures/stores/open-sqlite.ts?folder=${encodeURIComponent(path.join(folder, 'plain'))}`,
      import.meta.url,
    ),
  });
});

describe('the file of the sqlite store', () => {
  const root = useTempFolder('sqlite-starters');

  it('is made once when four processes start at the same time', async () => {
    const address = { kind: 'sqlite', folder: path.join(root, 'store') } as const;
    const race = { race: 'leases of ten places', name: 'starters', count: 5 } as const;
    const workers = await Promise.all([0, 1, 2, 3].map(() => startWorker('store-worker.ts', address)));
    const got = await Promise.all(workers.map((worker, n) => worker.send<{ got: number }>({ ...race, by: `w${n}` })));
    expect(got.reduce((sum, response) => sum + response.got, 0)).to.equal(10);
    await Promise.all(workers.map((worker) => worker.stop()));
  });
});
