import { MAX_OWN_BUDGETS, OWN_BUDGET } from '../contract/budgets.ts';
import type { Schema } from '../contract/json.ts';

const NAME = { type: 'string', minLength: 1 } as const;
const limit = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

const LIMITS = {
  rpm: limit('Requests a minute; 0 allows none.'),
  tpm: limit('Tokens a minute; 0 allows none.'),
  concurrency: limit('Calls at the same time; 0 allows none.'),
} as const;

/** `plans:`, a map of plans by name. */
export const PLANS = {
  type: 'object',
  default: {},
  description: 'Limits by plan name. A key, a claim of a token or an account says which plan a user has.',
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...LIMITS,
      serverTools: {
        type: 'array',
        items: NAME,
        description:
          'Tools that a vendor runs with the operator’s account, as `web_search` or `mcp`, that its users may use; none unless set, but those of their keys.',
      },
      providers: {
        type: 'object',
        description: 'Narrower limits by provider.',
        additionalProperties: { type: 'object', additionalProperties: false, properties: LIMITS },
      },
      budgets: {
        type: 'array',
        maxItems: MAX_OWN_BUDGETS,
        items: OWN_BUDGET,
        description: 'What each account of the plan may spend, by calendar period.',
      },
    },
  },
} as const satisfies Schema;
