import Keyv from 'keyv';
import type { Sets, Store } from '../../core/index.ts';

/** A store in this process, with what auth plugins use of one. */
export function openMiniStore(): Store {
  const namespaces = new Map<string, Keyv>();
  const sets = new Map<string, Set<string>>();
  const windows = new Map<string, { used: number; endsAt: number }>();
  const setOf = (name: string) => sets.get(name) ?? (sets.set(name, new Set()).get(name) as Set<string>);
  const absent = () => Promise.reject(new Error('this store has no such half'));

  const setsHalf: Sets = {
    async add(name, member, max = Infinity) {
      const set = setOf(name);
      if (set.has(member)) return 'present';
      if (set.size >= max) return 'full';
      set.add(member);
      return 'added';
    },
    remove: async (name, member) => setOf(name).delete(member),
    has: async (name, member) => setOf(name).has(member),
    list: async (name, { limit, after = '' }) =>
      [...setOf(name)]
        .sort()
        .filter((member) => member > after)
        .slice(0, limit),
    size: async (name) => setOf(name).size,
  };

  return {
    kind: 'mini',
    keyv<T>(namespace: string) {
      const keyv = namespaces.get(namespace) ?? new Keyv({ store: new Map(), throwOnErrors: true });
      namespaces.set(namespace, keyv);
      return keyv as Keyv<T>;
    },
    sets: setsHalf,
    counters: {
      async take([window], now) {
        if (!window) throw new Error('no window');
        const { key, limit, windowMs, amount } = window;
        const before = windows.get(key);
        const state = before && before.endsAt > now ? before : { used: 0, endsAt: now + windowMs };
        const refused = state.used + amount > limit ? 0 : undefined;
        if (refused === undefined) state.used += amount;
        windows.set(key, state);
        return { refused, states: [{ remaining: limit - state.used, resetMs: state.endsAt - now }] };
      },
      adjust: absent,
      lease: absent,
      release: absent,
      next: absent,
    },
    ledger: {
      purse: async () => ({ spent: 0, held: 0 }),
      reserve: absent,
      settle: absent,
      release: absent,
      credit: absent,
      balance: absent,
      entries: absent,
      usage: absent,
      sweep: absent,
    },
    health: async () => undefined,
    close: async () => undefined,
  };
}
