import { type BudgetValues, isTimeZone, readBudget, WEEKDAYS } from './budget-rules.ts';
import { GatewayError } from './errors.ts';
import { isObject } from './json.ts';
import { didYouMean } from './nearest.ts';
import { PLAN_SCHEMA, type PlanValues } from './plan-schema.ts';
import type { Plan, Validate } from './plugin.ts';
import { childPointer, type ProblemAt } from './pointers.ts';
import { parseUsd, refuseTag, type TagRules, tagName } from './units.ts';

/** Budget-related part of core's configuration; values may have any shape if other parts are invalid. */
type Referring = Partial<Readonly<Record<'budgets' | 'plans' | 'billing' | 'tags', unknown>>>;

/** Finds budgets that refer to missing objects, share a name, or can never count a call. */
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
  const hint = 'Set billing: track, or enforce to check balances too.';
  return [...problems, { pointer: first[0], message: 'are not counted with "billing: off"', hint }];
}

/** Returns the tags of a configuration; undefined if invalid, which the schema reports. */
function readRules(tags: unknown): TagRules | undefined {
  if (tags === undefined) return {};
  return isObject(tags) && Object.values(tags).every(isValues) ? (tags as TagRules) : undefined;
}

function isValues(values: unknown): boolean {
  return values === '*' || (Array.isArray(values) && values.every((value) => typeof value === 'string'));
}

/** Checks one list of budgets at `pointer`. */
function checkBudgetList(pointer: string, list: unknown, names: BudgetNames): readonly ProblemAt[] {
  if (!Array.isArray(list)) return [];
  const known = new Set<string>();
  return list.flatMap((each: unknown, at): readonly ProblemAt[] => {
    const place = childPointer(pointer, at);
    // Invalid budgets are reported by the schema.
    if (!isBudget(each)) return [];
    const problems = checkBudget(each, names).map(({ path, ...problem }) => ({ pointer: place + path, ...problem }));
    if (problems.length > 0) return problems;
    const { name } = readBudget(each);
    if (!known.has(name)) {
      known.add(name);
      return [];
    }
    const message = `is a duplicate of the budget "${name}"; spend is counted by name`;
    return [{ pointer: `${place}/name`, message, hint: 'Set a unique "name".' }];
  });
}

const TEXTS = ['name', 'user', 'key', 'tag', 'plan', 'end_user', 'provider', 'model'] as const;
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

/** Names that a budget may refer to. */
interface BudgetNames {
  readonly plans: readonly string[];
  readonly providers: readonly string[];
  /** Allowed tags of calls; default: any tag. */
  readonly tags?: TagRules | undefined;
}

/** Problem of a budget: its path, the error and the fix. */
interface BudgetProblem {
  /** A JSON pointer. */
  readonly path: string;
  /** End of a sentence that begins with the path. */
  readonly message: string;
  readonly hint: string;
}

/** Finds problems of a budget that matches its schema. */
export function checkBudget(budget: BudgetValues, names: BudgetNames): readonly BudgetProblem[] {
  const { timezone, tag } = budget;
  const problems: BudgetProblem[] = [...checkAmounts(budget), ...checkStart(budget)];
  if (!isTimeZone(timezone))
    problems.push({
      path: '/timezone',
      message: 'is not a time zone',
      hint: 'Use an IANA name such as Europe/Berlin, America/New_York or UTC.',
    });
  if (tag !== undefined) problems.push(...checkTag(tag, names.tags));
  // Any caller may name any end user, and would spend the budget of others.
  if (budget.end_user !== undefined && (budget.key ?? budget.user ?? tag) === undefined)
    problems.push({
      path: '/end_user',
      message: 'has no key, user or tag, so that any caller could use it up',
      hint: 'Add the "key" of the application that names its end users.',
    });
  for (const [field, known] of [
    ['plan', names.plans],
    ['provider', names.providers],
  ] as const) {
    const name = budget[field];
    if (name !== undefined && !known.includes(name))
      problems.push({
        path: `/${field}`,
        message: `names a ${field} that is not configured`,
        hint: didYouMean(name, known) ?? listOf(known),
      });
  }
  return problems;
}

