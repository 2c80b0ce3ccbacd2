import type { PluginApi, Route, RouteContext, Schema } from '../../../core/index.ts';
import { ownCalls, reportQuery, wordsOf } from './route-query.ts';
import { readUsageQuery, runUsageQuery, type UsageQuery } from './usage-query.ts';
import { COLUMNS, csvOfReport, tellReport } from './usage-shapes.ts';
import { FILTER_WORDS } from './words.ts';

const DESCRIPTION =
  'Calls count when they are settled. The range is half-open: `to` is not in it. `totals` is of all rows, whatever the page, and counts each call once; a call with several tags stands in the row of each, and `shared` says how much that is.';

const SUMS: Schema = {
  type: 'object',
  required: Object.keys(COLUMNS),
  properties: Object.fromEntries(
    Object.keys(COLUMNS).map((name) => [
      name,
      name.endsWith('_usd')
        ? { type: 'string', description: 'US dollars as a decimal string.' }
        : { type: 'integer', minimum: 0 },
    ]),
  ),
};

const REPORT: Schema = {
  type: 'object',
  required: ['object', 'from', 'to', 'tz', 'by', 'currency', 'data', 'rows', 'totals', 'has_more'],
  properties: {
    object: { const: 'list' },
    from: { type: 'string', format: 'date-time' },
    to: { type: 'string', format: 'date-time', description: 'Exclusive.' },
    tz: { type: 'string' },
    by: { type: 'array', items: { type: 'string' } },
    currency: { const: 'USD' },
    data: { type: 'array', items: SUMS, description: 'A name for each word of `by`, and the sums.' },
    rows: { type: 'integer', description: 'How many rows all pages have together.' },
    totals: SUMS,
    shared: {
      type: 'object',
      description:
        'By tag only: the calls that carry several tags, and what the rows together have above the totals because of them.',
      required: ['requests', 'cost_usd', 'repeated_requests', 'repeated_cost_usd'],
    },
    has_more: { type: 'boolean' },
    next: { type: 'string', description: 'The `after` of the next page.' },
  },
};

const RESPONSES = { 200: { description: 'One row a group; with `format=csv` as text/csv.', schema: REPORT } };

/** `GET /api/core/usage` for everyone, `GET /api/core/admin/usage` for operators. */
export function usageRoutes(api: PluginApi, permission: string): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/core/usage',
      summary: 'What you used, by time, model, provider, tag, key or operation',
      description: `A key sees what it used itself, a token all of its account. ${DESCRIPTION}`,
      auth: ['key', 'token'],
      permission,
      query: reportQuery(FILTER_WORDS.filter((word) => word !== 'account')),
      responses: RESPONSES,
      async handler(ctx) {
        const query = readUsageQuery(wordsOf(ctx), Date.now());
        await respond(ctx, api, { ...query, filter: ownCalls(ctx.state.principal, query.filter) });
      },
    },
    {
      method: 'GET',
      path: '/api/core/admin/usage',
      summary: 'What was used by all, by user, key, tag, provider, model, operation, session or time',
      description: DESCRIPTION,
      auth: ['key', 'token'],
      role: 'admin',
      query: reportQuery(FILTER_WORDS),
      responses: RESPONSES,
      handler: (ctx) => respond(ctx, api, readUsageQuery(wordsOf(ctx), Date.now())),
    },
  ];
}

async function respond(ctx: RouteContext, { ledger }: PluginApi, query: UsageQuery): Promise<void> {
  const page = await runUsageQuery(ledger, query);
  ctx.set('cache-control', 'no-store');
  if (query.format === 'json') {
    ctx.body = tellReport(page, query);
    return;
  }
  const { from, to } = query.range;
  const days = [from, to].map((at) => new Date(at).toISOString().slice(0, 10));
  ctx.set('content-disposition', `attachment; filename="usage-${days.join('-to-')}.csv"`);
  ctx.type = 'text/csv; charset=utf-8';
  ctx.body = csvOfReport(page, query.by);
}
