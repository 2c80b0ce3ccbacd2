import {
  createPlanFinder,
  formatUsd,
  GatewayError,
  type PluginApi,
  type ReportRow,
  type Route,
} from '../../../core/index.ts';

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

/** The longest span of a usage report, in days. */
const MAX_DAYS = 366;

const GROUPS = ['day', 'model', 'provider', 'key', 'operation'] as const;
type Group = (typeof GROUPS)[number];

const MONEY = { type: 'string', description: 'US dollars as a decimal string.' };

/** What a caller may read of its own account, and of no other. */
export function accountRoutes(api: PluginApi, permission: string): readonly Route[] {
  return [balanceRoute(api, permission), usageRoute(api, permission)];
}

function balanceRoute(api: PluginApi, permission: string): Route {
  const findPlan = createPlanFinder(api);
  return {
    method: 'GET',
    path: '/api/core/balance',
    summary: 'The balance, the plan and its limits',
    auth: ['key', 'token'],
    permission,
    // No account can be named: a caller who tries is refused, instead of getting its own account for the other's.
    query: { type: 'object', additionalProperties: false, properties: {} },
    responses: {
      200: {
        description: 'The account of the caller.',
        schema: {
          type: 'object',
          required: ['user_id', 'plan', 'currency', 'balance', 'held', 'spent', 'credited', 'limits', 'updated_at'],
          properties: {
            user_id: { type: 'string' },
            plan: { type: ['string', 'null'] },
            currency: { const: 'USD' },
            balance: MONEY,
            held: MONEY,
            spent: MONEY,
            credited: MONEY,
            limits: { type: 'object' },
            updated_at: { type: ['string', 'null'] },
          },
        },
      },
    },
    async handler(ctx) {
      const { principal } = ctx.state;
      const [{ balance, held, spent, credited, updatedAt }, plan] = await Promise.all([
        api.ledger.balance(principal.account),
        findPlan(principal),
      ]);
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        user_id: principal.userId,
        plan: plan?.name ?? null,
        currency: 'USD',
        balance: formatUsd(balance),
        held: formatUsd(held),
        spent: formatUsd(spent),
        credited: formatUsd(credited),
        limits: {
          ...plan?.plan,
          ...(principal.rpm !== undefined && { key_rpm: principal.rpm }),
          ...(principal.tpm !== undefined && { key_tpm: principal.tpm }),
          ...(principal.budget !== undefined && { key_budget_usd: formatUsd(principal.budget) }),
        },
        updated_at: updatedAt === 0 ? null : new Date(updatedAt).toISOString(),
      };
    },
  };
}

function usageRoute(api: PluginApi, permission: string): Route {
  return {
    method: 'GET',
    path: '/api/core/usage',
    summary: 'What was used, by day, model, provider, key or operation',
    auth: ['key', 'token'],
    permission,
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        from: {
          type: 'string',
          pattern: DAY.source,
          description: 'First day, `YYYY-MM-DD`, UTC; 30 days ago unless given.',
        },
        to: { type: 'string', pattern: DAY.source, description: 'Last day; today unless given.' },
        group_by: {
          type: 'string',
          description: 'One or more of day, model, provider, key, operation, with commas; `day` unless given.',
        },
      },
    },
    responses: {
      200: {
        description: 'One row a group.',
        schema: {
          type: 'object',
          required: ['object', 'data'],
          properties: { object: { const: 'list' }, data: { type: 'array', items: { type: 'object' } } },
        },
      },
    },
    async handler(ctx) {
      const query = new URLSearchParams(ctx.querystring);
      const now = Date.now();
      const to = readDay(query.get('to'), 'to', now);
      const from = readDay(query.get('from'), 'from', Date.parse(to) - 29 * DAY_MS);
      const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
      if (days < 1 || days > MAX_DAYS)
        throw new GatewayError(
          'invalid_request',
          `"from" must be before "to", and at most ${MAX_DAYS} days before it.`,
          { param: 'from' },
        );
      const groups = readGroups(query.get('group_by'));
      const { principal } = ctx.state;
      const start = Date.parse(from);
      const rows = await api.ledger.report({
        edges: Array.from({ length: days + 1 }, (_, day) => start + day * DAY_MS),
        by: groups.filter((group) => group !== 'day'),
        account: principal.account,
        // A key sees what it used itself; a token sees its whole account.
        ...(principal.credential === 'key' && principal.keyId !== undefined && { key: principal.keyId }),
      });
      ctx.set('cache-control', 'no-store');
      ctx.body = { object: 'list', from, to, group_by: groups, currency: 'USD', data: groupUsage(rows, groups, start) };
    },
  };
}

function readDay(text: string | null, param: string, fallback: number): string {
  const day = text ?? new Date(fallback).toISOString().slice(0, 10);
  const time = DAY.test(day) ? Date.parse(day) : Number.NaN;
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== day)
    throw new GatewayError('invalid_request', `"${param}" must be a day like 2026-11-20.`, { param });
  return day;
}

function readGroups(text: string | null): readonly Group[] {
  const names = (text ?? 'day').split(',').map((name) => name.trim());
  for (const name of names) {
    if (!GROUPS.includes(name as Group))
      throw new GatewayError('invalid_request', `"group_by" must be of ${GROUPS.join(', ')}.`, { param: 'group_by' });
  }
  return [...new Set(names)] as Group[];
}

/** Rows as the API shows them; days that are not told apart become one. */
function groupUsage(rows: readonly ReportRow[], groups: readonly Group[], start: number): readonly object[] {
  const sums = new Map<string, { readonly names: object; readonly sum: UsageSum }>();
  for (const row of rows) {
    const day = new Date(start + row.interval * DAY_MS).toISOString().slice(0, 10);
    const names = Object.fromEntries(groups.map((group) => [group, group === 'day' ? day : row[group]]));
    const key = JSON.stringify(names);
    const found = sums.get(key) ?? { names, sum: { ...NOTHING } };
    sums.set(key, found);
    const { prompt_tokens, completion_tokens, characters } = row.units;
    const counts = { requests: row.requests, prompt_tokens, completion_tokens, characters, cost: row.cost };
    for (const name of COUNTS) found.sum[name] += counts[name];
  }
  return [...sums.values()].map(({ names, sum: { cost, ...counts } }) => ({
    ...names,
    ...counts,
    cost_usd: formatUsd(cost),
  }));
}

const NOTHING = Object.freeze({ requests: 0, prompt_tokens: 0, completion_tokens: 0, characters: 0, cost: 0 });
type UsageSum = { -readonly [K in keyof typeof NOTHING]: number };
const COUNTS = Object.keys(NOTHING) as readonly (keyof UsageSum)[];
