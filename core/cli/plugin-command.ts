import { Command } from 'commander';
import { nearest } from '../config/nearest.ts';
import type { Command as PluginCommand } from '../contract/plugin.ts';
import type { Assembly } from '../plugins/assemble.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { type Place, withAssembly } from './load.ts';

/** Runs a command that a plugin registered (`api.command`): its arguments are data, parsed and explained here. */
export async function runPluginCommand(
  name: string,
  words: readonly string[],
  context: CommandContext,
  place?: Place,
): Promise<void> {
  const work = async ({ registry, store }: Assembly): Promise<void> => {
    if (store.endsWithProcess)
      throw new CliError(
        `"${name}" would change a store that ends with this command, not that of a running gateway`,
        EXIT.config,
        'Name a store that lasts, such as store: sqlite:./data. A first key of such a gateway: auth: { api-key: { bootstrap: true } }.',
      );
    const found = registry.commands.get(name)?.value;
    if (!found) {
      const near = nearest(name, registry.commands.keys());
      throw new CliError(
        `no plugin of this configuration brings the command "${name}"`,
        EXIT.usage,
        near.length > 0 ? `Did you mean ${near.join(' or ')}?` : 'Switch the plugin on that has it.',
      );
    }
    await buildCommand(found, context).parseAsync([...words], { from: 'user' });
  };
  await withAssembly(context, work, place);
}

function buildCommand(found: PluginCommand, context: CommandContext): Command {
  const command = new Command(`tollgate ${found.name}`)
    .description(found.summary)
    .exitOverride()
    .option('--json', 'print one JSON document on stdout')
    .option('-c, --config <file>', 'the configuration file');
  for (const sub of found.subcommands) {
    const child = command.command(sub.name).description(sub.summary);
    for (const { name, summary } of sub.args ?? []) child.argument(name, summary);
    for (const { flags, summary, required } of sub.options ?? []) {
      if (required) child.requiredOption(flags, summary);
      else child.option(flags, summary);
    }
    child.action(async (...given: unknown[]) => {
      const args = (sub.args ?? []).flatMap((_, at) => (given[at] ?? []) as string | string[]);
      const json = context.globals.json === true || child.optsWithGlobals()['json'] === true;
      await sub.run({ args, options: child.opts(), io: createIo(context.terminal, json) });
    });
  }
  return command;
}
