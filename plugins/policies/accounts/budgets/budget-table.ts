import { LRUCache } from 'lru-cache';
import type { BudgetHold, BudgetRule, NamedPlan, Principal, Target } from '../../../../contract/index.ts';
import { endUserWindowPrefix, keyBudgetId, keyWindowPrefix, maxEntries, userBudgetId } from '../../kit/index.ts';
import type { AccountRaise } from './account-raises.ts';
import {
  type Aliases,
  type BudgetCounter,
  type BudgetOwner,
  type CountedBudget,
  countsTarget,
  createCounter,
  EACH,
  isByTarget,
  keyIdOf,
  type Raise,
  scopeOf,
} from './budget-window.ts';
import type { BudgetRecords } from './records.ts';

// The table of all budgets: those of keys, users, plans and teams, and those that calls share. Each rule has a filter, a
// window and an amount, raises included. The rules of a caller are looked up once, and each of its calls only walks them.

/** Budget shared by all matching calls. */
export interface SharedBudget {
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
  /** Id that counts for the rule's key: the first key of its rotation chain. */
  readonly limitsId?: string | undefined;
  /** Unix milliseconds at which the budget was created, if known. */
  readonly since?: number | undefined;
}

/** Budgets at one moment. */
interface TableParts {
  readonly shared: readonly SharedBudget[];
  /** Raises of plan budgets for single accounts. */
  readonly accountRaises?: readonly AccountRaise[];
  readonly aliases?: Aliases | undefined;
  readonly sinceOfPlan?: BudgetRecords['sinceOfPlan'];
}

/** Budget without a window: `budget_usd` of a key, or that of a token for its user. */
export interface TotalBudget extends BudgetHold {
  readonly whose: 'key' | 'user';
}

/** Budgets that count a call. Frozen; calls of one caller share it while nothing changes. */
export interface CallBudgetList {
  readonly totals: readonly TotalBudget[];
  /** Budgets with a window, and named ones without. */
  readonly windows: readonly CountedBudget[];
  /** Ledger holds of the totals, then of the windows. */
  readonly holds: readonly BudgetHold[];
  /** One of them has a limit. */
  readonly isLimited: boolean;
}

/** All rules at one moment. */
export interface BudgetTable {
  /** Returns the rules of a caller, prepared once for its principal and plan. */
  of(principal: Principal, plan: NamedPlan | undefined): CallerRules;
  /** Returns all shared budgets. */
  shared(now: number): readonly CountedBudget[];
}

/** Budgets that may count calls of one caller. */
export interface CallerRules {
  /**
   * Returns the budgets that count a call. With `targets`, omits budgets of a provider or model that none of the targets
   * matches.
   */
  find(now: number, labels: CallLabels, targets?: readonly Target[]): CallBudgetList;
}

/** Labels of a call, which differ from call to call of one caller. */
export interface CallLabels {
  readonly tags: readonly string[];
  readonly endUser?: string | undefined;
}

/** Ledger prefix of shared budgets. */
export const SHARED = 'shared';

/** Maximum number of cached accounts and keys with their own budgets. */
const MAX_OWNERS = 10_000;

interface Rule {
  readonly rule: BudgetRule;
  readonly counter: BudgetCounter;
}

type SharedRule = SharedBudget & Rule;

