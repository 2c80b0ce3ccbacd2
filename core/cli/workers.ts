import type { Worker } from 'node:cluster';
import cluster from 'node:cluster';
import os from 'node:os';
import type { ServerConfig } from '../config/core-schema.ts';
import type { Log } from '../contract/log.ts';
import { GATHER_MS, type WorkerMessage } from '../plugins/gather.ts';
import type { LoadedConfig } from '../plugins/load-config.ts';
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

interface ClusterOptions {
  readonly count: number;
  readonly log: Log;
  /** How long a worker may take to drain before it is killed. */
  readonly drainMs: number;
}

interface Cluster {
  /** Lets every worker finish its running answers. */
  drain(): void;
  /** Ends every worker at once. */
  stop(): void;
  /** The exit code, once all workers are gone: that of the first one when it could not start, else the worst. */
  readonly finished: Promise<number>;
}

/** How a worker is told its number. */
const WORKER_VARIABLE = 'TOLLGATE_WORKER';

/** A worker that dies sooner than this after its start makes the next one wait longer. */
const STEADY_MS = 5_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Runs `count` processes of this program on one port. The first starts alone: it makes what is made once (schema, first
 * key), prints the banner, and a configuration that cannot work ends the program here. One that dies later is replaced,
 * at a bounded rate.
 */
function runCluster({ count, log, drainMs }: ClusterOptions): Cluster {
  let stopping = false;
  let exitCode = 0;
  let quickDeaths = 0;
  let hasStarted = false;
  const workers = new Map<number, Worker>();
  const pauses = new Set<NodeJS.Timeout>();
  let resolveFinished: (code: number) => void = () => {};
  const finished = new Promise<number>((resolve) => {
    resolveFinished = resolve;
  });

  const start = (number: number): void => {
    const startedAt = performance.now();
    const worker = cluster.fork({ [WORKER_VARIABLE]: String(number) });
    workers.set(number, worker);
    worker.on('message', (message: WorkerMessage) => {
      if (message.tollgate === 'ready') onReady(number);
      if (message.tollgate === 'gather') void gather([...workers.values()], worker, message.id, message.topic);
    });
    worker.once('exit', (code, signal) => {
      workers.delete(number);
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- null when a signal ended it
      onExit(number, code ?? 1, signal, performance.now() - startedAt);
    });
  };

  const onReady = (number: number): void => {
    if (hasStarted) return;
    hasStarted = true;
    for (let other = 1; other <= count; other += 1) if (other !== number) start(other);
  };

  const onExit = (number: number, code: number, signal: string | null, livedMs: number): void => {
    if (stopping || !hasStarted) {
      exitCode = Math.max(exitCode, signal ? 1 : code);
      if (workers.size === 0) resolveFinished(exitCode);
      return;
    }
    quickDeaths = livedMs < STEADY_MS ? quickDeaths + 1 : 0;
    const pauseMs = quickDeaths === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (quickDeaths - 1), LONGEST_PAUSE_MS);
    log.error({ worker: number, code, signal, pause_ms: pauseMs }, 'a worker ended and is replaced');
    const pause = setTimeout(() => {
      pauses.delete(pause);
      start(number);
    }, pauseMs);
    pauses.add(pause);
  };

  const end = (how: 'drain' | 'stop'): void => {
    stopping = true;
    for (const pause of pauses) clearTimeout(pause);
    if (workers.size === 0) resolveFinished(exitCode);
    endWorkers(workers, how, how === 'stop' ? 1000 : drainMs);
  };

  start(1);
  return { drain: () => end('drain'), stop: () => end('stop'), finished };
}

/** Tells all workers to end, and kills those that are still there after `killMs`. */
function endWorkers(workers: ReadonlyMap<number, Worker>, how: 'drain' | 'stop', killMs: number): void {
  for (const worker of workers.values()) worker.send({ tollgate: how } satisfies WorkerMessage, () => {});
  const kill = () => {
    for (const worker of workers.values()) worker.process.kill('SIGKILL');
  };
  setTimeout(kill, killMs).unref();
}

/** Asks all workers, and sends what came in time to the one that wants to know. */
async function gather(workers: readonly Worker[], requester: Worker, id: number, topic: string): Promise<void> {
  const values = await Promise.all(workers.map((worker) => requestValue(worker, topic)));
  requester.send({ tollgate: 'gathered', id, values: values.filter((value) => value !== undefined) }, () => {});
}

let lastRequest = 0;

/** What one worker answers, or undefined when it does not in time. */
function requestValue(worker: Worker, topic: string): Promise<unknown> {
  lastRequest += 1;
  const id = lastRequest;
  return new Promise((resolve) => {
    const done = (value: unknown): void => {
      clearTimeout(timer);
      worker.off('message', listen);
      resolve(value);
    };
    const listen = (message: WorkerMessage): void => {
      if (message.tollgate === 'answer' && message.id === id) done(message.value);
    };
    const timer = setTimeout(done, GATHER_MS, undefined);
    worker.on('message', listen);
    worker.send({ tollgate: 'read', id, topic } satisfies WorkerMessage, () => {});
  });
}
