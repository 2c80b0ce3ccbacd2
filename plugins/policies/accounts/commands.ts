import { randomUUID } from 'node:crypto';
import type Keyv from 'keyv';
import {
  type AccountRecord,
  accountKey,
  type Command,
  formatUsd,
  GatewayError,
  type PluginApi,
  parseUsd,
  type Subcommand,
} from '../../../core/index.ts';
import { isStoreFailure } from '../kit/write-queue.ts';

/** How many ledger entries `accounts show` prints. */
const SHOWN_ENTRIES = 20;

/** `tollgate accounts credit|show|plan`: what operators do with accounts, on the configured store directly. */
export function accountCommand(api: PluginApi, accounts: Keyv<AccountRecord>): Command {
  return {
    name: 'accounts',
    summary: 'Credit and show accounts, and set their plans',
    subcommands: [creditCommand(api), showCommand(api, accounts), planCommand(api, accounts)],
  };
}

function creditCommand({ ledger }: PluginApi): Subcommand {
  return {
    name: 'credit',
    summary: 'Add money to an account (a negative amount takes it back)',
    args: [
      { name: '<user>', summary: 'the user id, as in the tokens or in "keys create --user"' },
      { name: '<amount>', summary: 'US dollars, such as 25.00' },
    ],
    options: [
      { flags: '--reason <text>', summary: 'what for; kept in the ledger' },
      { flags: '--id <id>', summary: 'an id of your own: crediting it twice credits it once' },
    ],
    async run({ args: [user = '', text = ''], options, io }) {
      const micro = readAmount(text);
      const id = typeof options['id'] === 'string' ? options['id'] : randomUUID();
      const reason = typeof options['reason'] === 'string' ? options['reason'] : 'credit';
      const isNew = await ledger.credit(user, id, micro, reason, Date.now()).catch((error: unknown) => {
        if (isStoreFailure(error))
          io.note(`It is not known whether ${user} was credited. Run it again with --id ${id}: it then counts once.`);
        throw error;
      });
      const amount = formatUsd(micro);
      const balance = formatUsd((await ledger.balance(user)).balance);
      io.result(
        { user_id: user, id, credited: isNew, amount, balance },
        isNew
          ? `credited ${amount} USD to ${user}; the balance is ${balance} USD`
          : `"${id}" was credited before; the balance of ${user} is ${balance} USD`,
      );
    },
  };
}

function showCommand(api: PluginApi, accounts: Keyv<AccountRecord>): Subcommand {
  return {
    name: 'show',
    summary: 'Show the balance, the plan and the newest entries of an account',
    args: [{ name: '<user>', summary: 'the user id' }],
    async run({ args: [user = ''], io }) {
      const [account, found, record] = await Promise.all([
        api.ledger.balance(user),
        api.ledger.entries(user, { limit: SHOWN_ENTRIES }),
        accounts.get(accountKey(user)),
      ]);
      const plan = record?.plan ?? api.settings.defaultPlan ?? null;
      const entries = found.map(({ at, kind, amount, reason, ref }) => ({
        at: new Date(at).toISOString(),
        kind,
        amount: formatUsd(amount),
        reason,
        ref,
      }));
      const balance = formatUsd(account.balance);
      const held = formatUsd(account.held);
      const spent = formatUsd(account.spent);
      const credited = formatUsd(account.credited);
      const lines = [
        `account   ${user}`,
        `plan      ${plan ?? '-'}`,
        `balance   ${balance} USD (held ${held})`,
        `spent     ${spent} USD of ${credited} USD credited`,
        ...entries.map(({ at, kind, amount, reason }) => `${at}  ${kind.padEnd(6)}  ${amount.padStart(12)}  ${reason}`),
      ];
      io.result({ user_id: user, plan, balance, held, spent, credited, entries }, lines.join('\n'));
    },
  };
}

function planCommand(api: PluginApi, accounts: Keyv<AccountRecord>): Subcommand {
  return {
    name: 'plan',
    summary: 'Give an account a plan of the configuration',
    args: [
      { name: '<user>', summary: 'the user id' },
      { name: '<plan>', summary: 'a name under "plans" in the configuration' },
    ],
    async run({ args: [user = '', plan = ''], io }) {
      const names = Object.keys(api.settings.plans);
      if (!names.includes(plan))
        throw new GatewayError(
          'invalid_request',
          `there is no plan "${plan}" in the configuration; plans are: ${names.join(', ') || 'none'}`,
        );
      await accounts.set(accountKey(user), { plan });
      io.result({ user_id: user, plan }, `${user} has the plan ${plan}`);
    },
  };
}

function readAmount(text: string): number {
  try {
    const micro = parseUsd(text);
    if (micro !== 0) return micro;
  } catch (cause) {
    throw new GatewayError('invalid_request', cause instanceof Error ? cause.message : 'not an amount', {
      param: 'amount',
      cause,
    });
  }
  throw new GatewayError('invalid_request', 'The amount must not be 0.', { param: 'amount' });
}
