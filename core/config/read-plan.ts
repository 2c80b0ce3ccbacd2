import { readBudget } from '../contract/budgets.ts';
import { GatewayError } from '../contract/errors.ts';
import { isObject } from '../contract/json.ts';
import type { Plan } from '../contract/settings.ts';
import { checkBudgetList } from './check-budgets.ts';
import { CORE_PROPERTIES, type CoreValues } from './core-schema.ts';
import { validateValue } from './validate.ts';

/** The schema of one plan, as the configuration has it under `plans`. */
export const PLAN_SCHEMA = CORE_PROPERTIES.plans.additionalProperties;

/** A plan that an operator puts at run time, held to the schema of those in the file; throws `invalid_request` naming the field. */
export function readPlan(value: unknown): Plan {
  if (!isObject(value)) throw new GatewayError('invalid_request', 'A plan is an object, such as {"rpm": 60}.');
  const plan = structuredClone(value) as CoreValues['plans'][string];
  const found = validateValue(plan, PLAN_SCHEMA, { pointer: '', baseDir: '/', isHidden: () => false });
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
export function planOf({ budgets, ...plan }: CoreValues['plans'][string]): Plan {
  return { ...(plan as Plan), ...(budgets && { budgets: budgets.map(readBudget) }) };
}
