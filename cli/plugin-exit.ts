import { fileURLToPath } from 'node:url';
import { isOwnCode } from '../config/import-plugin.ts';
import type { Terminal } from './io.ts';
import { CliError, EXIT, reportFailure } from './io.ts';

/** Frame of a stack trace: `at load (file:///srv/guard.mjs:3:9)`. */
const FRAME = /\bat (?:.* \()?(?:file:\/\/)?((?:[A-Za-z]:)?[\\/].+?):(\d+):\d+\)?$/;

const watch = { isOn: true };

/** Ends the watch: the command of a plugin may end the process. */
export function allowPluginExits(): void {
  watch.isOn = false;
}

/**
 * Reports a plugin that ends the process by `process.exit()`, which would otherwise end a command with its exit code and without
 * output. The exit code becomes that of an invalid configuration.
 */
export function watchPluginExits(terminal: Terminal): void {
  process.on('exit', () => {
    const place = callerOfExit(new Error('exit').stack ?? '');
    if (place === undefined || !watch.isOn) return;
    const error = new CliError(
      `a plugin ended the process: process.exit() at ${place}`,
      EXIT.config,
      'Throw an error in the plugin instead, or remove the plugin from the configuration.',
    );
    process.exitCode = reportFailure(error, terminal, process.argv.includes('--json'));
  });
}

/** Returns the position outside of this package that called `process.exit()`. */
export function callerOfExit(stack: string): string | undefined {
  const frames = stack.split('\n');
  const exit = frames.findIndex((line) => /\bat process\.(?:reallyE|e)xit\b/.test(line));
  const [, file, line] = (exit < 0 ? undefined : FRAME.exec(frames[exit + 1] ?? '')) ?? [];
  if (file === undefined || isOwnCode(file)) return undefined;
  const path = frames[exit + 1]?.includes('file://') ? fileURLToPath(`file://${file}`) : file;
  return isOwnCode(path) ? undefined : `${path}:${line}`;
}
