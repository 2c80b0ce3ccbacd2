import { type Assembly, assemble } from '../assemble.ts';
import { type LoadedConfig, loadConfig } from '../load-config.ts';
import { createLogger } from '../logger.ts';
import type { CommandContext } from './commands.ts';

/** The configuration that a command works on. */
export function loadFor({ globals }: Pick<CommandContext, 'globals'>): Promise<LoadedConfig> {
  return loadConfig({ cwd: process.cwd(), env: process.env, configPath: globals.config });
}

/** Runs work on the configured store and plugins, without listening; the gateway may run beside it. Always closes. */
export async function withAssembly<T>(
  context: Pick<CommandContext, 'globals'>,
  work: (assembly: Assembly) => Promise<T>,
): Promise<T> {
  const log = createLogger({
    level: 'warn',
    format: 'auto',
    isTerminal: process.stderr.isTTY === true,
    destination: process.stderr,
  });
  const assembly = await assemble(await loadFor(context), log);
  try {
    return await work(assembly);
  } finally {
    await assembly.close();
  }
}
