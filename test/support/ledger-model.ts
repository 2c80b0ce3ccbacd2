import fc from 'fast-check';
import type { ReserveResult, Store } from '../../core/index.ts';
import { NOW, reservation, settlement } from '../conformance/store.ts';

/** One thing that happens to an account. `reopen` is the store's end and new beginning. */
export type Step =
  | { readonly do: 'credit'; readonly id: string; readonly amount: number }
  | {
      readonly do: 'reserve';
      readonly id: string;
      readonly amount: number;
      readonly floor: number;
      readonly lifeMs: number;
      readonly budget: { readonly id: string; readonly limit: number } | undefined;
    }
  | { readonly do: 'settle'; readonly id: string; readonly amount: number }
  | { readonly do: 'release'; readonly id: string }
  | { readonly do: 'sweep'; readonly afterMs: number }
  | { readonly do: 'reopen' };

const id = fc.integer({ min: 0, max: 7 }).map((n) => `r${n}`);
const amount = fc.integer({ min: 0, max: 60 });
const budget = fc.record({ id: fc.constantFrom('k1', 'k2'), limit: fc.constantFrom(0, 50, 120) });

/** Few ids and small amounts, so that steps meet each other. */
export const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('credit' as const), id, amount: fc.integer({ min: -40, max: 120 }) }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('reserve' as const),
        id,
        amount,
        floor: fc.constantFrom(0, 0, -50, Number.NEGATIVE_INFINITY),
        lifeMs: fc.constantFrom(10, 1000),
        budget: fc.option(budget, { nil: undefined }),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('settle' as const), id, amount }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), id }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('sweep' as const), afterMs: fc.constantFrom(1, 11, 1001) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  ),
  { minLength: 1, maxLength: 40 },
);

interface Request {
  readonly state: 'held' | 'settled' | 'released';
  readonly amount: number;
  readonly budget: string | undefined;
  readonly expiresAt: number;
  /** Whether the sweeper settled it, so that its own end still corrects that. */
  readonly isSwept?: boolean;
  readonly isCorrected?: boolean;
}

/** The least that says what a ledger is: lists of credits and requests, and sums over them. */
export function createModel() {
  const credits = new Map<string, number>();
  const requests = new Map<string, Request>();
  const sum = (state: Request['state'], budgetId?: string): number =>
    [...requests.values()]
      .filter((request) => request.state === state && (budgetId === undefined || request.budget === budgetId))
      .reduce((total, request) => total + request.amount, 0);
  const balances = () => {
    const credited = [...credits.values()].reduce((total, value) => total + value, 0);
    return { balance: credited - sum('settled'), held: sum('held'), spent: sum('settled'), credited };
  };
  const finish = (requestId: string, cost: number | undefined, isSwept = false): boolean => {
    const request = requests.get(requestId);
    if (request?.isSwept && !isSwept) {
      requests.set(requestId, { ...request, isSwept: false, isCorrected: true, amount: cost ?? 0 });
      return true;
    }
    if (request?.state !== 'held') return false;
    const state = cost === undefined ? 'released' : 'settled';
    requests.set(requestId, { ...request, state, amount: cost ?? request.amount, isSwept });
    return true;
  };
  return {
    balances,
    budget: (budgetId: string) => ({ spent: sum('settled', budgetId), held: sum('held', budgetId) }),
    /** Ids of what must be in the books. */
    refs: () => [
      ...[...credits.keys()].map((key) => `credit ${key}`),
      ...[...requests].flatMap(([key, { state }]) => (state === 'settled' ? [`charge ${key}`] : [])),
      ...[...requests].flatMap(([key, { isCorrected }]) => (isCorrected ? [`charge ${key}`] : [])),
    ],
    /** What the step must answer. */
    apply(step: Step, now: number): unknown {
      switch (step.do) {
        case 'credit':
          if (credits.has(step.id)) return false;
          credits.set(step.id, step.amount);
          return true;
        case 'reserve': {
          if (requests.has(step.id)) return 'duplicate' satisfies ReserveOutcome;
          const { balance, held } = balances();
          if (balance - held - step.amount < step.floor) return 'insufficient' satisfies ReserveOutcome;
          const inBudget = step.budget ? sum('settled', step.budget.id) + sum('held', step.budget.id) : 0;
          if (step.budget && inBudget + step.amount > step.budget.limit) return 'over_budget' satisfies ReserveOutcome;
          requests.set(step.id, {
            state: 'held',
            amount: step.amount,
            budget: step.budget?.id,
            expiresAt: now + step.lifeMs,
          });
          return 'held' satisfies ReserveOutcome;
        }
        case 'settle':
          return finish(step.id, step.amount);
        case 'release':
          return finish(step.id, undefined);
        case 'sweep':
          for (const [key, request] of requests)
            if (request.state === 'held' && request.expiresAt < now) finish(key, request.amount, true);
          return undefined;
        default:
          return undefined;
      }
    },
  };
}

/** Does the step on a real ledger; a sweep's count is left out, because it counts other accounts too. */
export async function perform(store: Store, account: string, step: Step, now: number): Promise<unknown> {
  const { ledger } = store;
  switch (step.do) {
    case 'credit':
      return ledger.credit(account, step.id, step.amount, 'test', now);
    case 'reserve': {
      const { amount: held, floor, lifeMs } = step;
      const inBudget = step.budget && { budget: step.budget };
      return ledger.reserve(
        reservation({ account, requestId: step.id, amount: held, floor, expiresAt: now + lifeMs, now, ...inBudget }),
      );
    }
    case 'settle':
      return ledger.settle(settlement({ account, requestId: step.id, amount: step.amount, now }));
    case 'release':
      return ledger.release(account, step.id);
    case 'sweep':
      await ledger.sweep(now);
      return undefined;
    default:
      return undefined;
  }
}

/** The clock of a run: it moves with every sweep. */
export function createClock() {
  let now = NOW;
  const advance = (step: Step): void => {
    if (step.do === 'sweep') now += step.afterMs;
  };
  return { now: () => now, advance };
}
