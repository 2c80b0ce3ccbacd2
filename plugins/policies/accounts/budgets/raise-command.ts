import { GatewayError, parseDuration, type Subcommand } from '../../../../core/index.ts';
import { type AccountRaises, showRaise } from './account-raises.ts';
import { isoSeconds } from './counted.ts';
import type { BudgetManager } from './manage.ts';
import type { RaiseValues } from './raises.ts';
import type { Viewer } from './routes.ts';

/** `tollgate budgets raise`: a budget that calls share or, with `--account`, one of the account's plan. */
export function raiseCommand(manager: BudgetManager, raises: AccountRaises, show: Viewer): Subcommand {
  return {
    name: 'raise',
    summary: 'Raise a budget for a while, also one of the configuration or of one account; or end its raises',
    args: [
      { name: '<name>', summary: 'a budget of "budgets list"; with --account, one of its plan' },
      { name: '[amount]', summary: 'US dollars beside its own' },
    ],
    options: [
      { flags: '--until <time>', summary: 'when it ends: a date-time with a zone, or how long it lasts, such as 2d' },
      { flags: '--account <id>', summary: 'for this account alone, such as u_42: a budget of its plan' },
      { flags: '--end', summary: 'ends all raises of the budget instead' },
    ],
    async run({ args: [name = '', amount], options, io, actor }) {
      const { account } = options;
      const isOwn = typeof account === 'string';
      const whose = isOwn ? `${name} of ${account}` : name;
      if (options['end'] === true) {
        const ended = isOwn
          ? showRaise(await raises.end(actor, account, name))
          : (await show([await manager.endRaises(name, { actor })]))[0];
        io.result(ended, `the budget ${whose} has no raise any more`);
        return;
      }
      const values = readValues(amount, options['until']);
      const raised = isOwn
        ? showRaise(await raises.raise(actor, account, name, values))
        : (await show([await manager.raise(name, values, { actor })]))[0];
      io.result(raised, `the budget ${whose} has ${amount} USD more until ${values.until}`);
    },
  };
}

function readValues(amount: string | undefined, until: unknown): RaiseValues {
  if (amount !== undefined && typeof until === 'string') return { amount_usd: amount, until: readEnd(until) };
  throw new GatewayError(
    'invalid_request',
    'A raise needs an amount and an end: tollgate budgets raise <name> 5 --until 2d',
  );
}

/** A time, or how long from now. */
function readEnd(text: string): string {
  try {
    return isoSeconds(Math.ceil((Date.now() + parseDuration(text)) / 1000) * 1000);
  } catch {
    return text;
  }
}
