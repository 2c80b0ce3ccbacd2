import { Command } from 'commander';
import { VERSION } from '../config/package-root.ts';
import { createTerminal, reportFailure, type Terminal } from './io.ts';

/** What every command is given; the options of the program itself are in `globals`. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly globals: { readonly config?: string; readonly json?: boolean };
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
}

interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly args?: readonly (readonly [name: string, summary: string])[];
  readonly options?: readonly (readonly [flags: string, summary: string])[];
  /** Loads the code only when the command runs: help and version load none of it. A row that is only a group has none. */
  readonly load?: () => Promise<(context: CommandContext) => Promise<void>>;
  readonly subcommands?: readonly Omit<CommandRow, 'subcommands'>[];
}

const PORT = ['--port <number>', 'replaces server.port; 0 takes any free port'] as const;
const HOST = ['--host <address>', 'replaces server.host'] as const;

const EXCHANGES = [
  ['--record <folder>', 'write what is sent to providers and what they answer into a folder, without secrets'],
  ['--replay <folder>', 'answer by what was recorded; nothing is sent'],
  ['--times', 'keep the times of what is recorded, and replay at them'],
] as const;

/** The commands as data: names, help and parsing come from this table. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'start',
    summary: 'Run the gateway',
    options: [PORT, HOST, ['--log-level <level>', 'debug, info, warn, error or silent'], ...EXCHANGES],
    load: async () => (await import('./start.ts')).run,
  },
  {
    name: 'dev',
    summary: 'Run the gateway to develop plugins: they are loaded anew at each save',
    options: [PORT, HOST, ['--log-level <level>', 'debug, info, warn, error or silent'], ...EXCHANGES],
    load: async () => (await import('./dev.ts')).runDev,
  },
  {
    name: 'check',
    summary: 'Check the configuration without starting anything',
    options: [['--connect', 'also reach the store and see whether this version can use it; nothing in it is changed']],
    load: async () => (await import('./inspect.ts')).checkConfig,
  },
  {
    name: 'reload',
    summary: 'Let the gateways that run on this configuration read it anew',
    options: [['--diff', 'say what a reload would change, and change nothing']],
    load: async () => (await import('./inspect.ts')).runReload,
  },
  {
    name: 'status',
    summary: 'Say whether the gateways that run on this configuration can write to their store',
    load: async () => (await import('./inspect.ts')).runStatus,
  },
  {
    name: 'targets',
    summary: 'Say how the targets of the gateways that run on this configuration do',
    load: async () => (await import('./inspect.ts')).runTargets,
  },
  {
    name: 'top',
    summary: 'Show calls, spend, budgets, targets and failures of the running gateways, anew each second',
    options: [['--once', 'show them once, and end']],
    load: async () => (await import('./top.ts')).runTop,
  },
  {
    name: 'export',
    summary: 'Write all that the store keeps into one file, while no gateway runs on it',
    args: [['<file>', 'a new file; it holds what the store holds, so keep it as safe']],
    load: async () => (await import('./move-store.ts')).runExport,
  },
  {
    name: 'import',
    summary: 'Read a file of "export" into an empty store, or the configuration of another gateway',
    args: [
      ['<what>', 'what "export" wrote; or litellm, portkey or bifrost'],
      ['[source]', 'the file or folder of that gateway'],
    ],
    options: [
      ['--out <folder>', 'where the configuration is written, else here'],
      ['--force', 'replace files that exist'],
    ],
    load: async () => (await import('./import/index.ts')).runImport,
  },
  {
    name: 'init',
    summary: 'Write a configuration, .env.example and .gitignore into this folder',
    options: [
      ['--force', 'replace files that exist'],
      ['--client <name>', 'write nothing; print how a client, such as codex, is set up for this gateway'],
    ],
    load: async () => (await import('./init.ts')).run,
  },
  {
    name: 'chat',
    summary: 'Ask a model once; reads the prompt from stdin when none is given',
    args: [
      ['<model>', 'provider/model or an alias'],
      ['[prompt...]', 'the message; "-" or nothing reads stdin'],
    ],
    options: [
      ['--system <text>', 'a system message'],
      ['--no-stream', 'wait for the complete response'],
      ['--max-tokens <number>', 'the most tokens to generate'],
    ],
    load: async () => (await import('./inspect.ts')).runChat,
  },
  {
    name: 'login',
    summary: 'Sign in at a gateway by the account of your company, for the programs of this machine',
    args: [['<url>', 'the address of the gateway']],
    options: [['--browser', 'open the page in a browser here']],
    load: async () => (await import('./login.ts')).runLogin,
  },
  {
    name: 'token',
    summary: 'Print a valid access token of that sign-in, renewed before it ends',
    args: [['[url]', 'the address of the gateway; default: that of the last login']],
    load: async () => (await import('./login.ts')).runToken,
  },
  {
    name: 'logout',
    summary: 'End that sign-in, here and at the gateway',
    args: [['[url]', 'the address of the gateway; default: that of the last login']],
    load: async () => (await import('./login.ts')).runLogout,
  },
  {
    name: 'providers',
    summary: 'List the providers of the configuration and whether each can be called',
    load: async () => (await import('./inspect.ts')).listProviders,
    subcommands: [
      {
        name: 'explain',
        summary: 'Say where calls of a model go: its targets in order, prices, clocks, and which are left alone now',
        args: [['<model>', 'provider/model, an alias or a bare name']],
        load: async () => (await import('./inspect.ts')).explainModel,
      },
    ],
  },
  {
    name: 'plugins',
    summary: 'List the plugins that the configuration loads, and the order of their hooks',
    load: async () => (await import('./list-plugins.ts')).listPlugins,
    subcommands: [
      {
        name: 'new',
        summary: 'Write the repository of a plugin that passes its own tests',
        args: [['<name>', 'the name of the plugin, such as my-vendor']],
        options: [
          ['--kind <kind>', 'provider, policy, guardrail, auth, dialect, operation, agent, tts, secrets or store'],
        ],
        load: async () => (await import('./new-plugin.ts')).runNew,
      },
      {
        name: 'add',
        summary: 'Install the package of a plugin without its scripts, and write it into the configuration',
        args: [['<package>', 'as npm install takes it: a name, a version, a file or a folder']],
        options: [
          ['--as <name>', 'the name in the configuration; default: that of the plugin'],
          ['--options <json>', 'the options of the plugin'],
          ['--yes', 'do not ask'],
        ],
        load: async () => (await import('./add-plugin.ts')).runAdd,
      },
    ],
  },
  {
    name: 'config',
    summary: 'Show the configuration',
    subcommands: [
      {
        name: 'print',
        summary: 'Print it as it counts, defaults included, secrets masked',
        load: async () => (await import('./inspect.ts')).printConfig,
      },
      {
        name: 'schema',
        summary: 'Print the JSON Schema of this configuration and its plugins',
        load: async () => (await import('./inspect.ts')).printSchema,
      },
    ],
  },
  {
    name: 'openapi',
    summary: 'Print the OpenAPI document of this configuration',
    load: async () => (await import('./inspect.ts')).printOpenApi,
  },
  {
    name: 'completion',
    summary: 'Print a script that completes commands and options in a shell',
    args: [['<shell>', 'bash, zsh or fish']],
    load: async () => (await import('./completion.ts')).run,
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
  const { load } = row;
  if (!load) return command;
  return command.action(async (...given: unknown[]) => {
    const args = (row.args ?? []).flatMap((_, at) => (given[at] ?? []) as string | string[]);
    const run = await load();
    await run({ terminal, globals: command.optsWithGlobals(), args, options: command.opts() });
  });
}

/** Runs the command of the process's arguments, and ends the process. */
export async function runProgram(): Promise<void> {
  const terminal = createTerminal();
  // The reader of stdout may stop (`| head`): that ends a command in silence. A closed stderr ends nothing, least of all a gateway.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exitCode = reportFailure(error, terminal, false);
    process.exit();
  });
  process.stderr.on('error', () => undefined);

  const program = new Command('tollgate')
    .description('A self-hosted gateway for language models.')
    .version(VERSION, '-V, --version')
    .option('-c, --config <file>', 'the configuration file (else TOLLGATE_CONFIG, else a search in this folder)')
    .option('--json', 'print one JSON document on stdout')
    .option('--no-color', 'no colours (NO_COLOR works too)')
    // Its errors are printed in the one form, by reportFailure.
    .configureOutput({ writeErr: (text) => terminal.err.write(text), outputError: () => undefined })
    .exitOverride();

  addCommands(program, terminal);

  try {
    const { operands, unknown } = program.parseOptions(process.argv.slice(2));
    // The plugins' commands are looked up when the first word is not one of ours, and for help: only then the server's code is loaded.
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
    await program.parseAsync(process.argv);
  } catch (error) {
    process.exitCode = reportFailure(error, terminal, process.argv.includes('--json'));
  } finally {
    // Whatever a plugin still holds (a timer, a socket) must not keep the process; what was written is waited for, and so is the
    // event that tells that it could not be.
    await Promise.all([process.stdout, process.stderr].map(untilWritten));
    setImmediate(() => process.exit());
  }
}

/** Not of a stream with nothing to write: on a full disk that would be an error, though nothing is lost. */
function untilWritten(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0) resolve();
    else stream.write('', () => resolve());
  });
}
