import {
  GatewayError,
  isGatewayError,
  openEventStream,
  type PluginApi,
  type Route,
  type RouteContext,
  type Schema,
  toGatewayError,
} from '../../../contract/index.ts';
import { createTeamRoutes, hasScope, refuseOtherTag } from '../kit/index.ts';
import { CALL, showCallsTo, tellOwnCall } from './call-shapes.ts';
import { type FoundCalls, findCalls, readCallsQuery, tellCovered } from './calls-query.ts';
import { findCall } from './find-call.ts';
import { eventId, type Followed, followCalls } from './follow-calls.ts';
import { descriptions, ownCalls, querySchema, RANGE_WORDS, wordsOf } from './route-query.ts';
import { assertFollowed, FILTER_WORDS, MAX_LIMIT, readChoice, SEARCHES, type Words } from './words.ts';

/** Returns the stored content of a call; undefined if content is not stored. */
export type FindBodies = (id: string) => Promise<object | undefined>;

const LIST_WORDS = Object.freeze({
  outcome: 'Calls with this outcome: ok, error, aborted, refused, expired or unknown.',
  request: 'Calls of the HTTP request with this id (`x-request-id`).',
  ...RANGE_WORDS,
  ...SEARCHES,
  sort: 'time (newest first), or cost, duration, first_byte or tokens of the latest 5,000 matching calls, highest first. Default: time.',
  count: 'true adds the number of matching calls, up to the latest 5,000.',
  limit: `Maximum number of calls per page, 1 to ${MAX_LIMIT}. Default: 50.`,
  after: '`next` of the previous page.',
} as const);

const COVERED: Schema = {
  type: 'object',
  required: ['calls', 'is_complete'],
  properties: {
    calls: { type: 'integer' },
    is_complete: { type: 'boolean', description: 'False if more calls match.' },
  },
};

const LIST: Schema = {
  type: 'object',
  required: ['object', 'data', 'has_more'],
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: CALL },
    has_more: {
      type: 'boolean',
      description:
        'True also for pages with few calls: some filters check a limited number of records per page, and `next` continues after them.',
    },
    searched_to: {
      type: 'string',
      description: 'Time back to which calls were searched, if the search took too long. `next` continues there.',
    },
    count: { ...COVERED, description: 'With `count=true`: number of matching calls.' },
    sorted_of: { ...COVERED, description: 'With `sort`: number of compared calls.' },
    next: { type: 'string', description: 'Value of `after` for the next page.' },
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
    description: 'A key sees its own calls, a token those of its account. Content is not included.',
    auth: ['key', 'token'],
    permission,
    query: querySchema({ ...LIST_WORDS, ...descriptions(filters) }),
    responses: { 200: { description: 'Page of calls.', schema: LIST } },
    async handler(ctx) {
      const query = readCallsQuery(wordsOf(ctx), Date.now());
      respond(
        ctx,
        await findCalls(api.books.ledger, { ...query, filter: ownCalls(ctx.state.principal, query.filter) }),
        tellOwnCall,
      );
    },
  };
}

function adminRoute(api: PluginApi): Route {
  const followers: string[] = [];
  return {
    method: 'GET',
    path: '/api/core/admin/calls',
    summary: 'List the calls of all users, or follow them live',
    description:
      'With `follow=true`, streams the newest `limit` calls, then an event `call` for each newly settled call. The stream ends after ten minutes; reconnect with `last-event-id`.',
    auth: ['key', 'token'],
    role: 'admin',
    scope: 'calls:read',
    isEndless: true,
    query: querySchema({
      ...LIST_WORDS,
      ...descriptions(FILTER_WORDS),
      follow: 'true returns a stream of events instead of a page.',
    }),
    responses: { 200: { description: 'Page of calls; with `follow=true`, events.', schema: LIST } },
    async handler(ctx) {
      const { follow, ...words } = wordsOf(ctx);
      if (readChoice({ follow }, 'follow', ['false', 'true']) === 'true')
        return respondFollowing(ctx, api, words, followers);
      respond(ctx, await findCalls(api.books.ledger, readCallsQuery(words, Date.now())));
    },
  };
}

function oneRoute(api: PluginApi, findBodies: FindBodies): Route {
  return {
    method: 'GET',
    path: '/api/core/admin/calls/:id',
    summary: 'Get a call, with its stored content',
    auth: ['key', 'token'],
    role: 'admin',
    scope: 'calls:read',
    query: querySchema({}),
    responses: {
      200: {
        description: 'The call. `bodies` is null if `calls.bodies` stored none or the scope `bodies:read` is missing.',
        schema: CALL,
      },
    },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      ctx.set('cache-control', 'no-store');
      const bodies = hasScope(ctx.state.principal, 'bodies:read') ? await findBodies(id) : undefined;
      const show = showCallsTo(ctx.state.principal);
      ctx.body = { ...show(await findCall(api.books.ledger, id)), bodies: bodies ?? null };
    },
  };
}

