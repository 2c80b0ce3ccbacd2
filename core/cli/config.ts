import { stringify } from 'yaml';
import { composeSchema } from '../config/compose-schema.ts';
import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { loadFor } from './load.ts';

/** `tollgate config print`: what counts, with defaults and where values come from; secrets are masked. */
export async function printConfig(context: CommandContext): Promise<void> {
  const { config } = await loadFor(context);
  const io = createIo(context.terminal, context.globals.json === true);
  const sources = Object.fromEntries(config.sources);
  io.result(
    { file: config.file, config: config.printable, sources },
    `# ${config.file}\n${stringify(config.printable).trimEnd()}`,
  );
}

/** `tollgate config schema`: the JSON Schema of this configuration, plugins of its own included, for editors. */
export async function printSchema(context: CommandContext): Promise<void> {
  const { plugins, config } = await loadFor(context);
  const schemas = [config.store, ...config.instances].flatMap(({ kind, plugin: name }, at) => {
    const schema = plugins[at]?.configSchema;
    return schema ? [{ kind, name, schema: { ...schema } }] : [];
  });
  context.terminal.out.write(`${JSON.stringify(composeSchema(schemas), null, 2)}\n`);
}

export const run = printConfig;
