import type { CallPage, PluginApi, Route, RouteContext, Schema } from '../../../core/index.ts';
import { CALL, tellCall } from './call-shapes.ts';
import { listCalls, readCallsQuery } from './calls-query.ts';
import { findCall } from './find-call.ts';
import { type Followers, respondFollowing } from './follow-route.ts';
import { descriptions, ownCalls, querySchema, RANGE_WORDS, wordsOf } from './route-query.ts';
import { FILTER_WORDS, MAX_LIMIT, readChoice } from './words.ts';

/** What is kept of a call beside its record; undefined while nothing is. */
export type FindBodies = (id: string) => Promise<object | undefined>;

const LIST_WORDS = Object.freeze({
  outcome: 'Calls that ended so: ok, error, aborted, expired or unknown.',
  request: 'Calls made for the HTTP request with this id (`x-request-id`).',
  ...RANGE_WORDS,
  limit: `The most calls of a page, 1 to ${MAX_LIMIT}; 50 unless given.`,
  after: 'The `next` of the page before.',
} as const);

const LIST: Schema = {
  type: 'object',
  required: ['object', 'data', 'has_more'],
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: CALL },
    has_more: {
      type: 'boolean',
      description:
        'Also true for a page that holds few calls or none: by anything but account, user, key, session and request a page looks at some thousands of records, and `next` goes on behind them.',
    },
    next: { type: 'string', description: 'The `after` of the next page.' },
  },
};

/** `GET /api/core/calls` for everyone; `GET /api/core/admin/calls` and `…/{id}` for operators. */
export function callsRoutes(api: PluginApi, permission: string, findBodies: FindBodies): readonly Route[] {
  return [ownRoute(api, permission), adminRoute(api), oneRoute(api, findBodies)];
}

function ownRoute(api: PluginApi, permission: string): Route {
  const filters = FILTER_WORDS.filter((word) => word !== 'account');
  return {
    method: 'GET',
    path: '/api/core/calls',
    summary: 'Your calls, newest first',
    description: 'A key sees its own calls, a token those of its account. What was said is not in it.',
    auth: ['key', 'token'],
    permission,
    query: querySchema({ ...LIST_WORDS, ...descriptions(filters) }),
    responses: { 200: { description: 'A page of calls.', schema: LIST } },
    async handler(ctx) {
      const query = readCallsQuery(wordsOf(ctx), Date.now());
      respond(ctx, await listCalls(api.ledger, { ...query, filter: ownCalls(ctx.state.principal, query.filter) }));
    },
  };
}

function adminRoute(api: PluginApi): Route {
  const followers: Followers = { count: 0 };
  return {
    method: 'GET',
    path: '/api/core/admin/calls',
    summary: 'The calls of all, newest first, or as they are settled',
    description:
      'With `follow=true` a stream of server-sent events: one event `call` for each call that is settled from now on, once each; with `limit` that many of the newest first. It ends after ten minutes at most; a reader that comes back with `last-event-id` misses nothing.',
    auth: ['key', 'token'],
    role: 'admin',
    isEndless: true,
    query: querySchema({
      ...LIST_WORDS,
      ...descriptions(FILTER_WORDS),
      follow: 'true for a stream of events instead of a page.',
    }),
    responses: { 200: { description: 'A page of calls; with `follow=true` events.', schema: LIST } },
    async handler(ctx) {
      const { follow, ...words } = wordsOf(ctx);
      if (readChoice({ follow }, 'follow', ['false', 'true']) === 'true')
        return respondFollowing(ctx, api, words, followers);
      respond(ctx, await listCalls(api.ledger, readCallsQuery(words, Date.now())));
    },
  };
}

function oneRoute(api: PluginApi, findBodies: FindBodies): Route {
  return {
    method: 'GET',
    path: '/api/core/admin/calls/:id',
    summary: 'One call, with what was said where that is kept',
    auth: ['key', 'token'],
    role: 'admin',
    query: querySchema({}),
    responses: {
      200: {
        description: 'The call; `bodies` is null where `calls.bodies` did not keep any.',
        schema: CALL,
      },
    },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      ctx.set('cache-control', 'no-store');
      ctx.body = { ...tellCall(await findCall(api.ledger, id)), bodies: (await findBodies(id)) ?? null };
    },
  };
}

function respond(ctx: RouteContext, { calls, next }: CallPage): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = {
    object: 'list',
    data: calls.map(tellCall),
    has_more: next !== undefined,
    ...(next !== undefined && { next }),
  };
}