/** Creates a table. Indexes the shared budgets by user, key or tag, so that a caller checks only few of many. */
export function createBudgetTable(parts: TableParts): BudgetTable {
  const { aliases = new Map<string, readonly string[]>(), accountRaises = [], sinceOfPlan } = parts;
  const shared = parts.shared.map((budget): SharedRule => {
    const { rule, raises } = budget;
    // Sums of hours do not know all end users, so that budgets of end users start at zero.
    const since = rule.endUser === undefined ? budget.since : undefined;
    const counter = createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises, aliases, since });
    return { ...budget, counter };
  });
  const byName = new Map<string, SharedRule[]>();
  const others: SharedRule[] = [];
  for (const budget of shared) {
    const names = namesOf(budget);
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), budget]);
    if (names.length === 0) others.push(budget);
  }
  const owned = createBudgetCache(aliases);
  const forEndUser = createEndUserRules(aliases);
  const raised = groupRaises(accountRaises);
  /** Principals and plans are the same objects until their key or plan changes. */
  const callers = new WeakMap<Principal, { readonly plan: NamedPlan | undefined; readonly rules: CallerRules }>();

  const prepare = (principal: Principal, plan: NamedPlan | undefined): CallerRules => {
    const { userId, account, keyId, limitsId = keyId, budgets: ofKey } = principal;
    const rules = new Set<Rule>();
    if (ofKey && limitsId !== undefined)
      for (const each of owned(ofKey, {
        prefix: keyWindowPrefix(limitsId),
        scope: 'key',
        owner: { key: limitsId },
        sinceOf: () => principal.budgetsSince,
      }))
        rules.add(each);
    if (plan?.plan.budgets)
      for (const each of owned(plan.plan.budgets, {
        prefix: `plan:${encodeURIComponent(plan.name)}:${account}`,
        scope: 'plan',
        owner: { account },
        raised: raised.get(account),
        sinceOf: (name) => plan.since ?? sinceOfPlan?.(plan.name, name),
      }))
        rules.add(each);
    const ofEndUsers: SharedRule[] = [];
    const add = (each: SharedRule): void => {
      if (each.rule.tag !== undefined || !matches(each, principal, plan)) return;
      if (each.rule.endUser === undefined) rules.add(each);
      else if (!ofEndUsers.includes(each)) ofEndUsers.push(each);
    };
    others.forEach(add);
    const names = [`user ${userId}`, `key ${keyId}`, `key ${limitsId}`];
    for (const name of names) byName.get(name)?.forEach(add);
    const findLabelled = ({ tags, endUser }: CallLabels): readonly Rule[] => {
      const tagged = findTagged(tags);
      if (ofEndUsers.length === 0 && !tagged.some(({ rule }) => rule.endUser !== undefined)) return tagged;
      return [...tagged, ...ofEndUsers].flatMap((each) => forEndUser(each, endUser) ?? []);
    };
    const findTagged = (tags: readonly string[]): readonly SharedRule[] => {
      if (tags.length === 0 || byName.size === 0) return NO_RULES;
      const tagged = new Set<SharedRule>();
      for (const name of [...names, ...tags.map((tag) => `tag ${tag}`)])
        for (const each of byName.get(name) ?? [])
          if (each.rule.tag !== undefined && tags.includes(each.rule.tag) && matches(each, principal, plan))
            tagged.add(each);
      return [...tagged];
    };
    return createCallerRules([...rules], findLabelled, totalsOf(principal));
  };

  return {
    shared: (now) => shared.map(({ counter }) => counter(now)),
    of(principal, plan) {
      const known = callers.get(principal);
      if (known && known.plan === plan) return known.rules;
      const rules = prepare(principal, plan);
      callers.set(principal, { plan, rules });
      return rules;
    },
  };
}

const NO_RULES: readonly SharedRule[] = Object.freeze([]);
const NO_BUDGETS: readonly CountedBudget[] = Object.freeze([]);

function createCallerRules(
  rules: readonly Rule[],
  findLabelled: (labels: CallLabels) => readonly Rule[],
  totals: readonly TotalBudget[],
): CallerRules {
  const none = createList(totals, NO_BUDGETS);
  let last = none;
  return {
    find(now, labels, targets) {
      const labelled = findLabelled(labels);
      if (rules.length === 0 && labelled.length === 0) return none;
      const windows: CountedBudget[] = [];
      for (const some of [rules, labelled])
        for (const { rule, counter } of some) {
          const budget = counter(now);
          if (targets && isByTarget(rule) && !targets.some((target) => countsTarget(budget, target))) continue;
          windows.push(budget);
        }
      if (!isSame(last.windows, windows)) last = createList(totals, windows);
      return last;
    },
  };
}

function isSame(one: readonly CountedBudget[], other: readonly CountedBudget[]): boolean {
  return one.length === other.length && one.every((budget, at) => budget === other[at]);
}

function createList(totals: readonly TotalBudget[], windows: readonly CountedBudget[]): CallBudgetList {
  return Object.freeze({
    totals,
    windows: Object.freeze(windows),
    holds: Object.freeze([...totals, ...windows.map(({ hold }) => hold)]),
    isLimited: windows.length > 0 || totals.some(({ limit }) => limit !== Number.POSITIVE_INFINITY),
  });
}

