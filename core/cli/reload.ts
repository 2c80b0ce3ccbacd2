import { formatChange } from '../config/diff.ts';
import type { CommandContext } from './commands.ts';
import { type ControlReply, callGateways } from './control.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { loadFor } from './load.ts';

/**
 * `tollgate reload`: every gateway on this configuration's data folder reads its configuration anew; with `--diff` it only says what
 * that would change. Exit code 3 when one of them refuses it.
 */
export async function run(context: CommandContext): Promise<void> {
  const { terminal, globals, options } = context;
  const isTrial = options['diff'] === true;
  // A configuration with an error is told here, with its places; the running gateway is not even asked.
  const { settings } = await loadFor(context);
  const replies = await callGateways(settings.dataDir, isTrial ? 'compare' : 'reload');
  if (replies.length === 0)
    throw new CliError(
      `no gateway of this configuration runs on ${settings.dataDir}`,
      EXIT.unavailable,
      'Run this as the same user, on the same machine and with the same configuration as the gateway, or send it SIGHUP.',
    );
  const refused = replies.find(({ problem }) => problem !== undefined);
  if (refused)
    throw new CliError(
      `the gateway (process ${refused.pid}) refused the configuration and goes on with the former one:\n${refused.problem ?? ''}`,
      EXIT.config,
    );
  createIo(terminal, globals.json === true).result(replies, replies.map((each) => describe(each, isTrial)).join('\n'));
}

function describe({ pid, file, changes }: ControlReply<'reload'>, isTrial: boolean): string {
  const head = isTrial
    ? `process ${pid}: a reload of ${file} would change ${countOf(changes.length)}`
    : `process ${pid}: reloaded ${file}, ${countOf(changes.length)} changed`;
  return [head, ...changes.map((change) => `  ${formatChange(change)}`)].join('\n');
}

function countOf(changes: number): string {
  return changes === 0 ? 'nothing' : changes === 1 ? '1 place' : `${changes} places`;
}
