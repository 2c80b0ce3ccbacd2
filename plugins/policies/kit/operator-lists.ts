import type { Route, RouteContext, Schema } from '../../../contract/index.ts';

/** Common parts of operator routes: access, and pages of lists. */

/** Spread it into a route to restrict it to operators with the route's `scope`; without a scope to admins. */
export const FOR_OPERATORS = Object.freeze({ auth: ['key', 'token'], role: 'admin' } as const satisfies Partial<Route>);

const MAX_PAGE = 1000;
const DEFAULT_PAGE = 100;

/** Query of a list. */
export const PAGE_QUERY = Object.freeze({
  limit: {
    type: 'string',
    pattern: '^([1-9][0-9]{0,2}|1000)$',
    description: `1 to ${MAX_PAGE}. Default: ${DEFAULT_PAGE}.`,
  },
  after: { type: 'string', minLength: 1, maxLength: 500, description: '`next` of the previous page.' },
} as const satisfies Readonly<Record<string, Schema>>);

/**
 * Reads the query of a list as seen by the validator: for a repeated name, Koa's `ctx.query` also contains the other
 * value.
 */
export function readPage(ctx: Pick<RouteContext, 'querystring'>): {
  readonly limit: number;
  readonly after?: string;
  readonly query: Readonly<Record<string, string>>;
} {
  const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
  const { limit = String(DEFAULT_PAGE), after } = query;
  return { limit: Number(limit), ...(after !== undefined && { after }), query };
}

/** Schema of a list's response; `extra` lists fields next to the list itself. */
export function listOf(item: Schema, extra: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    required: ['object', 'data', 'has_more', ...Object.keys(extra)],
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items: item },
      has_more: { type: 'boolean' },
      next: { type: 'string', description: 'Value of `after` for the next page; absent on the last one.' },
      ...extra,
    },
  };
}

/** Sends a page; `next` is the start of the next one, absent on the last. `extra` contains additional fields. */
export function sendList(
  ctx: RouteContext<unknown>,
  data: readonly object[],
  next: string | undefined,
  extra?: object,
): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = { object: 'list', data, has_more: next !== undefined, ...(next !== undefined && { next }), ...extra };
}
