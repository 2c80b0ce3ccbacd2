import { type Command, type CommandInput, GatewayError, type Subcommand } from '../../../core/index.ts';
import type { AccountOperations } from './account-operations.ts';

const ACCOUNT = { name: '<user>', summary: 'the user id, as in the tokens or in "keys create --user"' } as const;

/** `tollgate accounts list|show|credit|plan`: what operators do with accounts, on the configured store directly. */
export function accountCommand(operations: AccountOperations): Command {
  return {
    name: 'accounts',
    summary: 'List, credit and show accounts, and set their plans',
    subcommands: [creditCommand(operations), showCommand(operations), listCommand(operations), planCommand(operations)],
  };
}

function creditCommand(operations: AccountOperations): Subcommand {
  return {
    name: 'credit',
    summary: 'Add money to an account (a negative amount takes it back)',
    args: [ACCOUNT, { name: '<amount>', summary: 'US dollars, such as 25.00' }],
    options: [
      { flags: '--reason <text>', summary: 'what for; kept in the ledger' },
      { flags: '--id <id>', summary: 'an id of your own: crediting it twice credits it once' },
    ],
    async run({ args: [user = '', amount = ''], options, io, actor }) {
      const wish = { amount, id: textOf(options, 'id'), reason: textOf(options, 'reason') };
      const credited = await operations.credit(actor, user, wish);
      const { balance } = credited.account;
      io.result(
        credited,
        credited.credited
          ? `credited ${credited.amount} USD to ${user}; the balance is ${balance} USD`
          : `"${credited.id}" was credited before; the balance of ${user} is ${balance} USD`,
      );
    },
  };
}

function showCommand(operations: AccountOperations): Subcommand {
  return {
    name: 'show',
    summary: 'Show the balance, the plan and the newest entries of an account',
    args: [ACCOUNT],
    async run({ args: [user = ''], io }) {
      const { account, entries } = await operations.show(user);
      const { plan, balance, held, spent, credited } = account;
      const lines = [
        `account   ${user}`,
        `plan      ${plan ?? '-'}`,
        `balance   ${balance} USD (held ${held})`,
        `spent     ${spent} USD of ${credited} USD credited`,
        ...entries.map(({ at, kind, amount, reason }) => `${at}  ${kind.padEnd(6)}  ${amount.padStart(12)}  ${reason}`),
      ];
      io.result({ ...account, entries }, lines.join('\n'));
    },
  };
}

function listCommand(operations: AccountOperations): Subcommand {
  return {
    name: 'list',
    summary: 'List accounts that were ever credited or charged',
    options: [
      { flags: '--limit <n>', summary: 'how many at most; 100 by default, up to 1000' },
      { flags: '--after <account>', summary: 'goes on after this account' },
    ],
    async run({ options, io }) {
      const after = textOf(options, 'after');
      const page = { limit: readLimit(textOf(options, 'limit')), ...(after !== undefined && { after }) };
      const { accounts, next } = await operations.list(page);
      const rows = accounts.map(({ id, plan, balance, held, spent, credited }) => [
        id.replace(/[\p{Cc}\p{Cf}]/gu, '?'),
        plan ?? '-',
        ...[balance, held, spent, credited],
      ]);
      io.result(
        { object: 'list', data: accounts, has_more: next !== undefined, ...(next !== undefined && { next }) },
        io.table(['ACCOUNT', 'PLAN', 'BALANCE USD', 'HELD USD', 'SPENT USD', 'CREDITED USD'], rows),
      );
      if (next !== undefined) io.note(`There are more: --after ${JSON.stringify(next)}`);
    },
  };
}

function planCommand(operations: AccountOperations): Subcommand {
  return {
    name: 'plan',
    summary: 'Give an account a plan',
    args: [ACCOUNT, { name: '[plan]', summary: 'a name of "tollgate plans list"' }],
    options: [{ flags: '--clear', summary: 'take its plan away: the default plan holds then' }],
    async run({ args: [user = '', plan], options, io, actor }) {
      const isCleared = options['clear'] === true;
      if ((plan === undefined) !== isCleared)
        throw new GatewayError('invalid_request', 'Name a plan, or take it away with --clear.', { param: 'plan' });
      const { account } = await operations.setPlan(actor, user, plan ?? null);
      io.result(account, plan === undefined ? `${user} has no plan of its own` : `${user} has the plan ${plan}`);
    },
  };
}

function textOf(options: CommandInput['options'], name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return 100;
  if (/^([1-9]\d{0,2}|1000)$/.test(text)) return Number(text);
  throw new GatewayError('invalid_request', '--limit is a whole number from 1 to 1000.', { param: 'limit' });
}
