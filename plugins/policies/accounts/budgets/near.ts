import { formatUsd, type Ledger } from '../../../../contract/index.ts';
import { printable } from '../../kit/printable.ts';
import { type Action, listAction } from '../../kit/resource.ts';
import { SHARED } from './budget-table.ts';
import { type BudgetClock, type CountedBudget, createCounter, EACH, resetsAt, scopeOf } from './budget-window.ts';
import type { ListPlanBudgets } from './plan-budgets.ts';
import type { BudgetRecords } from './records.ts';
import { readStates } from './view.ts';

/** Maximum number of accounts searched for plan budgets, and maximum number of rows shown. */
const MAX_ACCOUNTS = 1000;
const MAX_ROWS = 100;

const TEXT = { type: 'string' } as const;
const MONEY = { type: 'string', description: 'US dollars as a decimal string.' } as const;
const ROW = {
  type: 'object',
  required: [
    'budget',
    'of',
    'whose',
    'used',
    'amount_usd',
    'spent_usd',
    'left_usd',
    'starts_at',
    'resets_at',
    'forecast_usd',
    'runs_out_at',
  ],
  properties: {
    budget: TEXT,
    of: {
      enum: ['all', 'user', 'key', 'tag', 'plan', 'account'],
      description: '`account`: of an account by its plan.',
    },
    whose: { ...TEXT, description: 'User, key, tag, plan or account, or `all`.' },
    plan: { ...TEXT, description: 'For an account: its plan, or the plan of its keys and tokens.' },
    used: { type: 'number', description: 'Spent and held share; over 1 if overspent.' },
    amount_usd: { ...MONEY, description: 'Limit, raises included.' },
    spent_usd: MONEY,
    left_usd: MONEY,
    starts_at: { type: ['string', 'null'], description: 'Start of its period, ISO 8601; null if it never resets.' },
    resets_at: {
      type: ['string', 'null'],
      description: 'Time of the next reset, ISO 8601; null if it never resets.',
    },
    forecast_usd: {
      type: ['string', 'null'],
      description: 'Amount spent at the next reset, at the rate since the start; null in the first part of a period.',
    },
    runs_out_at: {
      type: ['string', 'null'],
      description: 'Time at which it is spent, at the rate since the start; null if that is after the next reset.',
    },
  },
} as const;

interface Parts {
  readonly records: Pick<BudgetRecords, 'read'>;
  readonly listPlanBudgets: ListPlanBudgets;
  readonly ledger: Pick<Ledger, 'accounts' | 'budgets'>;
  readonly now: BudgetClock;
}

/** Lists the budgets with the largest used share: shared budgets, and budgets of accounts by their plans. */
export function nearAction(parts: Parts): Action {
  const { route, subcommand } = listAction(
    { path: '/api/core/admin/near-budgets', scope: 'budgets:read' },
    {
      http: {
        summary: 'List the budgets with the largest used share',
        description: `At most ${MAX_ROWS} shared budgets and plan budgets of up to ${MAX_ACCOUNTS} accounts, their keys and tokens. The routes of keys show the budgets of a key itself.`,
        response: 'The nearest first; with `has_more` where there are more, or more accounts.',
        schema: ROW,
        isWhole: true,
      },
      async read() {
        const at = parts.now();
        const { found, isWhole } = await findAll(parts, at);
        const states = await readStates(
          parts.ledger,
          found.map(({ budget }) => budget),
        );
        const rows = found.flatMap((each, place) => {
          const { spent, held } = states[place] ?? { spent: 0, held: 0 };
          // Skip unused plans that are not the account's own.
          if (each.isOwn === false && spent + held === 0) return [];
          return [showRow(each, { spent, held }, at)];
        });
        const sorted = rows.toSorted((a, b) => b.used - a.used || (a.budget < b.budget ? -1 : 1));
        return { rows: sorted.slice(0, MAX_ROWS), hasMore: !isWhole || sorted.length > MAX_ROWS };
      },
      cli: {
        columns: [
          ['BUDGET', ({ budget }) => budget],
          [
            'OF',
            ({ of, whose, plan }) =>
              of === 'all' ? of : `${of} ${printable(whose)}${plan === undefined ? '' : `, plan ${printable(plan)}`}`,
          ],
          ['USED %', ({ used }) => String(Math.floor(used * 100))],
          ['SPENT USD', ({ spent_usd }) => spent_usd],
          ['LEFT USD', ({ left_usd }) => left_usd],
          ['RESETS UTC', ({ resets_at }) => resets_at ?? '-'],
          ['FORECAST USD', ({ forecast_usd }) => forecast_usd ?? '-'],
          ['RUNS OUT UTC', ({ runs_out_at }) => runs_out_at ?? '-'],
        ],
        empty: 'There are no budgets.',
      },
    },
  );
  return { route, subcommand: { ...subcommand, name: 'near' } };
}

/** Budget, and the plan that gives it to an account. */
interface Found {
  readonly budget: CountedBudget;
  readonly account?: string;
  readonly plan?: string;
  readonly isOwn?: boolean;
}

async function findAll({ records, listPlanBudgets, ledger }: Parts, at: number) {
  const { budgets: shared } = await records.read();
  const found = shared.flatMap(({ rule, raises }): readonly Found[] =>
    // Amounts of each end user are not listed: there may be any number.
    rule.endUser === EACH
      ? []
      : [{ budget: createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises })(at) }],
  );
  const accounts = await ledger.accounts({ limit: MAX_ACCOUNTS + 1 });
  for (const { account } of accounts.slice(0, MAX_ACCOUNTS))
    for (const each of await listPlanBudgets(account, at)) found.push({ ...each, account });
  return { found, isWhole: accounts.length <= MAX_ACCOUNTS };
}

interface State {
  readonly spent: number;
  readonly held: number;
}

function showRow({ budget, account, plan }: Found, { spent, held }: State, now: number) {
  const { rule, scope, limit } = budget;
  return {
    budget: rule.name,
    of: account === undefined ? scope : 'account',
    whose: account ?? (scope === 'all' ? scope : (rule[scope] ?? scope)),
    ...(plan !== undefined && { plan }),
    used: Math.round(((spent + held) / limit) * 10_000) / 10_000,
    amount_usd: formatUsd(limit),
    spent_usd: formatUsd(spent),
    left_usd: formatUsd(Math.max(limit - spent - held, 0)),
    ...forecast(budget, spent + held, now),
    resets_at: resetsAt(budget),
  };
}

/** Share of a period after which its rate says something about the rest. */
const LEAST_SHARE = 0.02;

/** Spending at the end of the period, at the rate since its start, or since the budget was created. */
function forecast({ window, since, limit }: CountedBudget, used: number, now: number) {
  const { end } = window;
  if (end === Number.POSITIVE_INFINITY) return { starts_at: null, forecast_usd: null, runs_out_at: null };
  const start = Math.max(window.start, since ?? 0);
  const starts_at = new Date(window.start).toISOString();
  const elapsed = now - start;
  if (elapsed < LEAST_SHARE * (end - window.start) || elapsed <= 0)
    return { starts_at, forecast_usd: null, runs_out_at: null };
  const rate = used / elapsed;
  const runsOutAt = used >= limit ? now : start + limit / rate;
  return {
    starts_at,
    forecast_usd: formatUsd(Math.round(used + rate * (end - now))),
    runs_out_at: runsOutAt < end ? new Date(runsOutAt).toISOString() : null,
  };
}
