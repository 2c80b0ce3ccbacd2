import Keyv from 'keyv';
import { GatewayError } from '../contract/errors.ts';
import type { Ledger } from '../contract/ledger.ts';
import type { Counters, Sets, Store } from '../contract/store.ts';

/**
 * Stands where a store would, for a configuration that is only looked at: plugins are set up with it, and whatever asks it is told
 * that there is none.
 */
export function createAbsentStore(kind: string): Store {
  const documents = new Map<string, Keyv>();
  return {
    kind,
    keyv<T>(namespace: string) {
      const known = documents.get(namespace) ?? new Keyv({ namespace });
      documents.set(namespace, known);
      return known as Keyv<T>;
    },
    ledger: refuseAll<Ledger>(),
    sets: refuseAll<Sets>(),
    counters: refuseAll<Counters>(),
    health: refuse,
    close: () => Promise.resolve(),
  };
}

function refuse(): Promise<never> {
  return Promise.reject(new GatewayError('store_unavailable', 'The configuration is only checked: no store is open.'));
}

function refuseAll<T extends object>(): T {
  return new Proxy({} as T, { get: () => refuse });
}
