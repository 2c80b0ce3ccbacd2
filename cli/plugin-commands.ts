import { Command } from 'commander';
import { nearest } from '../contract/nearest.ts';
import type { Command as PluginCommand, Subcommand } from '../contract/plugin.ts';
import type { Generation } from '../core/calls/generation.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT, systemUser, type Terminal } from './io.ts';
import { type ConfigLocation, loadFor, withGeneration } from './load.ts';
import { isBuiltIn, placeOf, showPlace } from './places.ts';
import { allowPluginExits } from './plugin-exit.ts';

/** Lists the commands of configured plugins, with their plugin, for the help and to recognize a word as a command. */
export async function listPluginCommands(
  context: Pick<CommandContext, 'globals'>,
): Promise<readonly { readonly name: string; readonly summary: string; readonly plugin: string }[]> {
  const { plugins } = await loadFor(context);
  return plugins.flatMap(({ name: plugin, commands = [] }) => commands.map((command) => ({ ...command, plugin })));
}

/** Adds the plugins' commands to the program. Their arguments are known once their plugin is set up. */
export async function addPluginCommands(
  program: Command,
  terminal: Terminal,
  globals: CommandContext['globals'],
): Promise<void> {
  for (const { name, summary, plugin } of await listPluginCommands({ globals }))
    program
      .command(name)
      .description(isBuiltIn(name) ? summary : `${summary} (plugin ${plugin})`)
      .helpOption(false)
      .allowUnknownOption()
      .argument('[words...]')
      .action((words: readonly string[], _options, command: Command) =>
        runPluginCommand(name, command.args.length > 0 ? command.args : words, {
          terminal,
          globals: program.opts(),
          args: words,
          options: {},
        }),
      );
}

/**
 * Runs a command that a plugin registered (`api.command`). Its arguments are declared as data, and parsed and
 * documented here.
 */
export async function runPluginCommand(
  name: string,
  words: readonly string[],
  context: CommandContext,
  place?: ConfigLocation,
): Promise<void> {
  await withGeneration(context, (generation) => runCommandOf(generation, name, words, context), place);
}

/** Runs a command of a generation that is open. */
export async function runCommandOf(
  { registry, foundation: { store } }: Pick<Generation, 'registry' | 'foundation'>,
  name: string,
  words: readonly string[],
  context: CommandContext,
): Promise<void> {
  const found = registry.commands.get(name)?.value;
  if (!found) {
    const near = nearest(name, registry.commands.keys());
    throw new CliError(
      `no plugin of this configuration has the command "${name}"`,
      EXIT.usage,
      near.length > 0 ? `Did you mean ${near.join(' or ')}?` : 'Enable the plugin with this command.',
    );
  }
  if (store.endsWithProcess && found.changesStore !== false)
    throw new CliError(
      `"${name}" has no lasting effect: the store is memory, which ends with this command`,
      EXIT.config,
      'Use a persistent store, such as store: sqlite:./data. For a first key with memory, set auth: { api-key: { bootstrap: true } }.',
    );
  await buildCommand(found, context).parseAsync(namedOrListed(found, words), { from: 'user' });
}

/** A noun without a subcommand runs `list`. */
function namedOrListed({ run, subcommands = [] }: PluginCommand, words: readonly string[]): string[] {
  const isAlone = !run && words.every((word) => word.startsWith('-') && word !== '--help' && word !== '-h');
  return isAlone && subcommands.some(({ name }) => name === 'list') ? ['list', ...words] : [...words];
}

function buildCommand(found: PluginCommand, context: CommandContext): Command {
  const command = new Command(found.name);
  showPlace(command);
  command
    .name(`tollgate ${placeOf(found.name)}`)
    .description(found.summary)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.terminal.out.write(text),
      writeErr: (text) => context.terminal.err.write(text),
      outputError: () => undefined,
    })
    .option('--json', 'print one JSON document on stdout')
    .option('--wide', 'show all columns of tables')
    .option('-c, --config <file>', 'the configuration file');
  if (found.run) addRun(command, { ...found, run: found.run }, context);
  for (const sub of found.subcommands ?? [])
    addRun(command.command(sub.name).description(sub.summary).configureHelp({}), sub, context);
  return command;
}

/** Adds arguments, options and the action to a command. */
function addRun(command: Command, row: Omit<Subcommand, 'name' | 'summary'>, context: CommandContext): void {
  for (const { name, summary } of row.args ?? []) command.argument(name, summary);
  for (const { flags, summary, required } of row.options ?? []) {
    if (required) command.requiredOption(flags, summary);
    else command.option(flags, summary);
  }
  command.action(async (...given: unknown[]) => {
    const args = (row.args ?? []).flatMap((_, at) => (given[at] ?? []) as string | string[]);
    const json = context.globals.json === true || command.optsWithGlobals()['json'] === true;
    const interrupt = new AbortController();
    const onInterrupt = (): void => interrupt.abort();
    process.once('SIGINT', onInterrupt);
    try {
      // Options that the parent command has too are read there, wherever they stand.
      const all = command.optsWithGlobals();
      const options = Object.fromEntries(
        command.options
          .map((option) => option.attributeName())
          .flatMap((name) => (name in all ? [[name, all[name]]] : [])),
      );
      checkValues(options);
      const io = createIo(context.terminal, json);
      const actor = { via: 'cli', userId: systemUser() } as const;
      allowPluginExits();
      const code = await row.run({ args, options, io, signal: interrupt.signal, actor });
      if (code) context.terminal.exitWith?.(code);
    } finally {
      process.off('SIGINT', onInterrupt);
    }
  });
}

/** Longest value of an option; cursors of reports are the longest in use. */
const MAX_VALUE = 8192;

/**
 * Refuses empty option values, which scripts pass by accident, and control characters, which would affect a terminal.
 */
function checkValues(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'string' || (value !== '' && value.length <= MAX_VALUE && !/\p{Cc}/u.test(value))) continue;
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new CliError(
      `${flag} is ${value === '' ? 'empty' : 'not a line of text'}`,
      EXIT.usage,
      `Use 1 to ${MAX_VALUE} characters without control characters, or remove it.`,
    );
  }
}
