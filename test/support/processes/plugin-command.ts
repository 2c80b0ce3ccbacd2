/** Commands of plugins, run in this process as the program runs them. */
import { Writable } from 'node:stream';
import pc from 'picocolors';
import type { Terminal } from '../../../cli/io.ts';
import { runPluginCommand } from '../../../cli/plugin-commands.ts';

export interface CapturedTerminal {
  readonly terminal: Terminal;
  /** What was written so far to stdout and to stderr. */
  out(): string;
  err(): string;
  /** What a command ends the process with, where it says so. */
  exitCode(): number | undefined;
}

/** A terminal without colours that keeps what is written to it. */
export function captureTerminal(): CapturedTerminal {
  const [out, err]: [string[], string[]] = [[], []];
  let exitCode: number | undefined;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const terminal = { out: keepIn(out), err: keepIn(err), isTty: false, colors: pc.createColors(false), exitWith };
  return { terminal, out: () => out.join(''), err: () => err.join(''), exitCode: () => exitCode };
}

/** A stream that keeps the text that is written to it. */
export function keepIn(texts: string[]): Writable {
  return new Writable({
    write(bytes, _encoding, done) {
      texts.push(String(bytes));
      done();
    },
  });
}

/** Runs a command on the store of the configuration in a file, and returns its JSON result; `exitWith` gets an exit code that it sets. */
export async function resultOf(
  words: readonly string[],
  config: string,
  place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  exitWith: (code: number) => void = () => undefined,
): Promise<unknown> {
  const { terminal: captured, out } = captureTerminal();
  const terminal = { ...captured, exitWith };
  const [name = '', ...args] = words;
  await runPluginCommand(name, args, { terminal, globals: { config, json: true }, args, options: {} }, place);
  return (JSON.parse(out()) as { readonly data: unknown }).data;
}
