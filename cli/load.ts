import { closeSync, openSync } from 'node:fs';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import type { ConfigInput } from '../config/read.ts';
import { createGeneration, type Generation } from '../core/calls/generation.ts';
import { openFoundation } from '../core/plugins/foundation.ts';
import { setUpIsolated } from '../core/plugins/registry.ts';
import { connect } from '../egress/http-client.ts';
import type { CommandContext } from './io.ts';
import { createProgramLog } from './program-log.ts';

/** The configuration that a command works on. */
export function loadFor({ globals }: Pick<CommandContext, 'globals'>, place: Place = HERE): Promise<LoadedConfig> {
  return loadConfig({ connect, ...place, configPath: globals.config });
}

/** Where a command looks for its configuration. */
export type Place = Pick<ConfigInput, 'cwd' | 'env' | 'secrets'>;

export const HERE: Place = { cwd: process.cwd(), env: process.env };

/**
 * Runs work on a generation that never becomes ready: the configured store and plugins, without listening; a gateway may run
 * at the same time. Always closes.
 */
export async function withGeneration<T>(
  context: Pick<CommandContext, 'globals'>,
  work: (generation: Generation) => Promise<T>,
  place: Place = HERE,
): Promise<T> {
  const log = createProgramLog({
    level: 'warn',
    format: 'auto',
    isTerminal: process.stderr.isTTY === true,
    destination: process.stderr,
  });
  const loaded = await loadFor(context, place);
  const foundation = await openFoundation(loaded, log);
  try {
    const generation = await setUpIsolated(loaded, log, (each) => createGeneration(foundation, each));
    try {
      return await work(generation);
    } finally {
      await generation.close();
    }
  } finally {
    await foundation.close();
  }
}

/** The signals that may drain a gateway. */
export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** What a process that a signal ends at once exits with. */
export const EXIT_OF: Readonly<Record<StopSignal, number>> = Object.freeze({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 });

export interface SignalWork {
  /** A drain, or the end at once when there was one before. */
  stop(signal: StopSignal): void;
  reload(): void;
}

/**
 * Listens to signals: SIGTERM and SIGINT drain. SIGHUP reloads a service; in a terminal it means that this was closed, and drains.
 * Which of the two it is, is looked up now: a closed terminal is no longer a terminal.
 */
export function listenToSignals({ stop, reload }: SignalWork): void {
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  const isInTerminal = hasTerminal();
  process.on('SIGHUP', () => (isInTerminal ? stop('SIGHUP') : reload()));
}

/** Whether a terminal controls this process: only then `/dev/tty` can be opened. On Windows SIGHUP is a closed console. */
function hasTerminal(): boolean {
  if (process.platform === 'win32') return true;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

export function draining(signal: StopSignal): string {
  return `${signal}: draining; running answers finish first (send it again to stop at once)\n`;
}