/** Calls with the tag of a team, for its owners: without content. */
export function registerTeamCalls(api: PluginApi): void {
  const route = createTeamRoutes(api);
  route({
    method: 'GET',
    path: '/calls',
    summary: 'List the calls with the tag of your team, newest first',
    query: querySchema({ ...LIST_WORDS, ...descriptions(FILTER_WORDS) }),
    responses: { 200: { description: 'Page of calls.', schema: LIST } },
    async handler(ctx, { tag }) {
      const query = readCallsQuery(wordsOf(ctx), Date.now());
      refuseOtherTag(query.filter.tag, tag);
      respond(ctx, await findCalls(api.books.ledger, { ...query, filter: { ...query.filter, tag } }));
    },
  });
  route({
    method: 'GET',
    path: '/calls/:id',
    summary: 'Get a call with the tag of your team',
    query: querySchema({}),
    responses: { 200: { description: 'The call.', schema: CALL } },
    async handler(ctx, { tag }) {
      ctx.set('cache-control', 'no-store');
      const show = showCallsTo(ctx.state.principal);
      ctx.body = show(await findCall(api.books.ledger, ctx.params['id'] ?? '', { tag }));
    },
  });
}

function respond(
  ctx: Pick<RouteContext, 'set' | 'body' | 'state'>,
  found: FoundCalls,
  show = showCallsTo(ctx.state.principal),
): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = {
    object: 'list',
    data: found.calls.map(show),
    has_more: found.next !== undefined,
    ...(found.next !== undefined && { next: found.next }),
    ...tellCovered(found),
  };
}

/**
 * Time after which a reader must reconnect: a connection of many days would keep a replaced configuration in memory.
 */
const LONGEST_MS = 600_000;

/** Maximum followers of one process: each reads the store up to five times per second. */
const MAX_FOLLOWERS = 20;
/** Maximum followers per user, for several windows, leaving space for other users. */
const MAX_OF_USER = 10;

/** Sends each settled call as an event `call`, until the reader disconnects. */
async function respondFollowing(
  ctx: RouteContext,
  { books: { ledger } }: Pick<PluginApi, 'books'>,
  words: Words,
  /** Users who follow this process now. */
  followers: string[],
): Promise<void> {
  assertFollowed(words, 'cannot be combined with follow=true, which returns new calls only.');
  const { filter, limit } = readCallsQuery(words, Date.now());
  const recent = words['limit'] === undefined ? 0 : limit;
  const { userId } = ctx.state.principal;
  if (followers.filter((each) => each === userId).length >= MAX_OF_USER)
    throw new GatewayError(
      'rate_limited',
      `Limit of ${MAX_OF_USER} call streams per user reached. Close one of them.`,
      {
        retryAfterMs: 10_000,
      },
    );
  if (followers.length >= MAX_FOLLOWERS)
    throw new GatewayError('overloaded', `Limit of ${MAX_FOLLOWERS} call streams reached. Close one of them.`, {
      retryAfterMs: 10_000,
    });
  followers.push(userId);
  try {
    await follow(ctx, ledger, { filter, recent, lastId: ctx.get('last-event-id') || undefined });
  } finally {
    followers.splice(followers.indexOf(userId), 1);
  }
}

async function follow(
  ctx: RouteContext,
  ledger: PluginApi['books']['ledger'],
  options: Pick<Parameters<typeof followCalls>[1], 'filter' | 'recent' | 'lastId'>,
): Promise<void> {
  const signal = AbortSignal.any([ctx.state.signal, AbortSignal.timeout(LONGEST_MS)]);
  const show = showCallsTo(ctx.state.principal);
  const looks = followCalls(ledger, { ...options, signal });
  // Before the first read an error has an HTTP status.
  const first = await looks.next();
  const writer = openEventStream(ctx);
  writer.start();
  try {
    if (!first.done) writer.write(framesOf(first.value, show));
    for await (const look of looks) {
      writer.write(framesOf(look, show));
      await writer.drained();
      if (writer.closed) return;
    }
    const { reason } = ctx.state.signal;
    if (isGatewayError(reason)) writer.fail(reason.toBody());
    else writer.end();
  } catch (error) {
    writer.fail(toGatewayError(error).toBody());
  }
}

/** `: skipped` and an event report that the reader missed some calls, which the list has. */
function framesOf({ calls, isCut }: Followed, show: ReturnType<typeof showCallsTo>): string {
  const frames = calls.map((call) => `id: ${eventId(call)}\nevent: call\ndata: ${JSON.stringify(show(call))}\n\n`);
  return (isCut ? 'event: skipped\ndata: {}\n\n' : '') + frames.join('');
}
