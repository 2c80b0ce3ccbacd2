import { MAX_OWN_BUDGETS, OWN_BUDGET } from './budget-rules.ts';
import type { FromSchema } from './json.ts';

export const NAME = { type: 'string', minLength: 1 } as const;
export const limit = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

const LIMITS = {
  rpm: limit('Requests per minute; 0 allows none.'),
  tpm: limit('Tokens per minute; 0 allows none.'),
  concurrency: limit('Concurrent calls; 0 allows none.'),
} as const;

/** Schema of one plan, as under `plans` in the configuration. */
export const PLAN_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...LIMITS,
    models: {
      type: 'array',
      minItems: 1,
      maxItems: 500,
      items: NAME,
      description: 'Models that its users may call: aliases, `provider/model`, `model`, `provider/*`. Default: any.',
    },
    serverTools: {
      type: 'array',
      items: NAME,
      description:
        'Vendor tools that run with the operator’s account: `search`, `fetch`, `code`, `files`, `images`, `models`, `mcp`, `computer`, or names such as `web_search`. Default: only those of the key.',
    },
    chatTools: {
      type: 'array',
      maxItems: 100,
      items: { type: 'string', pattern: '^mcp:[a-z0-9][a-z0-9-]{0,30}(/.+)?$', maxLength: 256 },
      description:
        'Tools of MCP servers in each chat: `mcp:server` or `mcp:server/tool`. Callers get those that `serverTools` allows.',
    },
    providers: {
      type: 'object',
      description: 'Additional limits by provider.',
      additionalProperties: { type: 'object', additionalProperties: false, properties: LIMITS },
    },
    budgets: {
      type: 'array',
      maxItems: MAX_OWN_BUDGETS,
      items: OWN_BUDGET,
      description: 'Budgets of each account of the plan, by calendar period.',
    },
  },
} as const;

/** Plan as written in files and requests. */
export type PlanValues = FromSchema<typeof PLAN_SCHEMA>;
