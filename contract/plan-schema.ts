import { MAX_OWN_BUDGETS, OWN_BUDGET } from './budget-rules.ts';
import type { FromSchema } from './json.ts';

export const NAME = { type: 'string', minLength: 1 } as const;
export const limit = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

const LIMITS = {
  rpm: limit('Requests a minute; 0 allows none.'),
  tpm: limit('Tokens a minute; 0 allows none.'),
  concurrency: limit('Calls at the same time; 0 allows none.'),
} as const;

/** Schema of one plan, as under `plans` in the configuration. */
export const PLAN_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...LIMITS,
    models: {
      ...{ type: 'array', minItems: 1, maxItems: 500, items: NAME },
      description: 'Models that its users may call: aliases, `provider/model`, `model`, `provider/*`; default: any.',
    },
    serverTools: {
      ...{ type: 'array', items: NAME },
      description:
        'Tools that a vendor runs with the operator’s account, as `web_search` or `mcp`, that its users may use; default: only those of their keys.',
    },
    providers: {
      ...{ type: 'object', description: 'Narrower limits by provider.' },
      additionalProperties: { type: 'object', additionalProperties: false, properties: LIMITS },
    },
    budgets: {
      type: 'array',
      maxItems: MAX_OWN_BUDGETS,
      items: OWN_BUDGET,
      description: 'What each account of the plan may spend, by calendar period.',
    },
  },
} as const;

/** Plan as written in files and requests. */
export type PlanValues = FromSchema<typeof PLAN_SCHEMA>;
