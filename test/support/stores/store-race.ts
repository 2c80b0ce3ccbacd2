import type { Store } from '../../../contract/index.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW, reservation, settlement } from '../../conformance/store.ts';

/** Address of the store that a test and its worker processes open. */
export type StoreAddress =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly folder: string }
  | { readonly kind: 'redis' | 'postgres'; readonly url: string };

export function openStore(address: StoreAddress): Promise<Store> {
  // The timeout is long: these tests are about exactness, on machines that are busy with other tests.
  if (address.kind === 'sqlite') return openSqlite({ folder: address.folder });
  if (address.kind === 'redis') return openRedis({ url: address.url, timeoutMs: 5000 });
  if (address.kind === 'postgres') return openPostgres({ url: address.url, timeoutMs: 5000, connections: 8 });
  return openMemory();
}

/**
 * Operations for many concurrent callers; `by` names the caller. Each returns true if the caller got one of the limited
 * places.
 */
export const RACES = Object.freeze({
  'reservations of one balance': async (store: Store, name: string, by: string) =>
    (await store.ledger.reserve(reservation({ account: name, requestId: by }))).outcome === 'held',
  'reservations within one budget': async (store: Store, name: string, by: string) => {
    const budgets = [{ id: `${name}-key`, limit: 100 }];
    const floor = Number.NEGATIVE_INFINITY;
    return (
      (await store.ledger.reserve(reservation({ account: name, requestId: by, floor, budgets }))).outcome === 'held'
    );
  },
  'reservations of five accounts within one budget': async (store: Store, name: string, by: string) => {
    const budgets = [
      { id: `${name}-wide`, limit: 1000 },
      { id: `${name}-team`, limit: 100 },
    ];
    const n = Number(by.split('-').at(-1));
    const account = `${name}-${n % 5}`;
    const floor = Number.NEGATIVE_INFINITY;
    // Both orders, because locks in different orders can cause deadlocks.
    const ordered = n % 2 ? budgets : [...budgets].reverse();
    const request = reservation({ account, requestId: by, floor, budgets: ordered });
    return (await store.ledger.reserve(request)).outcome === 'held';
  },
  'settlements of ten requests': async (store: Store, name: string, by: string) =>
    store.ledger.settle(settlement({ account: name, requestId: `shared-${Number(by.split('-').at(-1)) % 10}` })),
  'additions to a set of ten': async (store: Store, name: string, by: string) =>
    (await store.sets.add(name, by, 10)) === 'added',
  'calls in a window of ten': async (store: Store, name: string, by: string) => {
    const wide = { key: `${name}-wide`, limit: 1000, windowMs: 60_000, amount: 1 };
    const narrow = { key: name, limit: 10, windowMs: 60_000, amount: 1 };
    // Both orders, because locks in different orders can cause deadlocks.
    const windows = Number(by.split('-').at(-1)) % 2 ? [wide, narrow] : [narrow, wide];
    return (await store.counters.take(windows, NOW)).refused === undefined;
  },
  'leases of ten places': (store: Store, name: string, by: string) => store.counters.lease(name, by, 10, 60_000, NOW),
});

export type Race = keyof typeof RACES;

/** Prepares a race: money for ten, or ten reservations. */
export async function prepareRace(store: Store, race: Race, name: string): Promise<void> {
  await store.ledger.credit(name, 'first', 100, 'top-up', NOW);
  if (race !== 'settlements of ten requests') return;
  for (let n = 0; n < 10; n++) await store.ledger.reserve(reservation({ account: name, requestId: `shared-${n}` }));
}

/** Runs `count` callers concurrently; returns the number of successful ones. */
export async function runRace(store: Store, race: Race, name: string, by: string, count: number): Promise<number> {
  const got = await Promise.all(Array.from({ length: count }, (_, n) => RACES[race](store, name, `${by}-${n}`)));
  return got.filter(Boolean).length;
}
