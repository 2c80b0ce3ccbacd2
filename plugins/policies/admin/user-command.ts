import { type Command, type CommandInput, GatewayError } from '../../../core/index.ts';
import type { ShownUser, UserOperations } from './user-operations.ts';

const USER = { name: '<id>', summary: 'the user id, as in the tokens or in "keys create --user"' } as const;
const WITHIN = 'gateways that run know it within five seconds';

/** `tollgate users`: whom a key or a token names. */
export function userCommand(operations: UserOperations): Command {
  return {
    name: 'users',
    summary: 'Show, block and unblock users',
    subcommands: [
      {
        name: 'show',
        summary: 'Show whether a user is blocked',
        args: [USER],
        async run({ args, io }) {
          const { user } = await operations.find(args[0] ?? '');
          io.result(user, describe(user));
          io.note('Their keys: "tollgate keys list --user <id>"; their account: "tollgate accounts show <id>".');
        },
      },
      {
        name: 'block',
        summary: 'Refuse a user, with all keys and tokens, until unblocked',
        args: [USER],
        options: [{ flags: '--reason <text>', summary: 'why; shown to operators' }],
        async run({ args, options, io, actor }) {
          const { user } = await operations.block(actor, args[0] ?? '', readReason(options));
          io.result(user, `${describe(user)}; ${WITHIN}`);
        },
      },
      {
        name: 'unblock',
        summary: 'Let a blocked user in again',
        args: [USER],
        async run({ args, io, actor }) {
          const { user } = await operations.unblock(actor, args[0] ?? '');
          io.result(user, `${describe(user)}; ${WITHIN}`);
        },
      },
    ],
  };
}

function describe({ id, blocked_at, blocked_reason }: ShownUser): string {
  if (blocked_at === null) return `${id} is not blocked`;
  return `${id} is blocked since ${blocked_at}${blocked_reason ? ` (${blocked_reason})` : ''}`;
}

function readReason({ reason }: CommandInput['options']): string | undefined {
  if (typeof reason !== 'string') return undefined;
  if (reason.length <= 200 && !/\p{Cc}/u.test(reason)) return reason;
  throw new GatewayError('invalid_request', '--reason is a line of up to 200 characters.', { param: 'reason' });
}
