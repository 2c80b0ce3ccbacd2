import { type AuditActor, type BudgetValues, GatewayError, type PluginApi } from '../../../../core/index.ts';
import { checkBudget, createPlanBook, readBudget } from '../../../../core/operators.ts';
import { type RaiseValues, readRaise, runningOf, withRaise } from './raises.ts';
import type { BudgetRecords, NamedBudget } from './records.ts';

/** What operators do with budgets, by the API and on the command line alike. */
export interface BudgetManager {
  /** All, by name. */
  list(): Promise<readonly NamedBudget[]>;
  /** Throws `not_found`. */
  get(name: string): Promise<NamedBudget>;
  /** Makes or replaces one; raises of it stay. Throws `conflict` for those of the configuration. */
  put(name: string, values: Omit<BudgetValues, 'name'>, change: ChangeBy): Promise<NamedBudget>;
  /** What was removed. */
  remove(name: string, change: ChangeBy): Promise<NamedBudget>;
  /** Adds money until a time. */
  raise(name: string, raise: RaiseValues, change: ChangeBy): Promise<NamedBudget>;
  /** Ends all raises at once. */
  endRaises(name: string, change: ChangeBy): Promise<NamedBudget>;
}

/** Who changes it, and what they saw of it. */
export interface ChangeBy {
  readonly actor: AuditActor;
  /** Throws unless a budget with this entity tag is what they saw. */
  readonly match?: (tag: string) => void;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
type ManagerApi = Pick<PluginApi, 'settings' | 'offers' | 'records'>;

export function createBudgetManager(api: ManagerApi, records: BudgetRecords): BudgetManager {
  const readPlans = createPlanBook(api);
  const changeRaises = async (
    name: string,
    by: ChangeBy,
    action: string,
    make: (raises: NamedBudget['raises']) => NamedBudget['raises'],
  ): Promise<NamedBudget> => {
    const changed = await records.change({
      ...{ name, ...by, action },
      make(before) {
        const { owner, rule, raises } = known(name, before);
        return { ...(owner === 'store' && { rule }), raises: make(runningOf(raises, Date.now())) };
      },
    });
    return known(name, changed);
  };

  return {
    list: async () => (await records.read()).budgets.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    async get(name) {
      const { budgets } = await records.read();
      return known(
        name,
        budgets.find((budget) => budget.name === name),
      );
    },

    async put(name, values, by) {
      assertCounted(api);
      assertName(name);
      const rule = readBudget(checkValues(api, [...(await readPlans()).keys()], { ...values, name }));
      const make = (before: NamedBudget | undefined) => {
        assertOwn(before);
        return { rule, raises: before?.raises ?? [] };
      };
      return known(name, await records.change({ name, ...by, action: 'budget.put', make }));
    },

    async remove(name, by) {
      let removed: NamedBudget | undefined;
      const make = (before: NamedBudget | undefined): undefined => {
        removed = known(name, before);
        assertOwn(removed);
      };
      await records.change({ name, ...by, action: 'budget.remove', make });
      return known(name, removed);
    },

    async raise(name, values, by) {
      const raise = readRaise(values, Date.now());
      return await changeRaises(name, by, 'budget.raise', (raises) => withRaise(raises, raise));
    },

    endRaises: (name, by) => changeRaises(name, by, 'budget.end_raises', () => []),
  };
}

function known(name: string, budget: NamedBudget | undefined): NamedBudget {
  if (budget) return budget;
  throw new GatewayError('not_found', `There is no budget "${clean(name)}".`);
}

/** Throws `conflict` for a budget of the configuration. */
function assertOwn(budget: NamedBudget | undefined): void {
  if (budget?.owner !== 'file') return;
  throw new GatewayError(
    'conflict',
    `The configuration of this gateway owns the budget "${budget.name}": change it there, under "budgets". Raises are allowed here.`,
  );
}

function assertCounted({ settings }: Pick<PluginApi, 'settings'>): void {
  if (settings.billing !== 'off') return;
  throw new GatewayError('feature_disabled', 'Budgets are not counted with "billing: off"; write billing: track.');
}

function assertName(name: string): void {
  if (NAME.test(name)) return;
  throw new GatewayError(
    'invalid_request',
    'The name of a budget is up to 63 letters, digits, dots, dashes and underscores, and begins with a letter or digit.',
    { param: 'name' },
  );
}

/** Throws `invalid_request` for the first thing that is wrong with a budget. */
function checkValues(
  api: Pick<PluginApi, 'offers' | 'settings'>,
  plans: readonly string[],
  values: BudgetValues,
): BudgetValues {
  const offers = [api.offers('chat'), api.offers('embeddings'), api.offers('speech')].flatMap((each) => [
    ...each.keys(),
  ]);
  const names = { plans, providers: [...new Set(offers)], tags: api.settings.tags };
  const [problem] = checkBudget(values, names);
  if (!problem) return values;
  const param = problem.path.slice(1);
  throw new GatewayError('invalid_request', `"${param}" ${problem.message}. ${problem.hint}`, { param });
}

function clean(name: string): string {
  return name.replace(/[^\w.-]/g, '?').slice(0, 63);
}
