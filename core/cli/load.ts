import { createGeneration, type Generation } from '../calls/generation.ts';
import type { ConfigInput } from '../config/read.ts';
import { openFoundation } from '../plugins/foundation.ts';
import { type LoadedConfig, loadConfig } from '../plugins/load-config.ts';
import type { CommandContext } from './commands.ts';
import { createLogger } from './logger.ts';

/** The configuration that a command works on. */
export function loadFor({ globals }: Pick<CommandContext, 'globals'>, place: Place = HERE): Promise<LoadedConfig> {
  return loadConfig({ ...place, configPath: globals.config });
}

/** Where a command looks for its configuration. */
export type Place = Pick<ConfigInput, 'cwd' | 'env'>;

const HERE: Place = { cwd: process.cwd(), env: process.env };

/**
 * Runs work on a generation that never becomes ready: the configured store and plugins, without listening; a gateway may run
 * beside it. Always closes.
 */
export async function withGeneration<T>(
  context: Pick<CommandContext, 'globals'>,
  work: (generation: Generation) => Promise<T>,
  place: Place = HERE,
): Promise<T> {
  const log = createLogger({
    level: 'warn',
    format: 'auto',
    isTerminal: process.stderr.isTTY === true,
    destination: process.stderr,
  });
  const loaded = await loadFor(context, place);
  const foundation = await openFoundation(loaded, log);
  try {
    const generation = await createGeneration(foundation, loaded);
    try {
      return await work(generation);
    } finally {
      await generation.close();
    }
  } finally {
    await foundation.close();
  }
}