/** Reports tags that no call can carry: they would limit nothing. */
function checkTag(tag: string, rules: TagRules | undefined): readonly BudgetProblem[] {
  const path = '/tag';
  if (!/^[^=\s]+=\S/.test(tag))
    return [{ path, message: 'is not a tag', hint: 'Use name=value, such as team=search.' }];
  if (!rules || refuseTag(tag, rules) === undefined) return [];
  const name = tagName(tag);
  const values = Object.hasOwn(rules, name) ? rules[name] : undefined;
  if (values === '*')
    return [
      {
        path,
        message: 'has an invalid tag value',
        hint: 'Use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit.',
      },
    ];
  const known = values ? values.map((value) => `${name}=${value}`) : Object.keys(rules);
  const none = 'No tags are configured. Add it to "tags".';
  const hint = known.length === 0 ? none : (didYouMean(values ? tag : name, known) ?? listOf(known));
  return [{ path, message: 'refers to a tag that is not in "tags" of the configuration', hint }];
}

function listOf(known: readonly string[]): string {
  return known.length > 0 ? `There are: ${known.slice(0, 20).join(', ')}.` : 'There are none.';
}

function checkAmounts({ amount_usd, soft_usd }: BudgetValues): readonly BudgetProblem[] {
  const amount = readAmount(amount_usd);
  const soft = soft_usd === undefined ? undefined : readAmount(soft_usd);
  const problems: BudgetProblem[] = [];
  const hint = 'Write 25, 0.50 or "12.345678": more than 0, at most 9000000, with at most nine decimals.';
  if (!(amount > 0)) problems.push({ path: '/amount_usd', message: 'must be an amount of US dollars above 0', hint });
  if (soft !== undefined && !(soft > 0))
    problems.push({ path: '/soft_usd', message: 'must be an amount of US dollars above 0', hint });
  if (soft !== undefined && soft > amount)
    problems.push({
      path: '/soft_usd',
      message: 'exceeds "amount_usd", so it would never warn',
      hint: 'Use less than "amount_usd".',
    });
  return problems;
}

function checkStart({ every, starts_on }: BudgetValues): readonly BudgetProblem[] {
  if (starts_on === undefined) return [];
  const path = '/starts_on';
  if (every === 'week') {
    if (WEEKDAYS.some((day) => day === starts_on)) return [];
    return [{ path, message: 'must be a day of the week', hint: `Write one of ${WEEKDAYS.join(', ')}.` }];
  }
  if (every === 'month') {
    if (typeof starts_on === 'number' && starts_on >= 1 && starts_on <= 28) return [];
    return [{ path, message: 'must be a day from 1 to 28', hint: 'Use a number from 1 to 28.' }];
  }
  return [{ path, message: `has no effect with "every: ${every}"`, hint: 'Remove it, or set every: week or month.' }];
}

/** Returns NaN for an invalid amount. */
function readAmount(amount: string | number): number {
  try {
    return parseUsd(amount);
  } catch {
    return Number.NaN;
  }
}

/**
 * Validates a plan that an operator writes at run time against the schema of configured plans. `validate` is that of the gateway
 * (`api.operators.validate`). Throws `invalid_request` with the name of the field.
 */
export function readPlan(value: unknown, validate: Validate): Plan {
  if (!isObject(value)) throw new GatewayError('invalid_request', 'A plan must be an object, such as {"rpm": 60}.');
  const plan = structuredClone(value) as PlanValues;
  const found = validate(plan, PLAN_SCHEMA);
  // The names of providers are unknown here.
  const providers = (plan.budgets ?? []).flatMap(({ provider }) => provider ?? []);
  const [problem] = found.length > 0 ? found : checkBudgetList('/budgets', plan.budgets, { plans: [], providers });
  if (!problem) return planOf(plan);
  const param = problem.pointer.slice(1).replaceAll('/', '.');
  const sentence = `${param === '' ? 'The plan' : `"${param}"`} ${problem.message}`;
  throw new GatewayError('invalid_request', `${sentence}.${problem.hint ? ` ${problem.hint}` : ''}`, {
    ...(param !== '' && { param }),
  });
}

/** Converts a validated plan to the gateway's form. */
export function planOf({ budgets, ...plan }: PlanValues): Plan {
  return { ...(plan as Plan), ...(budgets && { budgets: budgets.map(readBudget) }) };
}
