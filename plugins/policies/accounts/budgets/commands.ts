import { type BudgetValues, type Command, GatewayError, type Subcommand } from '../../../../core/index.ts';
import type { AccountRaises } from './account-raises.ts';
import type { BudgetManager } from './manage.ts';
import { raiseCommand } from './raise-command.ts';
import type { Viewer } from './routes.ts';

/** `tollgate budgets list|put|remove|raise`: what operators do with budgets, on the configured store directly. */
export function budgetCommand(manager: BudgetManager, raises: AccountRaises, show: Viewer): Command {
  return {
    name: 'budgets',
    summary: 'List, make, remove and raise budgets',
    subcommands: [
      listCommand(manager, show),
      putCommand(manager, show),
      removeCommand(manager, show),
      raiseCommand(manager, raises, show),
    ],
  };
}

const HEAD = [
  'NAME',
  'OF',
  'EVERY',
  'ZONE',
  'LIMIT USD',
  'SPENT USD',
  'HELD USD',
  'LEFT USD',
  'RESETS UTC',
  'OWNER',
] as const;

function listCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'list',
    summary: 'List the budgets that calls share, with what is spent of each',
    async run({ io }) {
      const budgets = await show(await manager.list());
      const rows = budgets.map((budget) => {
        const text = (field: string): string => String(budget[field] ?? '-');
        const limit = budget['raised'] === undefined ? text('amount') : `${text('amount')}+${text('raised')}`;
        const of = text(text('of'));
        const numbers = [limit, text('spent'), text('held'), text('left')];
        return [
          text('name'),
          of === '-' ? 'all' : of,
          text('every'),
          text('timezone'),
          ...numbers,
          text('resets_at'),
          text('owner'),
        ];
      });
      io.result(budgets, rows.length === 0 ? 'There are no budgets.' : io.table(HEAD, rows));
    },
  };
}

/** The longest name that a budget counts by. */
const MAX_FILTER = 300;
const FILTERS = ['user', 'key', 'tag', 'plan', 'provider', 'model'] as const;

function putCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'put',
    summary: 'Make or replace a budget that the store owns; gateways that run count it within five seconds',
    args: [
      { name: '<name>', summary: 'what it is called; what is spent is counted under it' },
      { name: '<amount>', summary: 'US dollars a period, such as 20.00' },
    ],
    options: [
      { flags: '--every <period>', summary: 'total, hour, day, week or month', required: true },
      { flags: '--timezone <zone>', summary: 'whose clock begins a period, such as Europe/Berlin; UTC unless given' },
      { flags: '--starts-on <day>', summary: 'of a week a weekday, of a month 1 to 28' },
      { flags: '--soft <amount>', summary: 'US dollars from which on it is warned of' },
      { flags: '--user <id>', summary: 'counts calls of this user alone' },
      { flags: '--key <id>', summary: 'counts calls of this API key alone, and of those that replace it' },
      { flags: '--tag <name=value>', summary: 'counts calls with this tag alone' },
      { flags: '--plan <name>', summary: 'counts calls of users with this plan alone' },
      { flags: '--provider <name>', summary: 'counts calls at this provider alone' },
      { flags: '--model <id>', summary: 'counts this model alone; gpt-5* is all that begin so' },
    ],
    async run({ args: [name = '', amount = ''], options, io, actor }) {
      const every = options['every'];
      if (!isPeriod(every))
        throw new GatewayError('invalid_request', '--every is total, hour, day, week or month.', { param: 'every' });
      const starts = options['startsOn'];
      const long = FILTERS.find((field) => String(options[field] ?? '').length > MAX_FILTER);
      if (long !== undefined)
        throw new GatewayError('invalid_request', `--${long} is longer than ${MAX_FILTER} characters.`, {
          param: long,
        });
      const filter = FILTERS.flatMap((field) => (typeof options[field] === 'string' ? [[field, options[field]]] : []));
      const budget = await manager.put(
        name,
        {
          ...{ amount_usd: amount, every },
          timezone: typeof options['timezone'] === 'string' ? options['timezone'] : 'UTC',
          ...(typeof starts === 'string' && { starts_on: /^\d+$/.test(starts) ? Number(starts) : starts }),
          ...(typeof options['soft'] === 'string' && { soft_usd: options['soft'] }),
          ...Object.fromEntries(filter),
        },
        { actor },
      );
      const [shown] = await show([budget]);
      io.result(shown, `the budget ${name} is ${amount} USD ${every === 'total' ? 'in all' : `a ${every}`}`);
    },
  };
}

function removeCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'remove',
    summary: 'Remove a budget that the store owns',
    args: [{ name: '<name>', summary: 'a budget of "budgets list"' }],
    async run({ args: [name = ''], io, actor }) {
      const [removed] = await show([await manager.remove(name, { actor })]);
      io.result(removed, `the budget ${name} is removed`);
    },
  };
}

function isPeriod(value: unknown): value is BudgetValues['every'] {
  return ['total', 'hour', 'day', 'week', 'month'].some((period) => period === value);
}
