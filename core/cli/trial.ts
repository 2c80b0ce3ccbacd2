import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import Keyv from 'keyv';
import { createGeneration, type Generation } from '../calls/generation.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Ledger } from '../contract/ledger.ts';
import type { Log } from '../contract/log.ts';
import type { Counters, Sets, Store } from '../contract/store.ts';
import { InnerRequests } from '../http/inner-requests.ts';
import { Lifecycle } from '../http/lifecycle.ts';
import { createMemory } from '../http/memory.ts';
import { serveGeneration } from '../http/serve.ts';
import { createLocalGatherer } from '../plugins/gather.ts';
import { Kept } from '../plugins/kept.ts';
import type { LoadedConfig } from '../plugins/load-config.ts';
import { createUpstream } from '../upstream/upstream.ts';
import { countWorkers } from './workers.ts';

/**
 * Sets a configuration up as a start does, and closes it again: without its store, its data folder, a port, or anything that
 * plugins begin when they are ready. Rejects with what a start would refuse; `look` sees what was set up.
 */
export async function trySetUp(
  loaded: LoadedConfig,
  log: Log,
  look: (generation: Generation) => void = () => undefined,
): Promise<void> {
  countWorkers(loaded);
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tollgate-check-'));
  const upstream = createUpstream({ log });
  const foundation = {
    ...{ upstream, log, kept: new Kept(), gatherer: createLocalGatherer(), storeWatch: { watchers: [] } },
    store: createAbsentStore(loaded.config.store.plugin),
    close: () => upstream.close(),
  };
  try {
    const settings = Object.freeze({ ...loaded.settings, dataDir });
    const generation = await createGeneration(foundation, { ...loaded, settings });
    try {
      serveGeneration(generation, {
        lifecycle: new Lifecycle(),
        memory: createMemory(),
        inner: new InnerRequests(),
        countAdmin: () => Promise.resolve(),
      });
      look(generation);
    } finally {
      await generation.close();
    }
  } finally {
    await foundation.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/**
 * Stands where a store would, for a configuration that is only looked at: plugins are set up with it, and whatever asks it is told
 * that there is none.
 */
function createAbsentStore(kind: string): Store {
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
