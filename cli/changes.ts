import { isObject } from '../contract/json.ts';
import type { CommandContext } from './io.ts';
import { createIo, plainText } from './io.ts';
import { callAdmin, findRunning } from './running-gateway.ts';

/** Fields of a proposed change that commands show. */
interface ShownChange {
  readonly id: string;
  readonly state: string;
  readonly operation: string;
  readonly summary: string;
  readonly method: string;
  readonly path: string;
  readonly body: object | null;
  readonly before: unknown;
  readonly differences: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[];
  readonly reason: string | null;
  readonly proposed_by: { readonly user_id: string };
  readonly expires_at: string;
  readonly problem: string | null;
}

const HEAD = ['ID', 'STATE', 'CHANGE', 'PATH', 'PROPOSED BY', 'EXPIRES'] as const;

/** `tollgate audit changes`: lists the proposed changes that the operator may confirm. */
export async function listChanges(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const list = (await callAdmin(await findRunning(context), 'GET', '/changes')) as { readonly data: ShownChange[] };
  const rows = list.data.map((change) =>
    [change.id, change.state, change.summary, change.path, change.proposed_by.user_id, change.expires_at].map(
      plainText,
    ),
  );
  io.result(list, rows.length === 0 ? 'No changes are proposed.' : io.table(HEAD, rows));
}

/** `tollgate audit changes show`: what a change does, before it is confirmed. */
export async function showChange(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const change = (await callAdmin(await findRunning(context), 'GET', pathOf(context))) as ShownChange;
  io.result(change, describe(change));
}

/** `tollgate audit changes confirm`: makes a change with the rights of the operator. */
export async function confirmChange(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const reply = (await callAdmin(await findRunning(context), 'POST', `${pathOf(context)}/confirm`)) as {
    readonly change: ShownChange;
    readonly result: unknown;
  };
  io.note(`confirmed: ${plainText(reply.change.summary)}`);
  io.result(reply, JSON.stringify(reply.result, undefined, 2));
}

/** `tollgate audit changes reject`. */
export async function rejectChange(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const change = (await callAdmin(await findRunning(context), 'POST', `${pathOf(context)}/reject`)) as ShownChange;
  io.result(change, `rejected: ${plainText(change.summary)}`);
}

function pathOf({ args }: CommandContext): string {
  return `/changes/${encodeURIComponent(args[0] ?? '')}`;
}

function describe(change: ShownChange): string {
  const { summary, method, path, differences, body, before, reason, proposed_by: by, problem } = change;
  return [
    `${plainText(summary)}  (${change.state}, until ${change.expires_at})`,
    `  ${method} ${plainText(path)}`,
    `  proposed by ${plainText(by.user_id)}${reason === null ? '' : `: ${plainText(reason)}`}`,
    ...differences.flatMap(({ field, before: was, after }) => [
      ...(was === null ? [] : [`  - ${plainText(field)}: ${json(was)}`]),
      `  + ${plainText(field)}: ${json(after)}`,
    ]),
    ...(differences.length === 0 && isObject(body) ? [`  with ${json(body)}`] : []),
    ...(method === 'DELETE' && before !== null ? [`  - ${json(before)}`] : []),
    ...(problem === null ? [] : [`  failed: ${plainText(problem)}`]),
  ].join('\n');
}

function json(value: unknown): string {
  return plainText(JSON.stringify(value));
}
