import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import Keyv from 'keyv';
import type { LoadedConfig } from '../config/load-config.ts';
import { createConfigError, formatProblem } from '../config/problems.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/plugin.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import type { AccountDocuments, Counters, Ledger, Sets, Store } from '../contract/store.ts';
import { createGeneration, type Generation } from '../core/calls/generation.ts';
import { InnerRequests } from '../core/http/inner-requests.ts';
import { Lifecycle } from '../core/http/lifecycle.ts';
import { createMemory } from '../core/http/memory.ts';
import { serveGeneration } from '../core/http/serve.ts';
import { PluginState } from '../core/plugins/foundation.ts';
import { createLocalGatherer } from '../core/plugins/gather.ts';
import { setUpIsolated } from '../core/plugins/registry.ts';
import { openEgress } from '../egress/egress.ts';
import { endingModels } from '../models/model-ends.ts';
import { countWorkers } from './cluster/cluster.ts';
import { quietLog } from './program-log.ts';
import { networkWarnings } from './warnings.ts';

/**
 * Checks a loaded configuration as `tollgate config check` does; resolves with its warnings. Rejects with any problem that
 * would stop a start. Opens and calls nothing.
 */
export async function inspectConfig(loaded: LoadedConfig): Promise<readonly string[]> {
  const { config, raw } = loaded;
  const found: ProblemAt[] = [...networkWarnings(config)];
  await trySetUp(loaded, quietLog(), ({ catalog, modelProblems, registry, loaded: { omitted = [] } }) => {
    const left = omitted.map(({ instance: { pointer }, reason }) => ({
      pointer,
      atKey: true,
      message: `is optional and cannot be set up, so the gateway starts without it: ${reason}`,
    }));
    const unknown = registry.unknownMembers.map(({ owner, message }) => ({
      pointer: config.instances.find(({ name }) => name === owner)?.pointer ?? '',
      atKey: true,
      message,
    }));
    found.push(...endingModels(loaded, catalog), ...modelProblems.list(), ...left, ...unknown);
  });
  return createConfigError(found, raw).problems.map(formatProblem);
}

/**
 * Sets a configuration up as a start does, and closes it again. Opens no store, data folder or port, and plugins do not
 * become ready. Rejects with any problem that would stop a start; `look` gets the generation.
 */
export async function trySetUp(
  loaded: LoadedConfig,
  log: Log,
  look: (generation: Generation) => void = () => undefined,
): Promise<void> {
  countWorkers(loaded);
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'tollgate-check-'));
  const egress = openEgress(log);
  const foundation = {
    egress,
    log,
    state: new PluginState(),
    gatherer: createLocalGatherer(),
    storeWatch: { watchers: [] },
    store: createAbsentStore(loaded.config.store.plugin),
    close: () => egress.upstream.close(),
  };
  try {
    const settings = Object.freeze({ ...loaded.settings, dataDir });
    await setUpIsolated({ ...loaded, settings }, log, async (each) => {
      const generation = await createGeneration(foundation, each);
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
    });
  } finally {
    await foundation.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/**
 * Store for a configuration that is only inspected: plugins can be set up with it, but every use fails with an error.
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
    stored: () => refuseAll<AccountDocuments>(),
    health: refuse,
    close: () => Promise.resolve(),
  };
}

function refuse(): Promise<never> {
  return Promise.reject(
    new GatewayError('store_unavailable', 'The configuration is only checked; the store is not open.'),
  );
}

function refuseAll<T extends object>(): T {
  return new Proxy({} as T, { get: () => refuse });
}
