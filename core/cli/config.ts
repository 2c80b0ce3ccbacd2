import { stringify } from 'yaml';
import { composeSchema } from '../config/compose-schema.ts';
import { readBuiltinSchemas, readSchema } from '../plugins/load-config.ts';
import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { loadFor } from './load.ts';

/** `tollgate config print`: what counts, with defaults and where values come from; secrets are masked. */
export async function printConfig(context: CommandContext): Promise<void> {
  const { config } = await loadFor(context);
  const io = createIo(context.terminal, context.globals.json === true);
  const sources = Object.fromEntries(config.sources);
  io.result(
    { file: config.file, config: config.printable(), sources },
    `# ${config.file}\n${stringify(config.printable()).trimEnd()}`,
  );
}

/** `tollgate config schema`: the JSON Schema of every built-in plugin and of this configuration's own, for editors. */
export async function printSchema(context: CommandContext): Promise<void> {
  const { plugins, config, builtins } = await loadFor(context);
  const own = [config.store, ...config.instances].flatMap(({ kind, plugin: name }, at) => {
    const plugin = plugins[at];
    const isBuiltin = builtins.some((builtin) => builtin.kind === kind && builtin.name === name);
    return plugin && !isBuiltin ? [readSchema(plugin, name)] : [];
  });
  const schema = composeSchema([...(await readBuiltinSchemas(builtins)), ...own]);
  context.terminal.out.write(`${JSON.stringify(schema, null, 2)}\n`);
}
