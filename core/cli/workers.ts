import os from 'node:os';
import { mergeStates, ROUTING_TOPIC } from '../calls/routing/routing-states.ts';
import { writeRawConfig } from '../config/raw-text.ts';
import type { Log } from '../contract/log.ts';
import type { RoutingState } from '../contract/routing.ts';
import type { LoadedConfig } from '../plugins/load-config.ts';
import { WorkerCluster } from './cluster.ts';
import type { CommandContext } from './commands.ts';
import { CliError, EXIT } from './io.ts';
import { type Reloads, startReloads } from './reloads.ts';
import { draining, EXIT_OF, listenToSignals, type StopSignal } from './signals.ts';

/** After the drain's own deadline: how long a worker may take to close what it holds. */
const CLOSE_MS = 15_000;

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
  loaded: LoadedConfig,
  context: CommandContext,
  log: Log,
): Promise<void> {
  const { terminal } = context;
  const workers: WorkerCluster = new WorkerCluster({
    ...{ count, log, text: writeRawConfig(loaded.raw) },
    reloads: async () => (await reloads).control,
  });
  let { server } = loaded.config;
  let stopping: StopSignal | undefined;
  const reloads: Promise<Reloads> = startReloads(context, {
    ...{ loaded, log },
    async swap(next) {
      await workers.swap(writeRawConfig(next.raw));
      server = next.config.server;
    },
    note: (problem) => workers.note(problem),
    routing: async () => mergeStates((await workers.gather(ROUTING_TOPIC)) as readonly RoutingState[]),
  });
  listenToSignals({
    stop(signal) {
      if (stopping) {
        process.exitCode = EXIT_OF[signal];
        workers.stop();
        return;
      }
      stopping = signal;
      terminal.err.write(draining(signal));
      workers.drain(server.drainDelayMs + server.drainTimeoutMs + CLOSE_MS);
    },
    reload: () => void reloads.then(({ reload }) => reload()),
  });
  const code = await workers.finished;
  (await reloads).close();
  process.exitCode ??= code;
}
