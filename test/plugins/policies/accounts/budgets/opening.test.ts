import { openMemory } from '../../../../../plugins/stores/memory/index.ts';
import { openSqlite } from '../../../../../plugins/stores/sqlite/index.ts';
import { useTempFolder } from '../../../../support/folders.ts';
import { checkOpenings } from './opening-property.ts';

/** `TOLLGATE_PROPERTY_CASES=100000` for many. */
const CASES = process.env['TOLLGATE_PROPERTY_CASES'] ? Number(process.env['TOLLGATE_PROPERTY_CASES']) : undefined;

const TITLE =
  'counts what its window has spent, once, on two nodes, with calls that run meanwhile, in zones of half and quarter hours';

describe('a budget created inside its window', () => {
  const folder = useTempFolder('opening');

  it(`${TITLE}: in memory`, async () => {
    const store = await openMemory();
    await checkOpenings([store, store], CASES ?? 20);
    await store.close();
  });

  it(`${TITLE}: on sqlite`, async () => {
    const [one, two] = [await openSqlite({ folder }), await openSqlite({ folder })];
    await checkOpenings([one, two], CASES ?? 12);
    await Promise.all([one.close(), two.close()]);
  });
});
