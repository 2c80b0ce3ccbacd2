import { type TargetRow, targetRows } from '../calls/routing/routing-states.ts';
import type { CommandContext } from './commands.ts';
import { type ControlReply, callGateways } from './control.ts';
import { CliError, createIo, EXIT, formatTable } from './io.ts';
import { loadFor } from './load.ts';

/** `tollgate targets`: what every gateway on this configuration's data folder knows of its targets, all of its workers together. */
export async function run(context: CommandContext): Promise<void> {
  const { settings } = await loadFor(context);
  const replies = await callGateways(settings.dataDir, 'targets');
  if (replies.length === 0)
    throw new CliError(
      `no gateway of this configuration runs on ${settings.dataDir}`,
      EXIT.unavailable,
      'Run this as the same user, on the same machine and with the same configuration as the gateway.',
    );
  createIo(context.terminal, context.globals.json === true).result(
    replies.map((reply) => ({ pid: reply.pid, targets: targetRows(reply), retries: reply.retries })),
    replies.map((reply) => describe(reply, Date.now())).join('\n\n'),
  );
}

const HEAD = [
  'TARGET',
  'STATE',
  'WHY',
  'LEFT ALONE S',
  'ERRORS %',
  'ATTEMPTS',
  'WHOLE MS',
  'FIRST TOKEN MS',
  'LAST ERROR',
];

function describe(reply: ControlReply<'targets'>, now: number): string {
  const { running, allowed, refused } = reply.retries;
  const head = `process ${reply.pid}: ${running} of ${allowed} retries run, ${refused} were refused since the start`;
  const rows = targetRows(reply).map((row) => cellsOf(row, now));
  return `${head}\n${rows.length === 0 ? 'No target was tried yet.' : formatTable(HEAD, rows)}`;
}

function cellsOf(row: TargetRow, now: number): readonly string[] {
  const { target, state, cause, open_until: until, error_ratio: ratio, last_error: error } = row;
  const leftMs = until === undefined ? 0 : Math.max(Date.parse(until) - now, 0);
  return [
    ...[target, state, cause ?? '', leftMs === 0 ? '' : String(Math.ceil(leftMs / 1000))],
    ...[(ratio * 100).toFixed(1), String(row.attempts), numberOf(row.whole_ms), numberOf(row.first_token_ms)],
    error ? `${error.at} ${error.status ?? error.errno ?? error.class ?? ''} ${error.message}` : '',
  ];
}

function numberOf(ms: number | undefined): string {
  return ms === undefined ? '' : ms.toFixed(0);
}
