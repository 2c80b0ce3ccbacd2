import { closeSync, openSync } from 'node:fs';
import type { Logger } from 'pino';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import type { ConfigInput } from '../config/read.ts';
import { createGeneration, type Generation } from '../core/calls/generation.ts';
import { openFoundation } from '../core/plugins/foundation.ts';
import { setUpIsolated } from '../core/plugins/registry.ts';
import { connect } from '../egress/http-client.ts';
import type { CommandContext } from './io.ts';
import { createProgramLog } from './program-log.ts';

/** Loads the configuration of a command. */
export function loadFor(
  { globals }: Pick<CommandContext, 'globals'>,
  place: ConfigLocation = HERE,
): Promise<LoadedConfig> {
  const { loaded, ...input } = place;
  return loaded ? Promise.resolve(loaded) : loadConfig({ connect, ...input, configPath: globals.config });
}

/** Folder, environment and secrets for finding the configuration. */
export interface ConfigLocation extends Pick<ConfigInput, 'cwd' | 'env' | 'secrets' | 'text'> {
  /** Configuration from this location, if already loaded. */
  readonly loaded?: LoadedConfig;
}

export const HERE: ConfigLocation = { cwd: process.cwd(), env: process.env };

/**
 * Runs work on a generation that never becomes ready: it has the configured store and plugins, but no port. A gateway
 * may run at the same time. Always closes the generation.
 */
export async function withGeneration<T>(
  context: Pick<CommandContext, 'globals'>,
  work: (generation: Generation) => Promise<T>,
  place: ConfigLocation = HERE,
): Promise<T> {
  const log = createProgramLog({
    level: 'warn',
    format: 'auto',
    isTerminal: process.stderr.isTTY === true,
    destination: process.stderr,
  });
  const { generation, close } = await openGeneration(await loadFor(context, place), log);
  try {
    return await work(generation);
  } finally {
    await close();
  }
}

/** Opens a generation that never becomes ready. The caller closes it. */
export async function openGeneration(
  loaded: LoadedConfig,
  log: Logger,
): Promise<{ readonly generation: Generation; close(): Promise<void> }> {
  const foundation = await openFoundation(loaded, log);
  try {
    const generation = await setUpIsolated(loaded, log, (each) => createGeneration(foundation, each));
    return {
      generation,
      async close() {
        try {
          await generation.close();
        } finally {
          await foundation.close();
        }
      },
    };
  } catch (error) {
    await foundation.close();
    throw error;
  }
}

/** Signals that may drain a gateway. */
export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** Exit codes of a process that a signal stops at once. */
export const EXIT_OF: Readonly<Record<StopSignal, number>> = Object.freeze({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 });

export interface SignalWork {
  /** Drains; during a drain it stops at once. */
  stop(signal: StopSignal): void;
  reload(): void;
}

/**
 * Listens to signals: SIGTERM and SIGINT drain. SIGHUP reloads a service; for a process with a terminal it means that
 * the terminal was closed, and drains. The terminal is looked up in advance, because a closed one cannot be opened.
 */
export function listenToSignals({ stop, reload }: SignalWork): void {
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  const isInTerminal = hasTerminal();
  process.on('SIGHUP', () => (isInTerminal ? stop('SIGHUP') : reload()));
}

/**
 * True if a terminal controls this process: only then can `/dev/tty` be opened. On Windows SIGHUP means a closed
 * console.
 */
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
  return `${signal}: draining; running responses finish first (send it again to stop immediately)\n`;
}
