import fc from 'fast-check';
import type { BudgetHold, CallFacts, ReportDimension, ReserveResult, Store } from '../../../contract/index.ts';
import { FACTS, NOW, reservation, settlement } from '../../conformance/store.ts';

/** Facts that distinguish the calls of a run. */
type Reported = Pick<CallFacts, 'userId' | 'key' | 'provider' | 'session' | 'tags' | 'outcome'>;

/** Event in the life of an account. `reopen` closes and reopens the store. */
export type Step =
  | { readonly do: 'credit'; readonly id: string; readonly amount: number }
  | {
      readonly do: 'reserve';
      readonly id: string;
      readonly amount: number;
      readonly floor: number;
      readonly lifeMs: number;
      readonly budgets: readonly BudgetHold[];
      readonly reported: Reported;
    }
  | {
      readonly do: 'settle';
      readonly id: string;
      readonly amount: number;
      readonly uncharged: readonly string[];
      readonly reported: Reported;
    }
  | { readonly do: 'release'; readonly id: string; readonly reported: Reported | undefined }
  | { readonly do: 'sweep'; readonly afterMs: number }
  | { readonly do: 'reopen' };

/** Budgets that reservations of a run count in. */
export const BUDGETS = Object.freeze(['k1', 'k2', 'k3']);

const id = fc.integer({ min: 0, max: 7 }).map((n) => `r${n}`);
const amount = fc.integer({ min: 0, max: 60 });
const budgets = fc
  .subarray([...BUDGETS])
  .chain((ids) =>
    fc.tuple(...ids.map((each) => fc.record({ id: fc.constant(each), limit: fc.constantFrom(0, 50, 120, Infinity) }))),
  );
const reported: fc.Arbitrary<Reported> = fc.record({
  userId: fc.constantFrom('ann', 'bob'),
  key: fc.constantFrom('-', 'k'),
  provider: fc.constantFrom('p', 'q'),
  session: fc.constantFrom('s', 't'),
  tags: fc.constantFrom([], ['team=a'], ['team=b', 'project=x']),
  outcome: fc.constantFrom('ok' as const, 'error' as const, 'aborted' as const),
});

/** Few ids and small amounts, so that steps interact. */
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
        budgets,
        reported,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('settle' as const),
        id,
        amount,
        uncharged: fc.subarray([...BUDGETS]),
        reported,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('release' as const),
        id,
        reported: fc.option(reported, { nil: undefined }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('sweep' as const), afterMs: fc.constantFrom(1, 11, 1001, 1_234_567) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  ),
  { minLength: 1, maxLength: 40 },
);

interface Request {
  readonly state: 'held' | 'settled' | 'released';
  readonly amount: number;
  readonly budgets: readonly string[];
  /** Budgets that are not charged. */
  readonly free: readonly string[];
  readonly expiresAt: number;
  readonly sent: Omit<Reported, 'outcome'> & Pick<CallFacts, 'outcome'>;
  /** Time of its record; undefined without one. */
  readonly at?: number | undefined;
  /** True if the sweeper settled it, so that its own end corrects the charge. */
  readonly isSwept?: boolean;
  readonly isCorrected?: boolean;
}

/** Fields of a record that the model knows. */
export type ModelCall = Request['sent'] & { readonly id: string; readonly cost: number; readonly at: number };