/** Returns the totals of a caller: of its user over all keys, and of its key. That of the key counts without a limit. */
export function totalsOf({ userId, keyId, limitsId = keyId, budget, userLimits }: Principal): readonly TotalBudget[] {
  const totals: TotalBudget[] = [];
  if (userLimits?.budget !== undefined)
    totals.push({ whose: 'user', id: userBudgetId(userId), limit: userLimits.budget });
  // `spent_usd` of a key is known without a limit, too.
  if (limitsId !== undefined)
    totals.push({ whose: 'key', id: keyBudgetId(limitsId), limit: budget ?? Number.POSITIVE_INFINITY });
  return Object.freeze(totals);
}

/** Creates the rule of a shared budget for an end user; undefined if it is for another one. Calls without an end user share one. */
function createEndUserRules(aliases: Aliases) {
  const known = new LRUCache<string, Rule>(maxEntries(MAX_OWNERS));
  return (each: SharedRule, endUser = ''): Rule | undefined => {
    const { rule, raises } = each;
    if (rule.endUser !== EACH) return rule.endUser === undefined || rule.endUser === endUser ? each : undefined;
    const key = `${rule.name} ${endUser}`;
    let found = known.get(key);
    if (!found) {
      const prefix = endUserWindowPrefix(endUser);
      const owner = { end_user: endUser };
      found = { rule, counter: createCounter({ prefix, rule, scope: scopeOf(rule), owner, raises, aliases }) };
      known.set(key, found);
    }
    return found;
  };
}

/** Creates a cache of budgets that each account of a plan, or each key, has separately. */
function createBudgetCache(aliases: Aliases) {
  const known = new Map<string, { readonly rules: readonly BudgetRule[]; readonly counters: readonly Rule[] }>();
  return (rules: readonly BudgetRule[], whose: Whose): readonly Rule[] => {
    const { prefix, raised, sinceOf, ...parts } = whose;
    const found = known.get(prefix);
    if (found?.rules === rules) return found.counters;
    const counters = rules.map(
      (rule): Rule => ({
        rule,
        counter: createCounter({
          ...parts,
          prefix,
          rule,
          raises: raised?.get(rule.name) ?? [],
          aliases,
          since: sinceOf(rule.name),
        }),
      }),
    );
    if (known.size >= MAX_OWNERS) known.clear();
    known.set(prefix, { rules, counters });
    return counters;
  };
}

interface Whose {
  readonly prefix: string;
  readonly scope: 'key' | 'plan';
  readonly owner: BudgetOwner;
  /** Raises by budget name. */
  readonly raised?: ReadonlyMap<string, readonly Raise[]> | undefined;
  /** Returns when a budget was created, if known. */
  readonly sinceOf: (name: string) => number | undefined;
}

/** Groups raises by account and budget name. */
function groupRaises(all: readonly AccountRaise[]): ReadonlyMap<string, ReadonlyMap<string, readonly Raise[]>> {
  const byAccount = new Map<string, Map<string, readonly Raise[]>>();
  for (const { account, budget, raises } of all) {
    const own = byAccount.get(account) ?? new Map<string, readonly Raise[]>();
    byAccount.set(account, own.set(budget, raises));
  }
  return byAccount;
}

/**
 * Index names of a budget, by its most selective field. Only calls with one of them can match. A key has two: its own
 * id and the id that counts for it.
 */
function namesOf({ rule: { user, key, tag }, limitsId }: SharedBudget): readonly string[] {
  if (key !== undefined) return [...new Set([`key ${keyIdOf(key)}`, `key ${limitsId ?? keyIdOf(key)}`])];
  if (user !== undefined) return [`user ${user}`];
  return tag === undefined ? [] : [`tag ${tag}`];
}

/** Checks the filter of a shared budget, except its tag, provider and model. */
function matches({ rule, limitsId }: SharedBudget, principal: Principal, plan: NamedPlan | undefined): boolean {
  const { user, key } = rule;
  if (user !== undefined && user !== principal.userId) return false;
  if (rule.plan !== undefined && rule.plan !== plan?.name) return false;
  if (key === undefined) return true;
  const own: readonly unknown[] = [principal.keyId, principal.limitsId];
  return own.includes(keyIdOf(key)) || (limitsId !== undefined && own.includes(limitsId));
}
