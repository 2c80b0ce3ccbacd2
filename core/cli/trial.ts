import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createGeneration, type Generation } from '../calls/generation.ts';
import type { Log } from '../contract/log.ts';
import { createBodyBudget } from '../http/body-budget.ts';
import { InnerRequests } from '../http/inner-requests.ts';
import { Lifecycle } from '../http/lifecycle.ts';
import { serveGeneration } from '../http/serve.ts';
import { createAbsentStore } from '../plugins/absent-store.ts';
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
        budget: createBodyBudget(),
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
