import type { ConfigInput } from '../config/read.ts';
import { type Assembly, assemble } from '../plugins/assemble.ts';
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

/** Runs work on the configured store and plugins, without listening; the gateway may run beside it. Always closes. */
export async function withAssembly<T>(
  context: Pick<CommandContext, 'globals'>,
  work: (assembly: Assembly) => Promise<T>,
  place: Place = HERE,
): Promise<T> {
  const log = createLogger({
    level: 'warn',
    format: 'auto',
    isTerminal: process.stderr.isTTY === true,
    destination: process.stderr,
  });
  const assembly = await assemble(await loadFor(context, place), log);
  try {
    return await work(assembly);
  } finally {
    await assembly.close();
  }
}