/** Minimal model of a ledger: lists of credits and requests, and sums over them. */
export function createModel() {
  const credits = new Map<string, number>();
  const requests = new Map<string, Request>();
  const sum = (state: Request['state'], budgetId?: string): number =>
    [...requests.values()]
      .filter((request) => request.state === state)
      .filter(({ budgets: of, free }) => budgetId === undefined || (of.includes(budgetId) && !free.includes(budgetId)))
      .reduce((total, request) => total + request.amount, 0);
  const balances = () => {
    const credited = [...credits.values()].reduce((total, value) => total + value, 0);
    return { balance: credited - sum('settled'), held: sum('held'), spent: sum('settled'), credited };
  };
  const reserve = (step: Step & { readonly do: 'reserve' }, now: number): ReserveResult => {
    if (requests.has(step.id)) return { outcome: 'duplicate' };
    const { balance, held } = balances();
    if (balance - held - step.amount < step.floor) return { outcome: 'insufficient' };
    const before = step.budgets.map((each) => sum('settled', each.id) + sum('held', each.id));
    const full = step.budgets.findIndex(({ limit }, at) => (before[at] ?? 0) + step.amount > limit);
    if (full >= 0) return { outcome: 'over_budget', budget: full, used: before[full] ?? 0 };
    requests.set(step.id, {
      ...{ state: 'held', amount: step.amount, expiresAt: now + step.lifeMs, free: [] },
      budgets: step.budgets.map((each) => each.id),
      sent: { ...step.reported, outcome: 'unknown' },
    });
    return { outcome: 'held', used: before.map((used) => used + step.amount) };
  };
  const finish = (
    requestId: string,
    cost: number | undefined,
    free: readonly string[],
    end: Reported | undefined,
    now: number,
  ) => {
    const request = requests.get(requestId);
    if (request?.isSwept) {
      const corrected = { isSwept: false, isCorrected: true, amount: cost ?? 0, free };
      requests.set(requestId, { ...request, ...corrected, sent: end ?? request.sent });
      return true;
    }
    if (request?.state !== 'held') return false;
    const state = cost === undefined ? 'released' : 'settled';
    requests.set(requestId, { ...request, state, amount: cost ?? 0, free, ...(end && { sent: end, at: now }) });
    return true;
  };
  const sweep = (now: number): void => {
    for (const [key, request] of requests)
      if (request.state === 'held' && request.expiresAt < now)
        requests.set(key, {
          ...{ ...request, state: 'settled', isSwept: true, at: now },
          sent: { ...request.sent, outcome: 'expired' },
        });
  };
  return {
    balances,
    budget: (budgetId: string) => ({ spent: sum('settled', budgetId), held: sum('held', budgetId) }),
    /** References that the ledger's entries must contain. */
    refs: () => [
      ...[...credits.keys()].map((key) => `credit ${key}`),
      ...[...requests].flatMap(([key, { state }]) => (state === 'settled' ? [`charge ${key}`] : [])),
      ...[...requests].flatMap(([key, { isCorrected }]) => (isCorrected ? [`charge ${key}`] : [])),
    ],
    /** Expected records. */
    calls: (): readonly ModelCall[] =>
      [...requests].flatMap(([key, { sent: of, amount: cost, at }]) =>
        at === undefined ? [] : [{ ...of, id: key, cost, at }],
      ),
    /** Expected result of a step. */
    apply(step: Step, now: number): unknown {
      switch (step.do) {
        case 'credit':
          if (credits.has(step.id)) return false;
          credits.set(step.id, step.amount);
          return true;
        case 'reserve':
          return reserve(step, now);
        case 'settle':
          return finish(step.id, step.amount, step.uncharged, step.reported, now);
        case 'release':
          return finish(step.id, undefined, [], step.reported, now);
        case 'sweep':
          sweep(now);
          return undefined;
        default:
          return undefined;
      }
    },
  };
}

/** Performs the step on a real ledger; omits the count of a sweep, which includes other accounts. */
export async function perform(store: Store, account: string, step: Step, now: number): Promise<unknown> {
  const { ledger } = store;
  const named = (budgetId: string): string => `${account}-${budgetId}`;
  switch (step.do) {
    case 'credit':
      return ledger.credit(account, step.id, step.amount, 'test', now);
    case 'reserve': {
      const { amount: held, floor, lifeMs } = step;
      const own = step.budgets.map((each) => ({ ...each, id: named(each.id) }));
      const facts: CallFacts = { ...FACTS, ...step.reported, outcome: 'unknown' };
      const request = { account, requestId: step.id, amount: held, floor, expiresAt: now + lifeMs, now, facts };
      return ledger.reserve(reservation({ ...request, ...(own.length > 0 && { budgets: own }) }));
    }
    case 'settle': {
      const facts = { ...FACTS, ...step.reported };
      const uncharged = step.uncharged.map(named);
      return ledger.settle(settlement({ account, requestId: step.id, amount: step.amount, facts, uncharged, now }));
    }
    case 'release':
      return ledger.release(account, step.id, step.reported && { ...FACTS, ...step.reported }, now);
    case 'sweep':
      await ledger.sweep(now);
      return undefined;
    default:
      return undefined;
  }
}

/** Clock of a run: it advances with every sweep. */
export function createClock() {
  let now = NOW;
  const advance = (step: Step): void => {
    if (step.do === 'sweep') now += step.afterMs;
  };
  return { now: () => now, advance };
}

/** Groupings that must all have the same total. */
export const GROUPINGS: readonly (readonly ReportDimension[])[] = Object.freeze([
  [],
  ['user'],
  ['key'],
  ['tags'],
  ['provider'],
  ['session'],
  ['user', 'key', 'tags', 'operation', 'provider', 'model'],
]);
