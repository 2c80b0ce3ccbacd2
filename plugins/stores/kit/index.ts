/**
 * `tollgate/stores`: builds a store from an adapter for documents. A kit is a library for plugins, never a plugin
 * itself. @public
 */

import type { KeyvStoreAdapter } from 'keyv';
import type { Store, StoreWatcher } from '../../../contract/index.ts';
import { createMemoryAtomic } from '../memory/atomic.ts';
import { createDocuments } from './documents.ts';
import { misuse, storeClosed } from './failure.ts';
import { KEPT_OPTION, withStored } from './kept.ts';

export { KEPT_OPTION };

/** Documents of one namespace, as texts. */
export interface DocumentAdapter {
  /**
   * Returns the text of a key, or undefined if it does not exist. Must throw if the result is unknown, never return
   * undefined.
   */
  get(key: string): Promise<string | undefined>;
  /**
   * Stores a text under a key, for `ttlMs` if given. The text contains its expiry, so an adapter need not delete it.
   */
  set(key: string, text: string, ttlMs?: number): Promise<void>;
  /** Resolves with true if the key existed. */
  delete(key: string): Promise<boolean>;
}

/** Options of {@link openDocumentStore}. */
export interface DocumentStoreOptions {
  /** Store kind for logs and `/readyz`; never an address. */
  readonly kind: string;
  /** Opens a namespace. Called once per name. */
  readonly documents: (namespace: string) => DocumentAdapter;
  /** Resolves if documents can be read and written. */
  readonly health?: () => Promise<void>;
  /** Called once, at shutdown. */
  readonly close?: () => Promise<void>;
  /** Configured value of the option {@link KEPT_OPTION}. */
  readonly keepPerAccount?: string | number;
  readonly observe?: StoreWatcher | undefined;
}

/**
 * Opens a store whose documents are in any backend that can get, set and delete texts. Balances, limits and lists must
 * be atomic, so they are in this process's memory: they need a single process, and a restart loses them. A store that
 * persists them implements `Store` itself.
 */
export function openDocumentStore(options: DocumentStoreOptions): Store {
  const { kind, documents, health, close, keepPerAccount, observe } = options;
  let closing: Promise<void> | undefined;
  const isClosed = (): boolean => closing !== undefined;
  const keyv = createDocuments((namespace) => guardClosed(documents(namespace), namespace, isClosed), observe);
  const atomic = createMemoryAtomic(isClosed, observe);
  return {
    kind,
    ...atomic,
    ...withStored({ keyv, sets: atomic.sets }, keepPerAccount),
    async health() {
      if (isClosed()) throw storeClosed();
      await health?.();
    },
    close() {
      closing ??= (async () => close?.())();
      return closing;
    },
  };
}

/** Wraps an adapter for Keyv; it rejects operations after the store is closed. */
function guardClosed(inner: DocumentAdapter, namespace: string, isClosed: () => boolean): KeyvStoreAdapter {
  const run = async <T>(operation: () => Promise<T>): Promise<T> => {
    if (isClosed()) throw storeClosed();
    return operation();
  };
  const adapter: KeyvStoreAdapter = {
    opts: {},
    namespace,
    on: () => adapter,
    get: <Value>(key: string) => run(() => inner.get(key)) as Promise<Value | undefined>,
    set: (key, text: string, ttlMs) => run(() => inner.set(key, text, ttlMs)).then(() => true),
    delete: (key) => run(() => inner.delete(key)),
    clear: () => Promise.reject(misuse('Documents are deleted one by one.')),
  };
  return adapter;
}
