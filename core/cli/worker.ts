import cluster from 'node:cluster';
import type { Gateway } from '../app.ts';
import { parseRawConfig } from '../config/raw-text.ts';
import type { ReloadControl, ReloadReport } from '../config/reload-report.ts';
import type { PreparedGeneration } from '../http/live-generation.ts';
import { tell, type WorkerMessage } from '../plugins/gather.ts';
import { type LoadedConfig, loadConfig } from '../plugins/load-config.ts';
import { describeError } from './failure.ts';
import { EXIT_OF } from './signals.ts';

/** How a worker is told its number. */
export const WORKER_VARIABLE = 'TOLLGATE_WORKER';

/** Which worker of a gateway this process is, from 1; undefined when it is the only one. */
export function workerNumber(): number | undefined {
  const number = Number(process.env[WORKER_VARIABLE]);
  return cluster.isWorker && number > 0 ? number : undefined;
}

/** The configuration as the primary has it: a worker that replaces another starts with what its fellows run on. */
export function requestConfiguration(): Promise<LoadedConfig> {
  return new Promise((resolve) => {
    const listen = (message: WorkerMessage): void => {
      if (message.tollgate !== 'configuration') return;
      process.off('message', listen);
      resolve(loadConfig({ raw: parseRawConfig(message.text) }));
    };
    process.on('message', listen);
    tell({ tollgate: 'configure' });
  });
}

/** In a worker: the primary reads the configuration for all of them, and replies. */
export function primaryReloads(): ReloadControl {
  let lastId = 0;
  const request = (cause: string | undefined): Promise<ReloadReport> =>
    new Promise((resolve) => {
      lastId += 1;
      const id = lastId;
      const listen = (message: WorkerMessage): void => {
        if (message.tollgate !== 'reloaded' || message.id !== id) return;
        process.off('message', listen);
        resolve(message.report);
      };
      process.on('message', listen);
      tell({ tollgate: 'reload', id, ...(cause !== undefined && { cause }) });
    });
  return { reload: (cause) => request(cause), compare: () => request(undefined) };
}

/** In a worker: drains when the primary says so or is gone. Signals to the whole group are the primary's to answer. */
export function onPrimary(drain: () => void): void {
  let isDraining = false;
  const once = (): void => {
    if (isDraining) return;
    isDraining = true;
    drain();
  };
  // Else Node ends a worker at once when the primary is gone.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});
  process.on('SIGTERM', once);
  process.on('disconnect', once);
  process.on('message', (message: WorkerMessage) => {
    if (message.tollgate === 'drain') once();
    if (message.tollgate === 'stop') process.exit(EXIT_OF.SIGTERM);
  });
}

/** In a worker: builds what the primary sends, and takes it over when the primary says that all could. */
export function reloadWithPrimary(gateway: Pick<Gateway, 'prepare' | 'noteReload'>): void {
  const prepared = new Map<number, PreparedGeneration>();
  process.on('message', async (message: WorkerMessage) => {
    if (message.tollgate === 'note') gateway.noteReload(message.problem);
    if (message.tollgate === 'commit' || message.tollgate === 'abandon') {
      const generation = prepared.get(message.id);
      prepared.delete(message.id);
      if (message.tollgate === 'commit') generation?.commit();
      else await generation?.abandon();
    }
    if (message.tollgate !== 'prepare') return;
    const { id, text } = message;
    try {
      prepared.set(id, await gateway.prepare(await loadConfig({ raw: parseRawConfig(text) })));
      tell({ tollgate: 'prepared', id });
    } catch (error) {
      tell({ tollgate: 'prepared', id, problem: describeError(error).join('\n') });
    }
  });
}
