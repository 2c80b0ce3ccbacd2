import { LRUCache } from 'lru-cache';
import type { Plan, PluginApi, Principal } from '../../../core/index.ts';

/** What an account is beside its ledger. */
export interface AccountRecord {
  readonly plan?: string;
}

/** The shared name of the accounts' documents, which the plugin `accounts` writes: the plan that an operator gave one. */
export const ACCOUNTS = 'accounts';

/** How long a changed plan may take to reach every node, in milliseconds. */
const PLAN_TTL_MS = 5000;

export interface NamedPlan {
  readonly name: string;
  readonly plan: Plan;
}

/** The key of an account's document: user ids are hashed by the store, so any text may be one. */
export function accountKey(account: string): string {
  return `account:${account}`;
}

/**
 * The plan that applies to a caller: the one of the key or token, else the one an operator gave the account, else the
 * default plan. Undefined when none is configured: no plan, no limit.
 */
export function createPlanFinder(
  api: Pick<PluginApi, 'shared' | 'settings'>,
): (principal: Principal) => NamedPlan | undefined | Promise<NamedPlan | undefined> {
  const { plans, defaultPlan } = api.settings;
  if (Object.keys(plans).length === 0) return () => undefined;
  const known = new LRUCache<string, { readonly name: string | undefined }>({
    max: 10_000,
    ttl: PLAN_TTL_MS,
    // Reading the clock costs less than the timers that would avoid it.
    ttlResolution: 0,
  });
  const byName = new Map(Object.entries(plans).map(([name, plan]): [string, NamedPlan] => [name, { name, plan }]));
  const named = (name: string | undefined): NamedPlan | undefined =>
    name === undefined ? undefined : byName.get(name);
  return (principal) => {
    const own = named(principal.plan);
    if (own) return own;
    const cached = known.get(principal.account);
    if (cached) return named(cached.name) ?? named(defaultPlan);
    return api
      .shared<AccountRecord>(ACCOUNTS)
      .get(accountKey(principal.account))
      .then((record) => {
        known.set(principal.account, { name: record?.plan });
        return named(record?.plan) ?? named(defaultPlan);
      });
  };
}
