import { createLocalCounters, type Store } from '../../../core/index.ts';
import { storeClosed } from '../kit/failure.ts';

import { createMemoryLedger } from './ledger.ts';
import { createMemorySets } from './sets.ts';

/** The atomic half of a store in this process's memory; the `keyv` store uses it beside documents elsewhere. */
export function createMemoryAtomic(isClosed: () => boolean): Pick<Store, 'ledger' | 'sets' | 'counters'> {
  return {
    ledger: refuseClosed(createMemoryLedger(), isClosed),
    sets: refuseClosed(createMemorySets(), isClosed),
    counters: refuseClosed(createLocalCounters(), isClosed),
  };
}

/** The same methods, which reject with `store_unavailable` once the store is closed. */
function refuseClosed<T extends object>(half: T, isClosed: () => boolean): T {
  const guarded = Object.entries(half).map(([name, method]) => [
    name,
    (...args: unknown[]) =>
      isClosed() ? Promise.reject(storeClosed()) : (method as (...a: unknown[]) => unknown)(...args),
  ]);
  return Object.freeze(Object.fromEntries(guarded)) as T;
}
