import { Command } from 'commander';
import { nearest } from '../config/nearest.ts';
import type { CommandWork, Command as PluginCommand } from '../contract/plugin.ts';
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
    const found = registry.commands.get(name)?.value;
    if (!found) {
      const near = nearest(name, registry.commands.keys());
      throw new CliError(
        `no plugin of this configuration brings the command "${name}"`,
        EXIT.usage,
        near.length > 0 ? `Did you mean ${near.join(' or ')}?` : 'Switch the plugin on that has it.',
      );
    }
    if (store.endsWithProcess && found.store !== 'any')
      throw new CliError(
        `"${name}" would change a store that ends with this command, not that of a running gateway`,
        EXIT.config,
        'Name a store that lasts, such as store: sqlite:./data. A first key of such a gateway: auth: { api-key: { bootstrap: true } }.',
      );
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
  if (found.subcommands)
    for (const sub of found.subcommands) addWork(command.command(sub.name).description(sub.summary), sub, context);
  else addWork(command, found, context);
  return command;
}

/** Parses what a command takes by its data, and runs it. */
function addWork(command: Command, { args = [], options = [], run }: CommandWork, context: CommandContext): void {
  for (const { name, summary } of args) command.argument(name, summary);
  for (const { flags, summary, required } of options) {
    if (required) command.requiredOption(flags, summary);
    else command.option(flags, summary);
  }
  command.action(async (...given: unknown[]) => {
    const words = args.flatMap((_, at) => (given[at] ?? []) as string | string[]);
    const json = context.globals.json === true || command.optsWithGlobals()['json'] === true;
    const stop = new AbortController();
    const onInterrupt = (): void => stop.abort();
    process.once('SIGINT', onInterrupt);
    try {
      await run({ args: words, options: command.opts(), io: createIo(context.terminal, json), signal: stop.signal });
    } finally {
      process.off('SIGINT', onInterrupt);
    }
  });
}
