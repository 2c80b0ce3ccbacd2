/**
 * A process of its own that works on the ledger of a sqlite store: `node --import tsx ledger-worker.ts <{ folder } as JSON>`.
 * It does one operation and answers it, or makes calls one after the other, some at once, and tells what is acknowledged.
 */
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { reservation, settlement } from '../../conformance/store.ts';

export type LedgerOrder =
  | { readonly do: 'reserve' | 'settle'; readonly account: string; readonly requestId: string; readonly amount: number }
  | { readonly do: 'calls'; readonly account: string; readonly by: string; readonly count: number };

/** What became of a call of `calls`, told at once: what was told has happened. */
export interface Told {
  readonly id: string;
  readonly state: 'held' | 'settled' | 'released';
}

const { folder } = JSON.parse(process.argv[2] ?? '') as { readonly folder: string };
const { ledger, close } = await openSqlite({ folder });

/** The calls settle at 7 of 10, or are released, or stay. */
async function call(account: string, id: string, n: number): Promise<void> {
  const tell = (state: Told['state']) => process.send?.({ told: { id, state } satisfies Told });
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
    (answer) => process.send?.({ answer }),
    (error) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => {
  void close().then(() => process.exit(0));
});
process.send?.({ ready: true });
