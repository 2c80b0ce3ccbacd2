import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { loadFor } from './load.ts';

/** `tollgate check`: all problems of the configuration at once, with file, line and column; nothing is opened or called. */
export async function run(context: CommandContext): Promise<void> {
  const { config } = await loadFor(context);
  const io = createIo(context.terminal, context.globals.json === true);
  const names = config.instances.map(({ group, name }) => `${group}.${name}`);
  io.result({ file: config.file, plugins: names }, `${config.file} is fine: ${names.length} plugins`);
}
