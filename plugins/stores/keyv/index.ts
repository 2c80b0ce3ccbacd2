import type { KeyvStoreAdapter } from 'keyv';
import { definePlugin, type Log, type Store } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { createGuard, within } from '../kit/guard.ts';
import { createMemoryAtomic } from '../memory/atomic.ts';
import { type AdapterChoice, guardAdapter, importAdapter } from './adapter.ts';

export interface KeyvStoreOptions extends AdapterChoice {
  /** The longest an operation may take; 500 by default. */
  readonly timeoutMs?: number;
  readonly log?: Log;
}

const PROBE_MS = 2000;

const WARNING =
  'documents (keys, plans, memories) are in the Keyv adapter; balances, limits and indexes are in this process alone: run one process, and expect them to be gone after a restart';

/**
 * Opens a store whose documents are in any Keyv adapter, and whose atomic half is in this process, because no Keyv
 * adapter can do it. Says so in the log. Rejects when the adapter cannot be imported or made.
 */
export async function openKeyv(options: KeyvStoreOptions): Promise<Store> {
  const { timeoutMs = 500, log } = options;
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
    // Only silence says that the server is away; an error may be about one key.
    isOutage: () => false,
    log,
  });
  const failure = await guard.start();
  if (failure !== undefined) log?.warn({ store: 'keyv', err: failure }, 'the store does not answer yet');

  return {
    kind: 'keyv',
    keyv: createDocuments((namespace) => guardAdapter(open(), namespace, guard)),
    ...createMemoryAtomic(() => closed),
    health: async () => {
      await guard.run(() => probed.get('tollgate:probe'));
    },
    close: async () => {
      if (closed) return;
      closed = true;
      guard.close();
      await Promise.allSettled(adapters.map(async (adapter) => adapter.disconnect?.()));
    },
  };
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
        description: 'What the constructor of the adapter is given; a list is its arguments one by one.',
      },
    },
  },
  setup(api, { adapter, options }) {
    api.store(() => openKeyv({ adapter, options, baseDir: api.settings.baseDir, log: api.log }));
  },
});
