import { createLocalCounters, type Sets, type Store, type StoreWatcher } from '../../../core/index.ts';
import { checkMember, pageLimit } from '../kit/check.ts';
import { storeClosed } from '../kit/failure.ts';
import { timeOperations } from '../kit/timed.ts';
import { createMemoryLedger } from './ledger.ts';

/** The atomic half of a store in this process's memory; the `keyv` store uses it beside documents elsewhere. */
export function createMemoryAtomic(
  isClosed: () => boolean,
  observe?: StoreWatcher,
): Pick<Store, 'ledger' | 'sets' | 'counters'> {
  return {
    ledger: timeOperations(refuseClosed(createMemoryLedger(), isClosed), 'ledger', observe),
    sets: timeOperations(refuseClosed(createMemorySets(), isClosed), 'sets', observe),
    counters: timeOperations(refuseClosed(createLocalCounters(), isClosed), 'counters', observe),
  };
}

/** The same methods, which reject with `store_unavailable` once the store is closed. */
function refuseClosed<T extends object>(half: T, isClosed: () => boolean): T {
  const guarded = Object.entries(half).map(([name, method]) => [
    name,
    (...args: unknown[]) =>
      isClosed() ? Promise.reject(storeClosed()) : (method as (...a: unknown[]) => unknown)(...args),
  ]);
  return Object.fromEntries(guarded) as T;
}

/** Sets in this process's memory. */
function createMemorySets(): Sets {
  const sets = new Map<string, Set<string>>();

  const add = (name: string, member: string, max = Number.POSITIVE_INFINITY): 'added' | 'present' | 'full' => {
    checkMember(member);
    const set = sets.get(name) ?? new Set<string>();
    if (set.has(member)) return 'present';
    if (set.size >= max) return 'full';
    sets.set(name, set.add(member));
    return 'added';
  };

  const remove = (name: string, member: string): boolean => {
    const set = sets.get(name);
    const removed = set?.delete(member) ?? false;
    if (set?.size === 0) sets.delete(name);
    return removed;
  };

  return {
    add: async (name, member, max) => add(name, member, max),
    remove: async (name, member) => remove(name, member),
    has: async (name, member) => sets.get(name)?.has(member) ?? false,
    list: async (name, { limit, after }) => {
      const members = [...(sets.get(name) ?? [])].sort(byBytes);
      const rest = after === undefined ? members : members.filter((member) => byBytes(member, after) > 0);
      return rest.slice(0, pageLimit(limit));
    },
    size: async (name) => sets.get(name)?.size ?? 0,
  };
}

/** Ascending order of UTF-8 bytes, which is what SQLite, Redis and Postgres (collation "C") sort by. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
