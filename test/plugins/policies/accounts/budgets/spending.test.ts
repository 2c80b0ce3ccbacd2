import { expect } from 'chai';
import fc from 'fast-check';
import { type BudgetRule, isGatewayError } from '../../../../../core/index.ts';
import { openMemory } from '../../../../../plugins/stores/memory/index.ts';
import { createBudgetNode } from '../../../../support/budget-node.ts';

const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC'] as const;
const HOUR_MS = 3_600_000;

/** Where clocks change, months end and leap days are. */
const NEAR = [
  ...['2026-03-28T22:00Z', '2026-10-24T22:00Z', '2026-03-08T04:00Z', '2026-11-01T03:00Z'],
  ...['2026-10-03T13:00Z', '2026-04-04T12:00Z', '2024-02-28T20:00Z', '2024-02-29T20:00Z', '2025-12-31T10:00Z'],
  ...['2028-02-29T10:00Z', '2026-01-31T10:00Z', '2030-06-30T20:00Z'],
].map((text) => Date.parse(text));

/** The period that an instant is in, by the calendar that Intl shows: another way than the product goes. */
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

describe('spending in calendar windows', () => {
  it('never passes a budget, and never stops short of one, on two nodes over changes of clocks, ends of months and leap days', async function () {
    this.timeout(60_000);
    await fc.assert(
      fc.asyncProperty(
        fc.array(rule, { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...NEAR),
        fc.array(step, { minLength: 5, maxLength: 60 }),
        async (some, start, steps) => {
          const rules = some.map((each, at): BudgetRule => ({ ...each, name: `b${at}` }));
          const store = await openMemory();
          let now = start;
          const nodes = [createBudgetNode(store, rules, () => now), createBudgetNode(store, rules, () => now)];
          const used = new Map<string, number>();
          const places = (): readonly string[] => rules.map((each) => `${each.name} ${periodOf(each, now)}`);
          const running: {
            readonly end: (cost: number) => Promise<void>;
            readonly estimate: number;
            readonly at: readonly string[];
          }[] = [];
          for (const [at, each] of steps.entries()) {
            if (each.do === 'wait') now += each.ms;
            if (each.do === 'end') {
              const [call] = running.splice(each.which % Math.max(running.length, 1), 1);
              if (!call) continue;
              const cost = Math.floor((call.estimate * each.share) / 100);
              await call.end(cost);
              for (const place of call.at) used.set(place, (used.get(place) ?? 0) - call.estimate + cost);
            }
            if (each.do !== 'call') continue;
            const here = places();
            const fits = here.every(
              (place, index) => (used.get(place) ?? 0) + each.estimate <= (rules[index]?.amount ?? 0),
            );
            const end = await nodes[each.node]?.call(`c${at}`, each.estimate).catch((error: unknown) => {
              if (!isGatewayError(error) || error.code !== 'insufficient_balance') throw error;
              return undefined;
            });
            expect(end !== undefined, `step ${at}: ${here.join(', ')}`).to.equal(fits);
            if (!end) continue;
            for (const place of here) used.set(place, (used.get(place) ?? 0) + each.estimate);
            running.push({ end, estimate: each.estimate, at: here });
          }
          await store.close();
        },
      ),
      { numRuns: 150 },
    );
  });
});
