/**
 * Process that works on the ledger of a sqlite store: `node --import tsx ledger-worker.ts <{ folder } as JSON>`. It
 * runs one operation and returns the result, or makes calls in sequence, some concurrently, and reports each
 * acknowledgement.
 */
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { reservation, settlement } from '../../conformance/store.ts';

export type LedgerOrder =
  | { readonly do: 'reserve' | 'settle'; readonly account: string; readonly requestId: string; readonly amount: number }
  | { readonly do: 'calls'; readonly account: string; readonly by: string; readonly count: number };

/** State of a call of `calls`, reported immediately after the store acknowledged it. */
export interface Reported {
  readonly id: string;
  readonly state: 'held' | 'settled' | 'released';
}

const { folder } = JSON.parse(process.argv[2] ?? '') as { readonly folder: string };
const { ledger, close } = await openSqlite({ folder });

/** Calls settle at 7 of 10, are released, or stay open. */
async function call(account: string, id: string, n: number): Promise<void> {
  const tell = (state: Reported['state']) => process.send?.({ reported: { id, state } satisfies Reported });
  if ((await ledger.reserve(reservation({ account, requestId: id, amount: 10 }))).outcome !== 'held') return;
  tell('held');
  if (n % 5 === 0) return;
  if (n % 5 === 1) {
    if (await ledger.release(account, id)) tell('released');
  } else if (await ledger.settle(settlement({ account, requestId: id, amount: 7 }))) tell('settled');
}

async function obey(order: LedgerOrder): Promise<unknown> {
  if (order.do !== 'calls') {
    return order.do === 'reserve'
      ? (await ledger.reserve(reservation(order))).outcome
      : ledger.settle(settlement(order));
  }
  let next = 0;
  const { account, by, count } = order;
  const some = Array.from({ length: 8 }, async () => {
    while (next < count) {
      const n = next++;
      await call(account, `${by}-${n}`, n);
    }
  });
  await Promise.all(some);
  return count;
}

process.on('message', (order: LedgerOrder) => {
  obey(order).then(
    (response) => process.send?.({ response }),
    (error) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => {
  void close().then(() => process.exit(0));
});
process.send?.({ ready: true });
