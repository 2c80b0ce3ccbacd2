import { type Call, formatUsd, type GatewayError, type Ledger } from '../../../../core/index.ts';
import type { BudgetBook } from './book.ts';
import { type CountedBudget, isByTarget, refusalOf, resetsAt } from './counted.ts';
import type { Notices } from './notices.ts';

/** What the books do about the budgets of a call. */
export interface CallBudgets {
  /** The budgets that count it, as of now. */
  find(call: Call): Promise<readonly CountedBudget[]>;
  /** Those that count a call which an `answer` hook responded to, so that no provider did. */
  findWithoutTarget(call: Call): Promise<readonly CountedBudget[]>;
  /** Warns the caller of soft limits that are passed. `used` has what the call holds itself, which is `amount`. */
  noteHeld(call: Call, hold: BudgetsHeld): void;
  /** The error for a call that one of them does not cover. */
  refuse(budget: CountedBudget, used: number, amount: number): GatewayError;
  /** Tells operators once what a settled call has led to. Never rejects. */
  noteSettled(hold: BudgetsHeld): Promise<void>;
}

/** The budgets of a call that was let through, and what each has spent and held with it. */
export interface BudgetsHeld {
  readonly budgets: readonly CountedBudget[];
  readonly used: readonly number[];
  readonly amount: number;
}

interface Parts {
  readonly book: BudgetBook;
  readonly notices: Notices;
  readonly ledger: Pick<Ledger, 'budgets'>;
  /** Unix milliseconds, by the clock that all processes of the store share. */
  readonly now: () => number;
}

const WARNING = 'x-tollgate-budget-warning';

export function createCallBudgets({ book, notices, ledger, now }: Parts): CallBudgets {
  return {
    find: (call) => book.find(call, now(), call.targets),
    async findWithoutTarget(call) {
      return (await book.find(call, now())).filter(({ rule }) => !isByTarget(rule));
    },

    noteHeld(call, { budgets, used, amount }) {
      const warnings = budgets.flatMap((budget, at): readonly string[] => {
        const before = (used[at] ?? 0) - amount;
        return isSoft(budget, before) ? [warningOf(budget, before)] : [];
      });
      if (warnings.length > 0) call.headers.set(WARNING, warnings.join(', '));
    },

    refuse(budget, used, amount) {
      // A call that is too large for a budget that is hardly used says nothing about the budget.
      if (used * 2 >= budget.limit) void notices.tell('used_up', budget, used);
      return refusalOf(budget, used, amount, now());
    },

    async noteSettled({ budgets, used }) {
      const near = budgets.filter(
        (budget, at) =>
          (isSoft(budget, used[at] ?? 0) && !notices.isTold('soft_limit', budget)) ||
          ((used[at] ?? 0) >= budget.limit && !notices.isTold('used_up', budget)),
      );
      if (near.length === 0) return;
      const states = await ledger.budgets(near.map(({ id }) => id)).catch(() => []);
      for (const [at, { spent }] of states.entries()) {
        const budget = near[at];
        if (!budget) continue;
        if (isSoft(budget, spent)) await notices.tell('soft_limit', budget, spent);
        if (spent >= budget.limit) await notices.tell('used_up', budget, spent);
      }
    },
  };
}

function isSoft({ rule: { soft } }: CountedBudget, used: number): boolean {
  return soft !== undefined && used >= soft;
}

/** `search 18.20/20.00 resets 2026-12-01T00:00:00Z`. */
function warningOf(budget: CountedBudget, used: number): string {
  const { rule, limit } = budget;
  return `${rule.name} ${formatUsd(used)}/${formatUsd(limit)} resets ${resetsAt(budget) ?? 'never'}`;
}
