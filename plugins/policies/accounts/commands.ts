import { randomUUID } from 'node:crypto';
import { type Command, formatUsd, GatewayError, type PluginApi, parseUsd } from '../../../core/index.ts';
import { ACCOUNTS, type AccountRecord, accountKey } from '../kit/plan-of.ts';
import { isStoreFailure } from '../kit/store-failure.ts';

/** How many ledger entries `accounts show` prints. */
const SHOWN_ENTRIES = 20;

/** `tollgate accounts credit|show|plan`: the operator's hand on accounts, on the configured store directly. */
export function accountCommand(api: PluginApi): Command {
  return {
    name: 'accounts',
    summary: 'Credit and show accounts, and set their plans',
    subcommands: [
      {
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
        async run({ args: [user = '', amount = ''], options, io }) {
          const micro = readAmount(amount);
          const id = typeof options['id'] === 'string' ? options['id'] : randomUUID();
          const reason = typeof options['reason'] === 'string' ? options['reason'] : 'credit';
          const isNew = await api.ledger.credit(user, id, micro, reason, Date.now()).catch((error: unknown) => {
            if (isStoreFailure(error))
              io.note(`Nobody knows whether ${user} was credited. Run it again with --id ${id}: it then counts once.`);
            throw error;
          });
          const { balance } = await api.ledger.balance(user);
          const text = isNew
            ? `credited ${formatUsd(micro)} USD to ${user}; the balance is ${formatUsd(balance)} USD`
            : `"${id}" was credited before; the balance of ${user} is ${formatUsd(balance)} USD`;
          io.result(
            { user_id: user, id, credited: isNew, amount: formatUsd(micro), balance: formatUsd(balance) },
            text,
          );
        },
      },
      {
        name: 'show',
        summary: 'Show the balance, the plan and the newest entries of an account',
        args: [{ name: '<user>', summary: 'the user id' }],
        async run({ args: [user = ''], io }) {
          const [balance, entries, record] = await Promise.all([
            api.ledger.balance(user),
            api.ledger.entries(user, { limit: SHOWN_ENTRIES }),
            api.keyv<AccountRecord>(ACCOUNTS).get(accountKey(user)),
          ]);
          const plan = record?.plan ?? api.settings.defaultPlan ?? null;
          const shown = entries.map(({ at, kind, amount, reason, ref }) => ({
            at: new Date(at).toISOString(),
            kind,
            amount: formatUsd(amount),
            reason,
            ref,
          }));
          const lines = [
            `account   ${user}`,
            `plan      ${plan ?? '-'}`,
            `balance   ${formatUsd(balance.balance)} USD (held ${formatUsd(balance.held)})`,
            `spent     ${formatUsd(balance.spent)} USD of ${formatUsd(balance.credited)} USD credited`,
            ...shown.map(
              (entry) => `${entry.at}  ${entry.kind.padEnd(6)}  ${entry.amount.padStart(12)}  ${entry.reason}`,
            ),
          ];
          io.result(
            {
              user_id: user,
              plan,
              balance: formatUsd(balance.balance),
              held: formatUsd(balance.held),
              spent: formatUsd(balance.spent),
              credited: formatUsd(balance.credited),
              entries: shown,
            },
            lines.join('\n'),
          );
        },
      },
      {
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
          await api.keyv<AccountRecord>(ACCOUNTS).set(accountKey(user), { plan });
          io.result({ user_id: user, plan }, `${user} has the plan ${plan}`);
        },
      },
    ],
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
