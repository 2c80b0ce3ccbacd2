import type { BudgetRule, NamedPlan, Principal, Target } from '../../../../core/index.ts';
import { keyWindowPrefix } from '../../kit/index.ts';
import type { AccountRaise } from './account-raises.ts';
import {
  type BudgetCounter,
  type BudgetOwner,
  type CountedBudget,
  countsTarget,
  createCounter,
  isByTarget,
  type Raise,
  scopeOf,
} from './counted.ts';

/** Whose call it is. */
export interface Caller {
  readonly principal: Principal;
  readonly tags: readonly string[];
  readonly plan: NamedPlan | undefined;
}

/** A budget that all calls share which match it. */
export interface SharedBudget {
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
  /** What the key of the rule is counted under: the first of the keys that replaced one another. */
  readonly limitsId?: string | undefined;
}

interface Shared extends SharedBudget {
  readonly counter: BudgetCounter;
}

/** Finds the budgets of calls. */
export interface BudgetMatcher {
  /** Those that count a call; with `targets`, of those for a provider or a model only the ones that one of them is of. */
  find(caller: Caller, now: number, targets?: readonly Target[]): readonly CountedBudget[];
}

/** What the ledger counts shared budgets under. */
export const SHARED = 'shared';

/** How many accounts and keys with budgets of their own are remembered. */
const MAX_OWNERS = 10_000;

/** Sorts the shared budgets by the user, key or tag that they name, so that a call looks at few of many. */
export function createMatcher(
  budgets: readonly SharedBudget[],
  accountRaises: readonly AccountRaise[] = [],
): BudgetMatcher {
  const shared = budgets.map((budget): Shared => {
    const { rule, raises } = budget;
    return { ...budget, counter: createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises }) };
  });
  const byName = new Map<string, Shared[]>();
  const others: Shared[] = [];
  for (const budget of shared) {
    const names = namesOf(budget);
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), budget]);
    if (names.length === 0) others.push(budget);
  }
  const owned = createOwned();
  const raised = groupRaises(accountRaises);

  return {
    find(caller, now, targets) {
      const { principal, tags, plan } = caller;
      const { userId, account, keyId, limitsId = keyId, budgets: ofKey } = principal;
      const found = new Set<CountedBudget>();
      const note = ({ rule, counter }: Pick<Shared, 'rule' | 'counter'>): void => {
        if (targets && isByTarget(rule) && !targets.some((target) => countsTarget(rule, target))) return;
        found.add(counter(now));
      };
      const noteShared = (budget: Shared): void => {
        if (matches(budget, caller)) note(budget);
      };
      if (ofKey && limitsId !== undefined)
        for (const each of owned(ofKey, { prefix: keyWindowPrefix(limitsId), scope: 'key', owner: { key: limitsId } }))
          note(each);
      if (plan?.plan.budgets) {
        const prefix = `plan:${encodeURIComponent(plan.name)}:${account}`;
        for (const each of owned(plan.plan.budgets, {
          prefix,
          scope: 'plan',
          owner: { account },
          raised: raised.get(account),
        }))
          note(each);
      }
      for (const budget of others) noteShared(budget);
      if (byName.size === 0) return [...found];
      for (const name of [`user ${userId}`, `key ${keyId}`, `key ${limitsId}`, ...tags.map((tag) => `tag ${tag}`)])
        for (const budget of byName.get(name) ?? []) noteShared(budget);
      return [...found];
    },
  };
}

/** Budgets that each account of a plan, or each key, has for itself. */
function createOwned() {
  const known = new Map<string, { readonly rules: readonly BudgetRule[]; readonly counters: readonly Owned[] }>();
  return (rules: readonly BudgetRule[], whose: Whose): readonly Owned[] => {
    const { prefix, raised, ...parts } = whose;
    const found = known.get(prefix);
    if (found?.rules === rules) return found.counters;
    const counters = rules.map(
      (rule): Owned => ({
        rule,
        counter: createCounter({ ...parts, prefix, rule, raises: raised?.get(rule.name) ?? [] }),
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
  /** Its raises by the name of the budget. */
  readonly raised?: ReadonlyMap<string, readonly Raise[]> | undefined;
}

/** Raises by account, and by the name of the budget. */
function groupRaises(all: readonly AccountRaise[]): ReadonlyMap<string, ReadonlyMap<string, readonly Raise[]>> {
  const byAccount = new Map<string, Map<string, readonly Raise[]>>();
  for (const { account, budget, raises } of all) {
    const own = byAccount.get(account) ?? new Map<string, readonly Raise[]>();
    byAccount.set(account, own.set(budget, raises));
  }
  return byAccount;
}

interface Owned {
  readonly rule: BudgetRule;
  readonly counter: BudgetCounter;
}

/** The most telling name of a budget: only calls with it can match. A key goes by its own id and by the one that it is counted under. */
function namesOf({ rule: { user, key, tag }, limitsId }: SharedBudget): readonly string[] {
  if (key !== undefined) return [...new Set([`key ${keyIdOf(key)}`, `key ${limitsId ?? keyIdOf(key)}`])];
  if (user !== undefined) return [`user ${user}`];
  return tag === undefined ? [] : [`tag ${tag}`];
}

function matches({ rule, limitsId }: SharedBudget, { principal, tags, plan }: Caller): boolean {
  const { user, key, tag } = rule;
  if (user !== undefined && user !== principal.userId) return false;
  if (tag !== undefined && !tags.includes(tag)) return false;
  if (rule.plan !== undefined && rule.plan !== plan?.name) return false;
  if (key === undefined) return true;
  const own: readonly unknown[] = [principal.keyId, principal.limitsId];
  return own.includes(keyIdOf(key)) || (limitsId !== undefined && own.includes(limitsId));
}

/** Lists of keys show ids behind `tg_`. */
export function keyIdOf(key: string): string {
  return key.startsWith('tg_') ? key.slice(3) : key;
}
