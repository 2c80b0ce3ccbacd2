import {
  type GatewaySettings,
  type PlanFinder,
  type PluginApi,
  type Principal,
  splitModel,
  type Target,
} from '../../../contract/index.ts';
import { type FindCallable, MAX_SHOWN } from '../kit/callable-models.ts';
import type { BudgetBook } from './budgets/find-budgets.ts';

interface Parts {
  readonly api: Pick<PluginApi, 'models'>;
  readonly findPlan: PlanFinder;
  readonly book: Pick<BudgetBook, 'find'>;
  readonly now: () => number;
  readonly billing: GatewaySettings['billing'];
}

/** Creates the finder of callable models: allow-lists, plan, budgets and balance of a caller, as its calls meet them. */
export function createFindCallable({ api: { models }, findPlan, book, now, billing }: Parts): FindCallable {
  return async (principal: Principal) => {
    const plan = await findPlan(principal);
    const tags = principal.tags ?? [];
    const callable: string[] = [];
    const stopped: { id: string; problem: string }[] = [];
    const names = [...models.aliases().map(([alias]) => alias), ...models.list().map(({ id }) => id)];
    const limited = new Map<string, boolean>();
    const targets = [...new Set(names.flatMap((name) => models.alias(name) ?? [name]))];
    for (const text of targets) {
      if (billing === 'off') break;
      const target = splitModel(text);
      limited.set(text, billing === 'enforce' || (await book.find({ principal, tags }, now(), [target])).isLimited);
    }
    const isLimited = ({ provider, model }: Target): boolean => limited.get(`${provider}/${model}`) === true;
    const own = new Set(models.list(principal).map(({ id }) => id));
    for (const id of new Set(names)) {
      const problem = models.problemOf(id, { principal, plan, isLimited });
      if (problem?.stops !== true) callable.push(id);
      else if (models.alias(id) || (own.has(id) && models.catalog.isConfigured(splitModel(id).provider)))
        stopped.push({ id, problem: problem.text });
    }
    return { callable: callable.slice(0, MAX_SHOWN), count: callable.length, stopped: stopped.slice(0, MAX_SHOWN) };
  };
}
