import type { PluginApi, Principal } from '../../../core/index.ts';

/**
 * The name of the plan that a caller is on: that of the key or token, else the one an operator gave the account (what
 * the plugin `accounts` shares), else the default plan. Names that the configuration does not have count as none.
 */
export function createCallerPlan({
  settings,
  shared,
}: Pick<PluginApi, 'settings' | 'shared'>): (principal: Principal) => Promise<string | undefined> {
  const named = (name: string | undefined): string | undefined =>
    name !== undefined && Object.hasOwn(settings.plans, name) ? name : undefined;
  return async ({ plan, account }) => {
    const own = named(plan);
    if (own !== undefined) return own;
    const record = await shared<{ readonly plan?: string }>('accounts').get(`account:${account}`);
    return named(record?.plan) ?? named(settings.defaultPlan);
  };
}
