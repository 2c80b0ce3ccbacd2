import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { KeyvStoreAdapter } from 'keyv';
import { definePlugin, type Log, type Store, type StoreWatcher } from '../../../contract/index.ts';
import { storeKey } from '../kit/check.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeUnavailable } from '../kit/failure.ts';
import { createGuard, type Guard, within } from '../kit/guard.ts';
import { KEPT_OPTION, withStored } from '../kit/kept.ts';
import { watchWrites } from '../kit/write-watch.ts';
import { createMemoryAtomic } from '../memory/atomic.ts';

interface KeyvStoreOptions extends AdapterChoice {
  /** Maximum duration of an operation; 500 by default. */
  readonly timeoutMs?: number;
  readonly log?: Log;
  readonly keepPerAccount?: string | number;
}

const PROBE_MS = 2000;

const WARNING =
  'documents (keys, plans, memories) are in the Keyv adapter; balances, limits and indexes are only in this process. Run one process; a restart loses them';

/**
 * Opens a store with documents in any Keyv adapter. Its atomic half is in this process, because no Keyv adapter
 * supports it; a log warning says so. Rejects if the adapter cannot be imported or created.
 */
export async function openKeyv(options: KeyvStoreOptions, observe?: StoreWatcher): Promise<Store> {
  const { timeoutMs = 500, log, keepPerAccount } = options;
  const makeAdapter = await importAdapter(options);
  log?.warn({ store: 'keyv' }, WARNING);

  const adapters: KeyvStoreAdapter[] = [];
  const open = (): KeyvStoreAdapter => {
    const adapter = makeAdapter();
    adapters.push(adapter);
    return adapter;
  };
  const probed = open();
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- not every adapter is an event emitter
  probed.on?.('error', () => undefined);
  let closed = false;
  const guard = createGuard({
    kind: 'keyv',
    timeoutMs,
    probe: async () => {
      await within(PROBE_MS, Promise.resolve(probed.get('tollgate:probe')));
    },
    // Only a missing response means an outage; an error may concern a single key.
    isOutage: () => false,
    log,
  });
  const failure = await guard.start();
  if (failure !== undefined) log?.warn({ store: 'keyv', err: failure }, 'the store does not respond yet');

  const writes = watchWrites(log);
  const { onFailure } = writes;
  const keyv = createDocuments((namespace) => guardAdapter(open(), namespace, guard), observe, onFailure);
  const atomic = createMemoryAtomic(() => closed, observe, onFailure);
  return writes.over({
    kind: 'keyv',
    ...atomic,
    ...withStored({ keyv, sets: atomic.sets }, keepPerAccount),
    health: async () => {
      await guard.run(() => probed.get('tollgate:probe'));
    },
    close: async () => {
      if (closed) return;
      closed = true;
      guard.close();
      await Promise.allSettled(adapters.map(async (adapter) => adapter.disconnect?.()));
    },
  });
}

export default definePlugin({
  name: 'keyv',
  kind: 'store',
  apiVersion: 1,
  processes: 'one',
  configSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['adapter'],
    properties: {
      adapter: {
        type: 'string',
        minLength: 1,
        description: 'A Keyv adapter from npm, such as @keyv/mongo, or a path.',
      },
      options: {
        secret: true,
        description: 'Argument of the adapter’s constructor; a list is its separate arguments.',
      },
      keepPerAccount: KEPT_OPTION,
    },
  },
  setup(api, { adapter, options, keepPerAccount }) {
    const { baseDir } = api.settings;
    api.store((observe) => openKeyv({ adapter, options, baseDir, log: api.log, keepPerAccount }, observe));
  },
});

interface AdapterChoice {
  /** Package name, or absolute path of a module, whose default export is a Keyv adapter class. */
  readonly adapter: string;
  /** Constructor argument; a list is spread into several arguments. */
  readonly options?: unknown;
  /** Folder from which the package is resolved. */
  readonly baseDir: string;
}

type AdapterClass = new (...args: unknown[]) => KeyvStoreAdapter;

/**
 * Imports the module of an adapter; returns a function that creates adapters. Throws if the module has no adapter
 * class.
 */
async function importAdapter({ adapter, options, baseDir }: AdapterChoice): Promise<() => KeyvStoreAdapter> {
  const Adapter = await importClass(adapter, baseDir);
  if (!Adapter) throw storeUnavailable(`The module of the store's Keyv adapter has no class as its default export.`);
  const args = Array.isArray(options) ? options : options === undefined ? [] : [options];
  return () => {
    const made = new Adapter(...args);
    if (typeof made.get !== 'function' || typeof made.set !== 'function' || typeof made.delete !== 'function') {
      throw storeUnavailable(`The module of the store's Keyv adapter creates an object without get, set and delete.`);
    }
    return made;
  };
}

async function importClass(adapter: string, baseDir: string): Promise<AdapterClass | undefined> {
  let module: { readonly default?: unknown };
  try {
    const file = path.isAbsolute(adapter) ? adapter : createRequire(path.join(baseDir, 'tollgate.js')).resolve(adapter);
    module = await import(pathToFileURL(file).href);
  } catch (cause) {
    throw storeUnavailable(
      `The Keyv adapter of the store cannot be imported. Install it with npm in the folder of the configuration, or correct its name.`,
      cause,
    );
  }
  // A CommonJS module is imported as `default`, which contains its own default export.
  const found = [module.default, (module.default as { readonly default?: unknown } | undefined)?.default];
  return found.find((value): value is AdapterClass => typeof value === 'function');
}

/**
 * Wraps an adapter for one namespace. Keys include the namespace, because not every adapter separates namespaces. Every
 * operation has a time limit. An operation fails if the adapter emits an error while it reports a key as absent, as
 * many do during an outage.
 */
function guardAdapter(inner: KeyvStoreAdapter, namespace: string, guard: Guard): KeyvStoreAdapter {
  let errors = 0;
  inner.namespace = namespace;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- not every adapter is an event emitter
  inner.on?.('error', () => {
    errors += 1;
  });
  const keyOf = (key: string): string => `${namespace}:${storeKey(key)}`;
  const run = <T>(operation: () => Promise<T> | T): Promise<T> =>
    guard.run(async () => {
      const before = errors;
      const result = await operation();
      if (errors !== before && !result) throw storeUnavailable('The store of the Keyv adapter reported an error.');
      return result;
    });
  const adapter: KeyvStoreAdapter = {
    opts: {},
    namespace,
    on: () => adapter,
    get: <Value>(key: string) => run(() => inner.get<Value>(keyOf(key))),
    set: (key, value: string, ttlMs) => run(async () => (await inner.set(keyOf(key), value, ttlMs)) ?? true),
    delete: (key) => run(() => inner.delete(keyOf(key))),
    clear: async () => {
      throw storeUnavailable('A Keyv adapter cannot clear one namespace: many clear others with it.');
    },
  };
  return adapter;
}
