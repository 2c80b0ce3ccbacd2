import { Command, Help } from 'commander';
import { VERSION } from '../config/package-root.ts';
import { type CommandRow, createTerminal, reportFailure, type Terminal } from './io.ts';
import { GROUPS, isFirstLevel, OTHERS, resolveWords, showPlace } from './places.ts';
import { watchPluginExits } from './plugin-exit.ts';

const PORT = ['--port <number>', 'replaces server.port; 0 selects a free port'] as const;
const HOST = ['--host <address>', 'replaces server.host'] as const;

const URL_OPTION = [
  '--url <url>',
  'address of the gateway; default: that of the configuration. TOLLGATE_API_KEY has the key, else a sign-in is used',
] as const;

const EXCHANGES = [
  ['--record <folder>', 'record requests and responses of providers in a folder, without secrets'],
  ['--replay <folder>', 'respond from a recording; send nothing'],
  ['--times', 'record and replay the timing too'],
] as const;

/** Commands as data: names, help and parsing come from this table. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'start',
    summary: 'Run the gateway',
    options: [PORT, HOST, ['--log-level <level>', 'debug, info, warn, error or silent'], ...EXCHANGES],
    load: async () => (await import('./start.ts')).run,
  },
  {
    name: 'dev',
    summary: 'Run the gateway and reload plugins at each save',
    options: [PORT, HOST, ['--log-level <level>', 'debug, info, warn, error or silent'], ...EXCHANGES],
    load: async () => (await import('./dev.ts')).runDev,
  },
  {
    name: 'check',
    summary: 'Check the configuration',
    options: [['--connect', 'also connect to the store and check its version; changes nothing']],
    load: async () => (await import('./inspect.ts')).checkConfig,
  },
  {
    name: 'reload',
    summary: 'Reload the configuration of running gateways',
    options: [['--diff', 'show what a reload would change, without changing anything']],
    load: async () => (await import('./inspect.ts')).runReload,
  },
  {
    name: 'status',
    summary: 'Check that running gateways can write to the store',
    load: async () => (await import('./inspect.ts')).runStatus,
  },
  {
    name: 'targets',
    summary: 'Show target health',
    load: async () => (await import('./inspect.ts')).runTargets,
  },
  {
    name: 'top',
    summary: 'Live view of calls, spend and target health',
    options: [['--once', 'print once and exit']],
    load: async () => (await import('./top.ts')).runTop,
  },
  {
    name: 'export',
    summary: 'Write the store into a file, while no gateway runs on it',
    args: [['<file>', 'new file; protect it like the store']],
    load: async () => (await import('./move-store.ts')).runExport,
  },
  {
    name: 'import',
    summary: 'Read a file of "store export" into an empty store, or convert the configuration of another gateway',
    args: [
      ['<what>', 'a file of "store export"; or litellm, portkey or bifrost'],
      ['[source]', 'the file or folder of that gateway'],
    ],
    options: [
      ['--out <folder>', 'where to write the configuration; default: here'],
      ['--force', 'overwrite existing files'],
    ],
    load: async () => (await import('./import/index.ts')).runImport,
  },
  {
    name: 'init',
    summary: 'Write a configuration into this folder',
    options: [
      ['--force', 'overwrite existing files'],
      ['--client <name>', 'print the settings of a client, such as codex; write nothing'],
    ],
    load: async () => (await import('./init.ts')).run,
  },
  {
    name: 'chat',
    summary: 'Send one prompt to a model; reads stdin without a prompt',
    args: [
      ['<model>', 'provider/model or an alias'],
      ['[prompt...]', 'the message; "-" or nothing reads stdin'],
    ],
    options: [
      ['--system <text>', 'a system message'],
      ['--no-stream', 'wait for the complete response'],
      ['--max-tokens <number>', 'maximum number of output tokens'],
    ],
    load: async () => (await import('./inspect.ts')).runChat,
  },
  {
    name: 'login',
    summary: 'Sign in at a gateway, for the programs of this machine',
    args: [['<url>', 'the address of the gateway']],
    options: [['--browser', 'open the page in a browser here']],
    load: async () => (await import('./login.ts')).runLogin,
  },
  {
    name: 'token',
    summary: 'Print a valid access token of the sign-in',
    args: [['[url]', 'the address of the gateway; default: that of the last login']],
    load: async () => (await import('./login.ts')).runToken,
  },
  {
    name: 'logout',
    summary: 'Sign out and revoke the token',
    args: [['[url]', 'the address of the gateway; default: that of the last login']],
    load: async () => (await import('./login.ts')).runLogout,
  },
  {
    name: 'mcp',
    summary: 'Offer a running gateway to an MCP client on stdio',
    options: [URL_OPTION],
    load: async () => (await import('./mcp.ts')).runMcp,
  },
  {
    name: 'changes',
    summary: 'List, confirm and reject changes that programs proposed',
    options: [URL_OPTION],
    load: async () => (await import('./changes.ts')).listChanges,
    subcommands: [
      {
        name: 'list',
        summary: 'List proposed changes',
        options: [URL_OPTION],
        load: async () => (await import('./changes.ts')).listChanges,
      },
      {
        name: 'show',
        summary: 'Show what a change does',
        args: [['<id>', 'id of the change']],
        options: [URL_OPTION],
        load: async () => (await import('./changes.ts')).showChange,
      },
      {
        name: 'confirm',
        summary: 'Make a change, with the rights of your key',
        args: [['<id>', 'id of the change']],
        options: [URL_OPTION],
        load: async () => (await import('./changes.ts')).confirmChange,
      },
      {
        name: 'reject',
        summary: 'Reject a change',
        args: [['<id>', 'id of the change']],
        options: [URL_OPTION],
        load: async () => (await import('./changes.ts')).rejectChange,
      },
    ],
  },
  {
    name: 'providers',
    summary: 'List providers and whether each can be called',
    load: async () => (await import('./inspect.ts')).listProviders,
    subcommands: [
      {
        name: 'explain',
        summary: 'Show the targets, prices and timeouts of a model',
        args: [['<model>', 'provider/model, an alias or a bare name']],
        load: async () => (await import('./inspect.ts')).explainModel,
      },
    ],
  },
  {
    name: 'plugins',
    summary: 'List plugins and the order of their hooks',
    load: async () => (await import('./list-plugins.ts')).listPlugins,
    subcommands: [
      {
        name: 'new',
        summary: 'Create the repository of a plugin, tests included',
        args: [['<name>', 'the name of the plugin, such as my-vendor']],
        options: [
          ['--kind <kind>', 'provider, policy, guardrail, auth, dialect, operation, agent, tts, secrets or store'],
        ],
        load: async () => (await import('./new-plugin.ts')).runNew,
      },
      {
        name: 'add',
        summary: 'Install a plugin package and add it to the configuration',
        args: [['<package>', 'package as for npm install: name, version, file or folder']],
        options: [
          ['--as <name>', 'the name in the configuration; default: that of the plugin'],
          ['--options <json>', 'the options of the plugin'],
          ['--yes', 'skip the confirmation'],
        ],
        load: async () => (await import('./add-plugin.ts')).runAdd,
      },
    ],
  },
  {
    name: 'config',
    summary: 'Print, convert and document the configuration',
    load: async () => (await import('./inspect.ts')).printConfig,
    subcommands: [
      {
        name: 'print',
        summary: 'Print the effective configuration, defaults included, secrets masked',
        load: async () => (await import('./inspect.ts')).printConfig,
      },
      {
        name: 'schema',
        summary: 'Print the JSON Schema of the configuration',
        load: async () => (await import('./inspect.ts')).printSchema,
      },
    ],
  },
  {
    name: 'store',
    summary: 'Check, export and import the store',
  },
  {
    name: 'openapi',
    summary: 'Print the OpenAPI document of the configuration',
    load: async () => (await import('./inspect.ts')).printOpenApi,
  },
];

export function addCommands(program: Command, terminal: Terminal): void {
  for (const row of COMMANDS) {
    const command = addCommand(program, row, terminal);
    for (const sub of row.subcommands ?? []) addCommand(command, sub, terminal);
  }
}

function addCommand(parent: Command, row: Omit<CommandRow, 'subcommands'>, terminal: Terminal): Command {
  const command = parent.command(row.name).description(row.summary);
  for (const [name, summary] of row.args ?? []) command.argument(name, summary);
  for (const [flags, summary] of row.options ?? []) command.option(flags, summary);
  if (parent.parent === null) showPlace(command);
  else command.configureHelp({});
  const { load } = row;
  if (!load) return command;
  return command.action(async (...given: unknown[]) => {
    const args = (row.args ?? []).flatMap((_, at) => (given[at] ?? []) as string | string[]);
    const run = await load();
    // An option that the parent command has too is read there, wherever it stands.
    const all = command.optsWithGlobals();
    const own = command.options.map((option) => option.attributeName()).filter((name) => name in all);
    await run({ terminal, globals: all, args, options: Object.fromEntries(own.map((name) => [name, all[name]])) });
  });
}

/** First-level commands in the order of their groups; former names are omitted. */
function listFirstLevel(program: Command): Command[] {
  const order = GROUPS.flatMap(([, names]) => names);
  const rank = (command: Command): number => {
    const at = order.indexOf(command.name());
    return at < 0 ? order.length : at;
  };
  const shown = program.commands.filter((command) => isFirstLevel(command.name()));
  for (const command of shown)
    command.helpGroup(GROUPS.find(([, names]) => names.includes(command.name()))?.[0] ?? OTHERS);
  return shown.sort((a, b) => rank(a) - rank(b));
}

