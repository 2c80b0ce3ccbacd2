/** Runs plugins' commands in this process as the program does. */
import { Writable } from 'node:stream';
import pc from 'picocolors';
import type { CommandContext, Terminal } from '../../../cli/io.ts';
import type { ConfigLocation } from '../../../cli/load.ts';
import { runCommandOf, runPluginCommand } from '../../../cli/plugin-commands.ts';
import type { Generation } from '../../../core/calls/generation.ts';

export interface CapturedTerminal {
  readonly terminal: Terminal;
  /** Output so far on stdout and stderr. */
  out(): string;
  err(): string;
  /** Exit code of a command, if it sets one. */
  exitCode(): number | undefined;
}

/** Terminal without colours that stores its output. */
export function captureTerminal(): CapturedTerminal {
  const [out, err]: [string[], string[]] = [[], []];
  let exitCode: number | undefined;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const terminal = { out: keepIn(out), err: keepIn(err), isTty: false, colors: pc.createColors(false), exitWith };
  return { terminal, out: () => out.join(''), err: () => err.join(''), exitCode: () => exitCode };
}

/** Stream that stores its text. */
export function keepIn(texts: string[]): Writable {
  return new Writable({
    write(bytes, _encoding, done) {
      texts.push(String(bytes));
      done();
    },
  });
}

/**
 * Runs a command on the store of a configuration file and returns its JSON result; `exitWith` receives the exit code.
 */
export async function resultOf(
  words: readonly string[],
  config: string,
  place: ConfigLocation,
  exitWith: (code: number) => void = () => undefined,
): Promise<unknown> {
  return resultFrom(words, config, exitWith, (name, args, context) => runPluginCommand(name, args, context, place));
}

/** As {@link resultOf}, on a generation that is open. */
export function resultOn(
  generation: Generation,
  words: readonly string[],
  config: string,
  exitWith: (code: number) => void,
): Promise<unknown> {
  return resultFrom(words, config, exitWith, (name, args, context) => runCommandOf(generation, name, args, context));
}

async function resultFrom(
  words: readonly string[],
  config: string,
  exitWith: (code: number) => void,
  run: (name: string, args: readonly string[], context: CommandContext) => Promise<void>,
): Promise<unknown> {
  const { terminal: captured, out } = captureTerminal();
  const terminal = { ...captured, exitWith };
  const [name = '', ...args] = words;
  await run(name, args, { terminal, globals: { config, json: true }, args, options: {} });
  return (JSON.parse(out()) as { readonly data: unknown }).data;
}
