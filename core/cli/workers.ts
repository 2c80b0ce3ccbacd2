import cluster from 'node:cluster';
import os from 'node:os';
import type { ServerConfig } from '../config/types.ts';
import type { Log } from '../contract/log.ts';
import type { WorkerMessage } from '../plugins/gather.ts';
import type { LoadedConfig } from '../plugins/load-config.ts';
import { runCluster, WORKER_VARIABLE } from './cluster.ts';
import { CliError, EXIT, type Terminal } from './io.ts';

/** The signals that drain a gateway; SIGHUP (a closed terminal) does not reload: it would cut every stream. */
export const STOP_SIGNALS = Object.freeze(['SIGTERM', 'SIGINT', 'SIGHUP'] as const);

export type StopSignal = (typeof STOP_SIGNALS)[number];

/** What a process that a signal ends at once exits with. */
export const EXIT_OF: Readonly<Record<StopSignal, number>> = Object.freeze({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 });

/** After the drain's own deadline: how long a worker may take to close what it holds. */
const CLOSE_MS = 15_000;

/** Which worker of a gateway this process is, from 1; undefined when it is the only one. */
export function workerNumber(): number | undefined {
  const number = Number(process.env[WORKER_VARIABLE]);
  return cluster.isWorker && number > 0 ? number : undefined;
}

/** How many processes the configuration asks for; throws when its store would give each of them keys and limits of its own. */
export function countWorkers({
  config: { server, store },
  plugins: [plugin],
}: Pick<LoadedConfig, 'config' | 'plugins'>): number {
  const count = server.workers === 'auto' ? os.availableParallelism() : server.workers;
  if (count > 1 && plugin?.processes === 'one')
    throw new CliError(
      `server.workers is ${server.workers}, and the store "${store.plugin}" lives in one process: its workers would not see each other's keys, limits and balances`,
      EXIT.config,
      'Use a store that processes share (docs/stores.md), or one worker.',
    );
  return count;
}

/** Runs the primary process: workers on one port, until a signal has drained them all. Sets the exit code. */
export async function runWorkers(
  count: number,
  { drainDelayMs, drainTimeoutMs }: Pick<ServerConfig, 'drainDelayMs' | 'drainTimeoutMs'>,
  terminal: Terminal,
  log: Log,
): Promise<void> {
  const workers = runCluster({ count, log, drainMs: drainDelayMs + drainTimeoutMs + CLOSE_MS });
  let stopping: StopSignal | undefined;
  const stop = (signal: StopSignal): void => {
    if (stopping) {
      process.exitCode = EXIT_OF[signal];
      workers.stop();
      return;
    }
    stopping = signal;
    terminal.err.write(draining(signal));
    workers.drain();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, () => stop(signal));
  const code = await workers.finished;
  process.exitCode ??= code;
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

export function draining(signal: StopSignal): string {
  return `${signal}: draining; running answers finish first (send it again to stop at once)\n`;
}