/** Runs the command in the process's arguments, and ends the process. */
export async function runProgram(): Promise<void> {
  const terminal = createTerminal();
  // A reader of stdout that stops (`| head`) ends a command silently. A closed stderr ends nothing, so that a gateway
  // keeps running.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exitCode = reportFailure(error, terminal, false);
    process.exit();
  });
  process.stderr.on('error', () => undefined);
  watchPluginExits(terminal);

  const program = new Command('tollgate')
    .description('A self-hosted gateway for language models.')
    .version(VERSION, '-V, --version')
    .option('-c, --config <file>', 'the configuration file (else TOLLGATE_CONFIG, else a search in this folder)')
    .option('--json', 'print one JSON document on stdout')
    .option('--no-color', 'no colours (NO_COLOR works too)')
    .option('--wide', 'show all columns of tables, also those that do not fit the terminal')
    .configureHelp({
      visibleCommands: listFirstLevel,
      subcommandTerm: (command) => command.name(),
      groupItems: (_all, shown, getGroup) => new Help().groupItems(shown, shown, getGroup),
    })
    // reportFailure prints all errors in one format.
    .configureOutput({ writeErr: (text) => terminal.err.write(text), outputError: () => undefined })
    .exitOverride();

  addCommands(program, terminal);

  try {
    const { args, moved } = resolveWords(process.argv.slice(2));
    if (moved && terminal.isTty)
      terminal.err.write(`"tollgate ${moved.was}" is "tollgate ${moved.now}" now; the former name works until 1.0.\n`);
    const { operands, unknown } = program.parseOptions([...args]);
    // Plugin commands are loaded for help and for unknown first words: only they need the server's code.
    if (
      !COMMANDS.some(({ name }) => name === operands[0]) &&
      !unknown.some((word) => word === '-V' || word === '--version')
    ) {
      const { addPluginCommands } = await import('./plugin-commands.ts');
      await addPluginCommands(program, terminal, program.opts()).catch((error: unknown) => {
        if (operands[0] !== undefined && operands[0] !== 'help') throw error;
        terminal.err.write(
          'The commands of plugins are not shown: the configuration cannot be loaded (tollgate check says why).\n',
        );
      });
    }
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    process.exitCode = reportFailure(error, terminal, process.argv.includes('--json'));
  } finally {
    // Open resources of a plugin (a timer, a socket) must not keep the process alive. Wait for written output, and for
    // the event that reports a failed write.
    await Promise.all([process.stdout, process.stderr].map(untilWritten));
    setImmediate(() => process.exit());
  }
}

/** Skip a stream with nothing to write: on a full disk an empty write would fail, though nothing is lost. */
function untilWritten(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0) resolve();
    else stream.write('', () => resolve());
  });
}
