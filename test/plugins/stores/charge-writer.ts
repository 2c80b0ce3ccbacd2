/** A process that charges accounts as fast as it can and reports every charge that was acknowledged, until it is killed. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NOW, reservation, settlement } from '../../conformance/store.ts';
import { openStore, type StoreAddress } from '../../support/stores/store-race.ts';

interface Order {
  readonly address: StoreAddress;
  readonly by: string;
  readonly account: string;
}

const { address, by, account } = JSON.parse(process.argv[2] ?? '') as Order;
const { ledger } = await openStore(address);
const floor = Number.NEGATIVE_INFINITY;

async function charge(requestId: string): Promise<void> {
  await ledger.reserve(reservation({ account, requestId, amount: 20, floor, expiresAt: NOW + 1 }));
  if (await ledger.settle(settlement({ account, requestId, amount: 10 }))) process.send?.({ id: requestId });
}

for (let n = 0; ; n++) {
  // Refused while the server is away.
  await Promise.allSettled([0, 1, 2].map((part) => charge(`${by}-${n}-${part}`)));
  await nextTurn();
}
