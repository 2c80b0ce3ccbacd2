import {
  type AuditActor,
  type BudgetValues,
  checkBudget,
  createPlanBook,
  GatewayError,
  type PluginApi,
  parseUsd,
  readBudget,
} from '../../../../core/index.ts';
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

export interface RaiseValues {
  readonly amount_usd: string | number;
  /** ISO 8601 with a zone. */
  readonly until: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/i;
/** How many raises of one budget may run at once, and how long one may. */
const MAX_RAISES = 20;
const LONGEST_RAISE_MS = 5 * 366 * 86_400_000;
/** Sums beyond it would not be whole numbers any more. */
const MAX_RAISED = 1_000_000_000_000_000;

type ManagerApi = Pick<PluginApi, 'settings' | 'offers' | 'records'>;

export function createBudgetManager(api: ManagerApi, records: BudgetRecords): BudgetManager {
  const readPlans = createPlanBook(api);
  const known = (name: string, budget: NamedBudget | undefined): NamedBudget => {
    if (budget) return budget;
    throw new GatewayError('not_found', `There is no budget "${clean(name)}".`);
  };
  const own = (budget: NamedBudget | undefined): void => {
    if (budget?.owner !== 'file') return;
    throw new GatewayError(
      'conflict',
      `The configuration of this gateway owns the budget "${budget.name}": change it there, under "budgets". Raises are allowed here.`,
    );
  };
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
        return { ...(owner === 'store' && { rule }), raises: make(raises.filter(({ until }) => until > Date.now())) };
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
      if (api.settings.billing === 'off')
        throw new GatewayError(
          'feature_disabled',
          'Budgets are not counted with "billing: off"; write billing: track.',
        );
      if (!NAME.test(name))
        throw new GatewayError(
          'invalid_request',
          'The name of a budget is up to 63 letters, digits, dots, dashes and underscores, and begins with a letter or digit.',
          { param: 'name' },
        );
      const rule = readBudget(checkValues(api, [...(await readPlans()).keys()], { ...values, name }));
      const make = (before: NamedBudget | undefined) => {
        own(before);
        return { rule, raises: before?.raises ?? [] };
      };
      return known(name, await records.change({ name, ...by, action: 'budget.put', make }));
    },

    async remove(name, by) {
      let removed: NamedBudget | undefined;
      const make = (before: NamedBudget | undefined): undefined => {
        removed = known(name, before);
        own(removed);
      };
      await records.change({ name, ...by, action: 'budget.remove', make });
      return known(name, removed);
    },

    async raise(name, { amount_usd, until }, by) {
      const raise = { amount: readRaise(amount_usd), until: readUntil(until, Date.now()) };
      return await changeRaises(name, by, 'budget.raise', (raises) => {
        const all = [...raises, raise];
        if (all.length > MAX_RAISES || all.reduce((sum, { amount }) => sum + amount, 0) > MAX_RAISED)
          throw new GatewayError('conflict', `A budget has at most ${MAX_RAISES} raises at once; end those that run.`);
        return all;
      });
    },

    endRaises: (name, by) => changeRaises(name, by, 'budget.end_raises', () => []),
  };
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

function readRaise(amount: string | number): number {
  try {
    const micro = parseUsd(amount);
    if (micro > 0) return micro;
  } catch {
    // Refused below: every amount that is none gets the same sentence.
  }
  throw new GatewayError(
    'invalid_request',
    'A raise is an amount of US dollars above 0: write "5", "0.50" or "12.345678".',
    { param: 'amount_usd' },
  );
}

function readUntil(text: string, now: number): number {
  const until = DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (until > now && until < now + LONGEST_RAISE_MS) return until;
  throw new GatewayError(
    'invalid_request',
    Number.isNaN(until)
      ? '"until" is not a date-time with a time zone: write 2027-01-31T12:00:00Z.'
      : '"until" is past, or more than five years ahead: a raise ends at a time within these.',
    { param: 'until' },
  );
}

function clean(name: string): string {
  return name.replace(/[^\w.-]/g, '?').slice(0, 63);
}
