/** Property: a budget created inside its window counts what its window has spent, on any store that two nodes share. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { BudgetRule, Store, Target } from '../../../../../contract/index.ts';
import { type BudgetNode, createBudgetNode } from './budget-node.ts';

const HOUR_MS = 3_600_000;
const QUARTER_MS = 900_000;
const ZONES = ['Asia/Kolkata', 'Asia/Kathmandu', 'America/New_York', 'Australia/Lord_Howe', 'UTC'] as const;
const TARGETS: readonly Target[] = [
  { provider: 'p', model: 'm-1' },
  { provider: 'p', model: 'm-2' },
  { provider: 'q', model: 'm-1' },
];
const TAGS = ['team=a', 'team=b'] as const;
const AMPLE = 1_000_000;

const filter = fc.constantFrom<Partial<BudgetRule>>(
  {},
  { user: 'user-0' },
  { key: 'key-1' },
  { tag: 'team=a' },
  { provider: 'p' },
  { model: 'm-1' },
  { model: 'p/m*' },
  { user: 'user-1', tag: 'team=b' },
);

const call = fc.record({
  /** Hours before the creation of the budget. */
  age: fc.double({ min: 0, max: 60, noNaN: true }),
  who: fc.nat(1),
  tag: fc.constantFrom(...TAGS),
  target: fc.nat(2),
  cost: fc.integer({ min: 1, max: 1000 }),
  /** Ends only after the budget was created. */
  isRunning: fc.boolean(),
  node: fc.nat(1),
});

interface History {
  readonly every: BudgetRule['every'];
  readonly timezone: string;
  readonly of: Partial<BudgetRule>;
  readonly earlier: readonly (typeof call extends fc.Arbitrary<infer Call> ? Call : never)[];
  readonly later: readonly (typeof call extends fc.Arbitrary<infer Call> ? Call : never)[];
  /** The budget existed before, was removed, and is created again. */
  readonly isCreatedAgain: boolean;
}

/** `stores` are the two nodes' connections to one store. */
export async function checkOpenings(stores: readonly [Store, Store], numRuns: number): Promise<void> {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        every: fc.constantFrom('hour', 'day', 'week', 'total'),
        timezone: fc.constantFrom(...ZONES),
        of: filter,
        earlier: fc.array(call, { minLength: 1, maxLength: 12 }),
        later: fc.array(call, { maxLength: 6 }),
        isCreatedAgain: fc.boolean(),
      }),
      (history) => open(stores, history, `${process.pid}-${Date.now()}-${run++}`),
    ),
    { numRuns },
  );
}

async function open(stores: readonly [Store, Store], history: History, name: string): Promise<void> {
  const { every, timezone, earlier, later, isCreatedAgain } = history;
  // Names of this history, because one store serves all. Without a filter a budget would count other histories.
  const own = (text: string): string => `${text}-${name}`;
  const { user = '', key, tag, ...target } = history.of;
  const of = {
    ...target,
    user: history.of.user === undefined ? undefined : own(user),
    key: key === undefined ? undefined : own(key),
    tag: tag === undefined ? undefined : own(tag),
  };
  const isUnnamed = of.user === undefined && of.key === undefined && of.tag === undefined;
  const base = isUnnamed ? { ...of, tag: own('everyone=1') } : of;
  const rule = Object.fromEntries(
    Object.entries({ name: `b${name}`, amount: AMPLE, every, timezone, ...base }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as unknown as BudgetRule;

  // One minute after a quarter began: no window ends before the last step, which is 30 seconds later.
  const created = Math.floor(Date.now() / QUARTER_MS) * QUARTER_MS + 60_000;
  let now = created;
  const nodes = stores.map((store) => createBudgetNode(store, [], () => now)) as [BudgetNode, BudgetNode];
  let spent = 0;
  const window = windowOf(every, timezone, created);
  const running: (() => Promise<void>)[] = [];
  const call = async (each: History['earlier'][number], id: string, at: number): Promise<void> => {
    now = at;
    const target = TARGETS[each.target] as Target;
    const by = {
      principal: {
        credential: 'key',
        userId: own(`user-${each.who}`),
        account: own('account'),
        keyId: own(`key-${each.who}`),
      } as const,
      tags: [own(each.tag), own('everyone=1')],
      targets: [target],
    };
    const end = await nodes[each.node]?.call(`${name}-${id}`, each.cost, by);
    const settle = async (): Promise<void> => {
      await end?.(each.cost, target);
      if (at >= window && matches(rule, by.principal, by.tags, target)) spent += each.cost;
    };
    if (each.isRunning) running.push(settle);
    else await settle();
  };

  if (isCreatedAgain) {
    await nodes[0].records.change(rule.name, () => ({ rule, raises: [] }));
    for (const node of nodes) await node.refresh();
    for (const [at, each] of earlier.entries())
      await call(each, `early-${at}`, Math.floor(created - each.age * HOUR_MS));
    await nodes[0].records.change(rule.name, () => undefined);
    for (const node of nodes) await node.refresh();
  }
  for (const [at, each] of earlier.entries())
    await call(each, `before-${at}`, Math.floor(created - each.age * HOUR_MS));
  now = created;
  await nodes[0].records.change(rule.name, () => ({ rule, raises: [] }));
  // Both nodes use it for the first time at once, while calls end.
  const ends = running.splice(0, Math.ceil(running.length / 2));
  await Promise.all([
    ...nodes.map((node) => node.refresh().then(() => node.updateOpenings())),
    ...ends.map((end) => end()),
  ]);
  await Promise.all(later.map((each, at) => call(each, `later-${at}`, now)));
  for (const end of running) await end();
  // All nodes know it, and all calls have settled.
  now += 30_000;
  for (const node of nodes) await node.updateOpenings();

  const state = await nodes[0].spent(rule);
  expect(state, JSON.stringify({ rule, created })).to.deep.equal({ spent, held: 0 });
}

/** Start of a window according to Intl, independent of the product's calculation. */
function windowOf(every: BudgetRule['every'], timezone: string, instant: number): number {
  if (every === 'total') return 0;
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: every === 'hour' ? 'short' : undefined,
  });
  const period = (at: number): string => {
    const text = format.format(at);
    if (every === 'hour') return text.slice(0, 13);
    if (every === 'day') return text;
    const date = new Date(`${text}T00:00Z`);
    while (date.getUTCDay() !== 1) date.setUTCDate(date.getUTCDate() - 1);
    return date.toISOString();
  };
  const own = period(instant);
  // Windows of these zones begin at full quarters of an hour.
  let start = Math.floor(instant / QUARTER_MS) * QUARTER_MS;
  while (period(start - QUARTER_MS) === own) start -= QUARTER_MS;
  return start;
}

function matches(
  rule: BudgetRule,
  principal: { readonly userId: string; readonly keyId: string },
  tags: readonly string[],
  { provider, model }: Target,
): boolean {
  const names = [model, `${provider}/${model}`];
  return (
    (rule.user === undefined || rule.user === principal.userId) &&
    (rule.key === undefined || rule.key === principal.keyId) &&
    (rule.tag === undefined || tags.includes(rule.tag)) &&
    (rule.provider === undefined || rule.provider === provider) &&
    (rule.model === undefined ||
      names.some((name) => name === rule.model || (rule.model === 'p/m*' && name.startsWith('p/m'))))
  );
}
