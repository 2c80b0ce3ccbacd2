/** Process that credits an account as fast as it can and reports every acknowledged credit until it is killed. */
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW } from '../../conformance/store.ts';

const { folder, by } = JSON.parse(process.argv[2] ?? '') as { readonly folder: string; readonly by: string };
const store = await openSqlite({ folder });
process.send?.({ ready: true });
for (let n = 0; ; n++) {
  await Promise.all(
    [0, 1, 2].map(async (part) => {
      const id = `${by}-${n}-${part}`;
      if (await store.ledger.credit('account', id, 1, 'test', NOW)) process.send?.({ id });
    }),
  );
}
