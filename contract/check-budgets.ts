import { type BudgetValues, isTimeZone, readBudget, WEEKDAYS } from './budget-rules.ts';
import { GatewayError } from './errors.ts';
import { isObject } from './json.ts';
import { didYouMean } from './nearest.ts';
import { PLAN_SCHEMA, type PlanValues } from './plan-schema.ts';
import type { Plan, Validate } from './plugin.ts';
import { childPointer, type ProblemAt } from './pointers.ts';
import { parseUsd, refuseTag, type TagRules, tagName } from './units.ts';

/** What core's part of a configuration says of budgets; its values may be of any shape when it has other problems. */
type Referring = Partial<Readonly<Record<'budgets' | 'plans' | 'billing' | 'tags', unknown>>>;

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
  const hint = 'Set billing: track, or enforce to check balances too.';
  return [...problems, { pointer: first[0], message: 'are not counted with "billing: off"', hint }];
}

/** The tags of a configuration; undefined for what its schema refuses, which is reported already. */
function readRules(tags: unknown): TagRules | undefined {
  if (tags === undefined) return {};
  return isObject(tags) && Object.values(tags).every(isValues) ? (tags as TagRules) : undefined;
}

function isValues(values: unknown): boolean {
  return values === '*' || (Array.isArray(values) && values.every((value) => typeof value === 'string'));
}

/** The same of one list of budgets, whose place `pointer` is. */
function checkBudgetList(pointer: string, list: unknown, names: BudgetNames): readonly ProblemAt[] {
  if (!Array.isArray(list)) return [];
  const known = new Set<string>();
  return list.flatMap((each: unknown, at): readonly ProblemAt[] => {
    const place = childPointer(pointer, at);
    // What its schema refuses is reported already.
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

/** What a budget may refer to. */
interface BudgetNames {
  readonly plans: readonly string[];
  readonly providers: readonly string[];
  /** What calls may be booked under; default: any tag. */
  readonly tags?: TagRules | undefined;
}

/** A mistake in a budget: where in it, what is wrong and what to do. */
interface BudgetProblem {
  /** A JSON pointer. */
  readonly path: string;
  /** The end of a sentence that begins with the place. */
  readonly message: string;
  readonly hint: string;
}

/** What is wrong with a budget that its schema takes. */
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

/** A tag that no call can carry would limit nothing. */
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
        ...{ path, message: 'has an invalid tag value' },
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

/** Not a number for a text that is no amount. */
function readAmount(amount: string | number): number {
  try {
    return parseUsd(amount);
  } catch {
    return Number.NaN;
  }
}

/** A plan that an operator puts at run time, held to the schema of those in the file; throws `invalid_request` naming the field. */
/** `validate` is that of the gateway (`api.operators.validate`). */
export function readPlan(value: unknown, validate: Validate): Plan {
  if (!isObject(value)) throw new GatewayError('invalid_request', 'A plan must be an object, such as {"rpm": 60}.');
  const plan = structuredClone(value) as PlanValues;
  const found = validate(plan, PLAN_SCHEMA);
  // Which providers there are is not known here.
  const providers = (plan.budgets ?? []).flatMap(({ provider }) => provider ?? []);
  const [problem] = found.length > 0 ? found : checkBudgetList('/budgets', plan.budgets, { plans: [], providers });
  if (!problem) return planOf(plan);
  const param = problem.pointer.slice(1).replaceAll('/', '.');
  const sentence = `${param === '' ? 'The plan' : `"${param}"`} ${problem.message}`;
  throw new GatewayError('invalid_request', `${sentence}.${problem.hint ? ` ${problem.hint}` : ''}`, {
    ...(param !== '' && { param }),
  });
}

/** A checked plan as the gateway counts it. */
export function planOf({ budgets, ...plan }: PlanValues): Plan {
  return { ...(plan as Plan), ...(budgets && { budgets: budgets.map(readBudget) }) };
}
