import { definePlugin, type Store } from '../../../core/index.ts';
import { storeClosed } from '../kit/failure.ts';
import { createMemoryAtomic } from './atomic.ts';
import { createMemoryDocuments } from './documents.ts';

/** Opens a store that lives and ends with this process: for tests and for trying things out. */
export async function openMemory(): Promise<Store> {
  let closed = false;
  const isClosed = () => closed;
  return {
    kind: 'memory',
    endsWithProcess: true,
    keyv: createMemoryDocuments(isClosed),
    ...createMemoryAtomic(isClosed),
    health: async () => {
      if (closed) throw storeClosed();
    },
    close: async () => {
      closed = true;
    },
  };
}

export default definePlugin({
  name: 'memory',
  kind: 'store',
  apiVersion: 1,
  processes: 'one',
  configSchema: { type: 'object', additionalProperties: false, properties: {}, examples: ['memory:'] },
  setup(api) {
    api.store(openMemory);
  },
});
