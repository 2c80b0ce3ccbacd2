/** `tollgate/stores`: what a store is made of whose documents are elsewhere. A kit is a library for plugins, never a plugin itself. @public */

import type { KeyvStoreAdapter } from 'keyv';
import type { Store, StoreWatcher } from '../../../contract/index.ts';
import { createMemoryAtomic } from '../memory/atomic.ts';
import { createDocuments } from './documents.ts';
import { misuse, storeClosed } from './failure.ts';
import { KEPT_OPTION, withKept } from './kept.ts';

export { KEPT_OPTION };

/** Where the documents of one namespace are kept, as texts. */
export interface DocumentAdapter {
  /** The text under a key; undefined when there is none. What cannot be known is a throw, never undefined. */
  get(key: string): Promise<string | undefined>;
  /** Keeps a text under a key, for `ttlMs` when it is given; a text says itself when it ends, so that an adapter need not delete it. */
  set(key: string, text: string, ttlMs?: number): Promise<void>;
  /** Resolves whether there was one. */
  delete(key: string): Promise<boolean>;
}

/** What {@link openDocumentStore} is given. */
export interface DocumentStoreOptions {
  /** A word for logs and `/readyz`; never an address. */
  readonly kind: string;
  /** Opens a namespace; once for each name. */
  readonly documents: (namespace: string) => DocumentAdapter;
  /** Resolves when the documents can be read and written. */
  readonly health?: () => Promise<void>;
  /** Called once, at the end. */
  readonly close?: () => Promise<void>;
  /** The option {@link KEPT_OPTION}, as it was configured. */
  readonly keepPerAccount?: string | number;
  readonly observe?: StoreWatcher | undefined;
}

/**
 * A store whose documents are in any place that can get, set and delete texts. Balances, limits and lists are in this process's memory,
 * for they must be atomic: one process, and they are gone after a restart. A store that keeps them writes the whole of `Store`.
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
    ...withKept({ keyv, sets: atomic.sets }, keepPerAccount),
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

/** An adapter as Keyv calls it, which refuses what comes after the end. */
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
