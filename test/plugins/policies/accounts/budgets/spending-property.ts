/** Property: budgets with calendar windows are exact, on any store that two nodes share. */
import { expect } from 'chai';
import fc from 'fast-check';
import { type BudgetRule, isGatewayError, type Store } from '../../../../../contract/index.ts';
import { createBudgetNode } from './budget-node.ts';

const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC'] as const;
const HOUR_MS = 3_600_000;
/** Refused because of spend, or because of other calls' reservations. */
const REFUSED: ReadonlySet<string> = new Set(['insufficient_balance', 'rate_limited']);
/** Period after which weekdays and leap days repeat on the same dates. */
const CALENDAR_CYCLE_MS = (28 * 365 + 7) * 24 * HOUR_MS;

/** Clock changes, ends of months and leap days from 2052 to 2058, because stores delete windows that ended long ago. */
const NEAR = [
  ...['2026-03-28T22:00Z', '2026-10-24T22:00Z', '2026-03-08T04:00Z', '2026-11-01T03:00Z'],
  ...['2026-10-03T13:00Z', '2026-04-04T12:00Z', '2024-02-28T20:00Z', '2024-02-29T20:00Z', '2025-12-31T10:00Z'],
  ...['2028-02-29T10:00Z', '2026-01-31T10:00Z', '2030-06-30T20:00Z'],
].map((text) => Date.parse(text) + CALENDAR_CYCLE_MS);

/** Period of an instant according to Intl, independent of the product's calculation. */
function periodOf({ every, timezone, startsOn }: BudgetRule, instant: number): string {
  const date = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(instant);
  if (every === 'day') return date;
  const at = new Date(`${date}T00:00Z`);
  if (every === 'week') {
    const first = startsOn === 'sunday' ? 0 : 1;
    while (at.getUTCDay() !== first) at.setUTCDate(at.getUTCDate() - 1);
    return at.toISOString();
  }
  if (at.getUTCDate() < Number(startsOn ?? 1)) at.setUTCMonth(at.getUTCMonth() - 1, 1);
  return at.toISOString().slice(0, 7);
}

const rule = fc
  .record({
    every: fc.constantFrom('day', 'week', 'month'),
    timezone: fc.constantFrom(...ZONES),
    amount: fc.integer({ min: 1, max: 60 }),
    day: fc.integer({ min: 1, max: 28 }),
    isSunday: fc.boolean(),
  })
  .map(
    ({ every, timezone, amount, day, isSunday }): Omit<BudgetRule, 'name'> => ({
      ...{ every, timezone, amount },
      ...(every === 'week' && isSunday && { startsOn: 'sunday' }),
      ...(every === 'month' && { startsOn: day }),
    }),
  );

const step = fc.oneof(
  fc.record({ do: fc.constant('call'), node: fc.nat(1), estimate: fc.nat(20) }),
  fc.record({ do: fc.constant('end'), which: fc.nat(9), share: fc.integer({ min: 0, max: 100 }) }),
  fc.record({
    do: fc.constant('wait'),
    ms: fc.oneof(fc.nat(3 * HOUR_MS), fc.integer({ min: HOUR_MS, max: 40 * HOUR_MS }), fc.nat(40 * 24 * HOUR_MS)),
  }),
);

interface History {
  readonly rules: readonly Omit<BudgetRule, 'name'>[];
  readonly start: number;
  readonly steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[];
}

/**
 * Checks that a call passes exactly if all budgets cover it. The cases include clock changes, ends of months and leap
 * days, on either of two nodes. `stores` are the two nodes' connections to one store.
 */
export async function checkSpending(stores: readonly [Store, Store], numRuns: number): Promise<void> {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        rules: fc.array(rule, { minLength: 1, maxLength: 3 }),
        start: fc.constantFrom(...NEAR),
        steps: fc.array(step, { minLength: 5, maxLength: 60 }),
      }),
      // Each history has its own names, so that one store serves all.
      (history) => spend(stores, history, `r${run++}`),
    ),
    { numRuns },
  );
}

async function spend(stores: readonly [Store, Store], history: History, name: string): Promise<void> {
  const rules = history.rules.map((each, at): BudgetRule => ({ ...each, name: `${name}b${at}` }));
  let now = history.start;
  const nodes = stores.map((store) => createBudgetNode(store, rules, () => now));
  const used = new Map<string, number>();
  const add = (places: readonly string[], amount: number): void => {
    for (const place of places) used.set(place, (used.get(place) ?? 0) + amount);
  };
  const running: { readonly end: (cost: number) => Promise<void>; estimate: number; at: readonly string[] }[] = [];
  for (const [at, each] of history.steps.entries()) {
    if (each.do === 'wait') now += each.ms;
    if (each.do === 'end') {
      const [call] = running.splice(each.which % Math.max(running.length, 1), 1);
      if (!call) continue;
      const cost = Math.floor((call.estimate * each.share) / 100);
      await call.end(cost);
      add(call.at, cost - call.estimate);
    }
    if (each.do !== 'call') continue;
    const here = rules.map((one) => `${one.name} ${periodOf(one, now)}`);
    const fits = here.every((place, index) => (used.get(place) ?? 0) + each.estimate <= (rules[index]?.amount ?? 0));
    const end = await nodes[each.node]?.call(`${name}c${at}`, each.estimate).catch((error: unknown) => {
      if (!isGatewayError(error) || !REFUSED.has(error.code)) throw error;
      return undefined;
    });
    expect(end !== undefined, `step ${at}: ${here.join(', ')}`).to.equal(fits);
    if (!end) continue;
    add(here, each.estimate);
    running.push({ end, estimate: each.estimate, at: here });
  }
}
