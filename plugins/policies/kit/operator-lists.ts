import type { Route, RouteContext, Schema } from '../../../contract/index.ts';

/** What the routes of operators have in common: who may call them, pages of lists. */

/** Spread into a route: for operators alone, who need the `scope` that it names beside; without one for admins. */
export const FOR_OPERATORS = Object.freeze({ auth: ['key', 'token'], role: 'admin' } as const satisfies Partial<Route>);

const MAX_PAGE = 1000;
const DEFAULT_PAGE = 100;

/** The query of a list. */
export const PAGE_QUERY = Object.freeze({
  limit: {
    type: 'string',
    pattern: '^([1-9][0-9]{0,2}|1000)$',
    description: `1 to ${MAX_PAGE}. Default: ${DEFAULT_PAGE}.`,
  },
  after: { type: 'string', minLength: 1, maxLength: 500, description: '`next` of the previous page.' },
} as const satisfies Readonly<Record<string, Schema>>);

/** The query of a list as the validator saw it: of a name that came twice, Koa's own `ctx.query` also has the other value. */
export function readPage(ctx: Pick<RouteContext, 'querystring'>): {
  readonly limit: number;
  readonly after?: string;
  readonly query: Readonly<Record<string, string>>;
} {
  const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
  const { limit = String(DEFAULT_PAGE), after } = query;
  return { limit: Number(limit), ...(after !== undefined && { after }), query };
}

/** The schema of a list's response; `beside` is what comes with it that is no part of the list. */
export function listOf(item: Schema, beside: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    required: ['object', 'data', 'has_more', ...Object.keys(beside)],
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items: item },
      has_more: { type: 'boolean' },
      next: { type: 'string', description: 'Value of `after` for the next page; absent on the last one.' },
      ...beside,
    },
  };
}

/** Sends a page; `next` is where the next one goes on, absent on the last. `beside` is what comes with it. */
export function sendList(
  ctx: RouteContext<unknown>,
  data: readonly object[],
  next: string | undefined,
  beside?: object,
): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = { object: 'list', data, has_more: next !== undefined, ...(next !== undefined && { next }), ...beside };
}
