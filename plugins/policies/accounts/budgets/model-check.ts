import { type BudgetRule, GatewayError, OptionError, type PluginApi } from '../../../../contract/index.ts';
import { createModelNames, type ModelNames, type ModelNamesApi } from '../../kit/index.ts';

/** Returns the problem of a budget's model that would count nothing; undefined if it is valid. */
export function checkModel(
  names: ModelNames,
  { provider, model }: Pick<BudgetRule, 'provider' | 'model'>,
): { readonly path: string; readonly message: string; readonly hint: string } | undefined {
  if (model === undefined || names.isCounted(model, provider)) return undefined;
  const near = names.near(model).slice(0, 3).join(', ');
  return {
    path: '/model',
    message: `names a model that ${provider === undefined ? 'no provider lists' : `"${provider}" does not list`}`,
    hint: `${near === '' ? '' : `Did you mean ${near}? `}Write an alias, "provider/model", a listed model, or a prefix with *.`,
  };
}

/** Rejects budgets of a plan that would count nothing. */
export function refuseUnknownModels(api: ModelNamesApi, budgets: readonly BudgetRule[] = []): void {
  const names = createModelNames(api);
  for (const [at, budget] of budgets.entries()) {
    const problem = checkModel(names, budget);
    const param = `budgets.${at}.model`;
    if (problem) throw new GatewayError('invalid_request', `"${param}" ${problem.message}. ${problem.hint}`, { param });
  }
}

/** Checks the budgets of the configuration in the same way, after all providers are registered. */
export function checkConfigured(api: ModelNamesApi & Pick<PluginApi, 'settings' | 'onRegistered'>): void {
  api.onRegistered(() => {
    const { budgets, plans } = api.settings;
    const lists: (readonly [string, readonly BudgetRule[]])[] = [['budgets', budgets]];
    for (const [name, plan] of Object.entries(plans)) lists.push([`plans.${name}.budgets`, plan.budgets ?? []]);
    const names = createModelNames(api);
    for (const [place, list] of lists)
      for (const [at, budget] of list.entries()) {
        const problem = checkModel(names, budget);
        if (problem)
          throw new OptionError('', `cannot count ${place}.${at}: its "model" ${problem.message}`, problem.hint);
      }
  });
}
