/**
 * All commands of `tollgate` as data, and a function that runs a plugin's command in this process as the program does.
 */

import { trySetUp } from '../../cli/check-config.ts';
import { reportFailure } from '../../cli/io.ts';
import { runPluginCommand } from '../../cli/plugin-commands.ts';
import { COMMANDS } from '../../cli/program.ts';
import { loadConfig } from '../../config/load-config.ts';
import { createSilentLog } from '../support/log.ts';
import type { Finished } from '../support/processes/cli.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';

interface Named {
  readonly name: string;
  readonly run?: unknown;
  readonly load?: unknown;
  readonly subcommands?: readonly Named[];
}

/** Paths of executable commands, such as `keys create`. */
function pathsOf(rows: readonly Named[]): readonly string[] {
  return rows.flatMap(({ name, run, load, subcommands = [] }) => [
    ...(run !== undefined || load !== undefined ? [name] : []),
    ...subcommands.map((sub) => `${name} ${sub.name}`),
  ]);
}

export const CORE_PATHS: readonly string[] = pathsOf(COMMANDS);

/** Commands of a configuration's plugins. */
export async function readPluginPaths(configPath: string): Promise<readonly string[]> {
  const paths: string[] = [];
  const loaded = await loadConfig({ cwd: process.cwd(), env: {}, configPath });
  await trySetUp(loaded, createSilentLog(), ({ registry }) => {
    paths.push(...pathsOf([...registry.commands.values()].map(({ value }) => value)));
  });
  return paths;
}

/** Runs a plugin's command to its end. */
export async function runInProcess(words: readonly string[], config: string, json: boolean): Promise<Finished> {
  const { terminal, out, err } = captureTerminal();
  const [name = '', ...args] = words;
  let code = 0;
  try {
    await runPluginCommand(name, args, { terminal, globals: { config, json }, args, options: {} });
  } catch (error) {
    code = reportFailure(error, terminal, json);
  }
  return { code, stdout: out(), stderr: err() };
}
