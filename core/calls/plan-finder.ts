import { LRUCache } from 'lru-cache';
import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Plan, PluginApi } from '../contract/plugin.ts';

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

/** Finds the plan that applies to a caller. */
export type PlanFinder = (principal: Principal) => NamedPlan | undefined | Promise<NamedPlan | undefined>;

/** The key of an account's document: user ids are hashed by the store, so any text may be one. */
export function accountKey(account: string): string {
  return `account:${account}`;
}

/**
 * The plan that applies to a caller: the one of the key or token, else the one an operator gave the account, else the
 * default plan. Undefined when none is configured: no plan, no limit. Throws `permission_denied` for a caller whose plan is not in
 * the configuration (any more) when no other one applies: a name that limits nothing must not lift the limits.
 */
export function createPlanFinder(api: Pick<PluginApi, 'shared' | 'settings'>): PlanFinder {
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
  const choose = (wanted: string | undefined, given: string | undefined): NamedPlan | undefined => {
    const plan = named(given) ?? named(defaultPlan);
    const lost = wanted ?? given;
    if (plan || lost === undefined) return plan;
    throw new GatewayError(
      'permission_denied',
      'The plan of this credential or its account is not in the configuration of this gateway: its operator has to name another.',
    );
  };
  return (principal) => {
    const own = named(principal.plan);
    if (own) return own;
    const cached = known.get(principal.account);
    if (cached) return choose(principal.plan, cached.name);
    return api
      .shared<AccountRecord>(ACCOUNTS)
      .get(accountKey(principal.account))
      .then((record) => {
        known.set(principal.account, { name: record?.plan });
        return choose(principal.plan, record?.plan);
      });
  };
}
