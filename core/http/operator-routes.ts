import { GatewayError } from '../contract/errors.ts';
import type { Schema } from '../contract/json.ts';
import type { Route, RouteContext } from '../contract/route.ts';
import { changedMeanwhile } from '../plugins/records.ts';

/** What the routes of operators have in common: who may call them, pages of lists, versions against lost updates. */

/** Spread into a route: for operators alone. */
export const FOR_OPERATORS = Object.freeze({ auth: ['key', 'token'], role: 'admin' } as const satisfies Partial<Route>);

const MAX_PAGE = 1000;
const DEFAULT_PAGE = 100;

/** The query of a list. */
export const PAGE_QUERY = Object.freeze({
  limit: {
    type: 'string',
    pattern: '^([1-9][0-9]{0,2}|1000)$',
    description: `1 to ${MAX_PAGE}; ${DEFAULT_PAGE} by default.`,
  },
  after: { type: 'string', minLength: 1, maxLength: 500, description: '`next` of the page before.' },
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
      next: { type: 'string', description: 'What the next page goes on `after`; absent on the last one.' },
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

/** Sends one thing, with its version as `ETag`. */
export function sendVersion(ctx: RouteContext<unknown>, version: number | string, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.set('etag', `"${version}"`);
  ctx.body = body;
}

const ETAGS = /^(?:W\/)?"[\x21\x23-\x7e]{0,200}"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]{0,200}")*$/;

/**
 * Holds a change to the version that `If-Match` names; true when it named one, so that the write has to be of this version.
 * Throws `precondition_failed` for another version, `invalid_request` for a header that is none. Weak tags never match
 * (RFC 9110, section 13.1.1).
 */
export function matchVersion(ctx: Pick<RouteContext<unknown>, 'headers'>, version: number | string): boolean {
  const header = ctx.headers['if-match']?.trim();
  if (header === undefined || header === '*') return false;
  if (!ETAGS.test(header))
    throw new GatewayError(
      'invalid_request',
      'If-Match is no list of ETags: send back what "ETag" said, such as "3" with its quotes.',
      {
        param: 'If-Match',
      },
    );
  if (header.split(',').some((tag) => tag.trim() === `"${version}"`)) return true;
  throw changedMeanwhile();
}
