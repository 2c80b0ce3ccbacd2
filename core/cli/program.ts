import { Command } from 'commander';
import { VERSION } from '../config/package-root.ts';
import { addCommands, COMMANDS } from './commands.ts';
import { reportFailure } from './failure.ts';
import { createTerminal } from './io.ts';

const terminal = createTerminal();
// The reader of stdout may stop (`| head`): that ends a command in silence. An stderr that nobody reads ends nothing, least of all a gateway.
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
  // What it has to complain of is told in the one form, by reportFailure.
  .configureOutput({ writeErr: (text) => terminal.err.write(text), outputError: () => undefined })
  .exitOverride();

addCommands(program, terminal);

try {
  const { operands, unknown } = program.parseOptions(process.argv.slice(2));
  // The plugins' commands are looked up when the first word is none of ours, and for help: only then the server's code is loaded.
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

/** Not of a stream with nothing to write: on a full disk that would be an error, though nothing is lost. */
function untilWritten(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0) resolve();
    else stream.write('', () => resolve());
  });
}
