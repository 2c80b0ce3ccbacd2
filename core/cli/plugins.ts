import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { loadFor } from './load.ts';
import { formatTable } from './table.ts';

/** `tollgate plugins`: every plugin that the configuration loads, and where it comes from. */
export async function run(context: CommandContext): Promise<void> {
  const { config, builtins } = await loadFor(context);
  const rows = config.instances.map(({ kind, name, plugin }) => ({
    kind,
    name,
    plugin,
    source: builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin) ? 'built in' : 'yours',
  }));
  const table = formatTable(
    ['KIND', 'NAME', 'PLUGIN', 'SOURCE'],
    rows.map(({ kind, name, plugin, source }) => [kind, name, plugin, source]),
  );
  createIo(context.terminal, context.globals.json === true).result(rows, table);
}
