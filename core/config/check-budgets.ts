import { type BudgetValues, readBudget } from '../contract/budgets.ts';
import { isObject } from '../contract/json.ts';
import type { TagRules } from '../contract/tags.ts';
import { type BudgetNames, checkBudget } from './check-budget.ts';
import type { CoreValues } from './core-schema.ts';
import { childPointer, type ProblemAt } from './problems.ts';

/** What core's part of a configuration says of budgets; its values may be of any shape when it has other problems. */
type Referring = Partial<Readonly<Record<keyof CoreValues, unknown>>>;

/** Budgets that name what is not there, count under one name twice, or could never be counted. */
export function checkBudgets(
  { budgets, plans, billing, tags }: Referring,
  providers: readonly string[],
): readonly ProblemAt[] {
  const known = isObject(plans) ? plans : {};
  const names: BudgetNames = { plans: Object.keys(known), providers, tags: readRules(tags) };
  const lists: readonly (readonly [string, unknown])[] = [
    ['/budgets', budgets],
    ...Object.entries(known).map(
      ([name, plan]) => [`${childPointer('/plans', name)}/budgets`, isObject(plan) ? plan['budgets'] : []] as const,
    ),
  ];
  const problems = lists.flatMap(([pointer, list]) => checkBudgetList(pointer, list, names));
  const first = lists.find(([, list]) => Array.isArray(list) && list.length > 0);
  if (billing !== 'off' || !first) return problems;
  const hint = 'Write billing: track, or enforce where balances count too.';
  return [...problems, { pointer: first[0], message: 'are not counted with "billing: off"', hint }];
}

/** The tags of a configuration; undefined for what its schema refuses, which is told already. */
function readRules(tags: unknown): TagRules | undefined {
  if (tags === undefined) return {};
  return isObject(tags) && Object.values(tags).every(isValues) ? (tags as TagRules) : undefined;
}

function isValues(values: unknown): boolean {
  return values === '*' || (Array.isArray(values) && values.every((value) => typeof value === 'string'));
}

/** The same of one list of budgets, whose place `pointer` is. */
export function checkBudgetList(pointer: string, list: unknown, names: BudgetNames): readonly ProblemAt[] {
  if (!Array.isArray(list)) return [];
  const known = new Set<string>();
  return list.flatMap((each: unknown, at): readonly ProblemAt[] => {
    const place = childPointer(pointer, at);
    // What its schema refuses is told already.
    if (!isBudget(each)) return [];
    const problems = checkBudget(each, names).map(({ path, ...problem }) => ({ pointer: place + path, ...problem }));
    if (problems.length > 0) return problems;
    const { name } = readBudget(each);
    if (!known.has(name)) {
      known.add(name);
      return [];
    }
    const message = `is the second budget named "${name}": what is spent is counted by name`;
    return [{ pointer: `${place}/name`, message, hint: 'Give it a "name" of its own.' }];
  });
}

const TEXTS = ['name', 'user', 'key', 'tag', 'plan', 'provider', 'model'] as const;
const AMOUNTS = ['soft_usd', 'starts_on'] as const;

function isBudget(value: unknown): value is BudgetValues {
  if (!isObject(value) || typeof value['every'] !== 'string' || typeof value['timezone'] !== 'string') return false;
  const isAmount = (amount: unknown): boolean => typeof amount === 'string' || typeof amount === 'number';
  return (
    isAmount(value['amount_usd']) &&
    TEXTS.every((field) => value[field] === undefined || typeof value[field] === 'string') &&
    AMOUNTS.every((field) => value[field] === undefined || isAmount(value[field]))
  );
}
