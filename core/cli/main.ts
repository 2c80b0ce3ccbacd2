#!/usr/bin/env node
import { Command } from 'commander';
import { VERSION } from '../config/version.ts';
import { addCommands } from './commands.ts';
import { reportFailure } from './failure.ts';
import { createTerminal } from './io.ts';
import { workerNumber } from './workers.ts';

const terminal = createTerminal();
// Whoever reads may stop (`| head`): that ends a command in silence. Talk that nobody hears ends nothing, least of all a gateway.
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
  .showHelpAfterError('(add --help for usage)')
  .configureOutput({ writeErr: (text) => terminal.err.write(text) })
  .exitOverride();

addCommands(program, terminal);

try {
  await program.parseAsync(process.argv);
} catch (error) {
  process.exitCode = reportFailure(error, terminal, process.argv.includes('--json'));
} finally {
  // The channel to the primary process would keep a worker alive.
  if (workerNumber() !== undefined) process.exit();
}
