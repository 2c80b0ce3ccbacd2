import { openMemory } from '../../../../../plugins/stores/memory/index.ts';
import { openSqlite } from '../../../../../plugins/stores/sqlite/index.ts';
import { useTempFolder } from '../../../../support/folders.ts';
import { checkSpending } from './spending-property.ts';

const TITLE =
  'never passes a budget, and never stops short of one, on two nodes over changes of clocks, ends of months and leap days';

describe('spending in calendar windows', () => {
  const folder = useTempFolder('spending');

  it(`${TITLE}: in memory`, async () => {
    const store = await openMemory();
    await checkSpending([store, store], 150);
    await store.close();
  });

  it(`${TITLE}: on sqlite`, async () => {
    const [one, two] = [await openSqlite({ folder }), await openSqlite({ folder })];
    await checkSpending([one, two], 25);
    await Promise.all([one.close(), two.close()]);
  });
});
