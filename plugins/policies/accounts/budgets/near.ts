import { formatUsd, type Ledger } from '../../../../contract/index.ts';
import { printable } from '../../kit/printable.ts';
import { type Action, listAction } from '../../kit/resource.ts';
import { type BudgetClock, type CountedBudget, createCounter, resetsAt, scopeOf } from './budget-window.ts';
import { type BudgetBook, SHARED } from './find-budgets.ts';
import type { BudgetRecords } from './records.ts';
import { readStates } from './view.ts';

/** How many accounts are looked at for the budgets of their plans, and how many rows are shown. */
const MAX_ACCOUNTS = 1000;
const MAX_ROWS = 100;

const TEXT = { type: 'string' } as const;
const MONEY = { type: 'string', description: 'US dollars as a decimal string.' } as const;
const ROW = {
  type: 'object',
  required: ['budget', 'of', 'whose', 'used', 'amount_usd', 'spent_usd', 'left_usd', 'resets_at'],
  properties: {
    budget: TEXT,
    of: { enum: ['all', 'user', 'key', 'tag', 'plan', 'account'], description: '`account`: of its plan.' },
    whose: { ...TEXT, description: 'The user, key, tag, plan or account; `all`.' },
    used: { type: 'number', description: 'The share that is spent or held; over 1 where it was overspent.' },
    amount_usd: { ...MONEY, description: 'What may be spent, raises included.' },
    spent_usd: MONEY,
    left_usd: MONEY,
    resets_at: {
      type: ['string', 'null'],
      description: 'When it begins anew, ISO 8601; null for one that never does.',
    },
  },
} as const;

interface Parts {
  readonly records: Pick<BudgetRecords, 'read'>;
  readonly book: Pick<BudgetBook, 'find'>;
  readonly ledger: Pick<Ledger, 'accounts' | 'budgets'>;
  readonly now: BudgetClock;
}

/** The budgets that are nearest to their end: those that calls share, and those that accounts have by their plans. */
export function nearAction(parts: Parts): Action {
  const { route, subcommand } = listAction(
    { path: '/api/core/admin/near-budgets', scope: 'budgets:read' },
    {
      http: {
        summary: 'List the budgets that are nearest to their end',
        description: `The ${MAX_ROWS} of which the largest share is spent or held, of those that calls share and of the plans of up to ${MAX_ACCOUNTS} accounts. Those of keys are with the keys.`,
        response: 'The nearest first; with `has_more` where there are more, or more accounts.',
        schema: ROW,
        isWhole: true,
      },
      async read() {
        const { budgets, isWhole } = await findAll(parts);
        const states = await readStates(parts.ledger, budgets);
        const rows = budgets.map((budget, at) => showRow(budget, states[at] ?? { spent: 0, held: 0 }));
        const sorted = rows.toSorted((a, b) => b.used - a.used || (a.budget < b.budget ? -1 : 1));
        return { rows: sorted.slice(0, MAX_ROWS), hasMore: !isWhole || sorted.length > MAX_ROWS };
      },
      cli: {
        columns: [
          ['BUDGET', ({ budget }) => budget],
          ['OF', ({ of, whose }) => (of === 'all' ? of : `${of} ${printable(whose)}`)],
          ['USED %', ({ used }) => String(Math.floor(used * 100))],
          ['SPENT USD', ({ spent_usd }) => spent_usd],
          ['LEFT USD', ({ left_usd }) => left_usd],
          ['RESETS UTC', ({ resets_at }) => resets_at ?? '-'],
        ],
        empty: 'There are no budgets.',
      },
    },
  );
  return { route, subcommand: { ...subcommand, name: 'near' } };
}

async function findAll({ records, book, ledger, now }: Parts) {
  const at = now();
  const { budgets: shared } = await records.read();
  const budgets = shared.map(({ rule, raises }) =>
    createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises })(at),
  );
  const accounts = await ledger.accounts({ limit: MAX_ACCOUNTS + 1 });
  for (const { account } of accounts.slice(0, MAX_ACCOUNTS)) {
    const principal = { credential: 'key', userId: account, account } as const;
    const found = await book.find({ principal, tags: [] }, at);
    budgets.push(...found.filter(({ owner }) => owner !== undefined && 'account' in owner));
  }
  return { budgets, isWhole: accounts.length <= MAX_ACCOUNTS };
}

function showRow(budget: CountedBudget, { spent, held }: { readonly spent: number; readonly held: number }) {
  const { rule, scope, owner, limit } = budget;
  const account = owner && 'account' in owner ? owner.account : undefined;
  return {
    budget: rule.name,
    of: account === undefined ? scope : 'account',
    whose: account ?? (scope === 'all' ? scope : (rule[scope] ?? scope)),
    used: Math.round(((spent + held) / limit) * 10_000) / 10_000,
    amount_usd: formatUsd(limit),
    spent_usd: formatUsd(spent),
    left_usd: formatUsd(Math.max(limit - spent - held, 0)),
    resets_at: resetsAt(budget),
  };
}
