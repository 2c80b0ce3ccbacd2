import {
  definePlugin,
  GatewayError,
  isGatewayError,
  type PluginApi,
  type Principal,
  type Route,
  type RouteContext,
} from '../../../contract/index.ts';
import { createRefusals, FOR_OPERATORS, listScopes, networkOf } from '../../policies/kit/index.ts';
import { type Cookies, createCookies, escapeHtml, refuseOtherOrigin } from '../kit/cookies.ts';
import { createDocuments, createStoredDocuments, createUserDocuments } from '../kit/documents.ts';
import { INTRODUCTION_MS, INTRODUCTIONS, type Introduction, isForDevices } from '../kit/introductions.ts';
import { createPeople, type People } from '../kit/people.ts';
import { randomId } from '../kit/random-id.ts';
import { rightsOfWords } from '../kit/role-map.ts';
import { createSecrets, type Secrets, type StoredSecret } from '../kit/secrets.ts';
import { type CountSignIn, createSignInRate } from '../kit/sign-in-rate.ts';
import { CONFIG_SCHEMA } from './config-schema.ts';
import { createIdentityProvider } from './identity-provider.ts';
import { findProblems, type OpenIdOptions, readOptions } from './options.ts';
import { ADMIN_PREFIX, CALLBACK_PATH, isOwnPath, LOGIN_PATH, LOGOUT_PATH, SESSION_PATH } from './paths.ts';
import { createPendingLogins, LOGIN_MS, type PendingLogin } from './pending-logins.ts';
import { createSessions, type Session, type SessionId, type Sessions } from './sessions.ts';
import {
  admit,
  finishSignIn,
  type ProviderResponse,
  recordName,
  refuseBlocked,
  rolesOf,
  type SignInParts,
  usersOf,
} from './sign-in.ts';

interface RouteParts extends SignInParts {
  readonly cookies: Cookies;
  readonly sessions: Sessions;
  readonly people: People;
  /** People who signed in for the page that approves programs. */
  readonly introductions: Secrets<Introduction>;
  readonly audit: PluginApi['operators']['audit'];
  readonly log: PluginApi['log'];
  readonly recordRefusal: ReturnType<typeof createRefusals>;
  readonly count: CountSignIn;
}

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const SESSION = {
  type: 'object',
  required: ['object', 'credential', 'user_id', 'name', 'roles', 'scopes', 'started_at', 'ends_at', 'idle_at'],
  properties: {
    object: { const: 'session' },
    credential: { enum: ['key', 'token', 'session'], description: 'Credential of the request.' },
    user_id: { type: 'string' },
    name: { ...TEXT_OR_NULL, description: 'Name of the person at the identity provider.' },
    roles: { type: 'array', items: { type: 'string' }, description: 'Operator roles of the person.' },
    scopes: { type: 'array', items: { type: 'string' }, description: 'Scopes of the person; an admin has all.' },
    started_at: { ...TEXT_OR_NULL, description: 'ISO 8601; this and the other fields are null without a session.' },
    ends_at: { ...TEXT_OR_NULL, description: 'Latest end of the session.' },
    idle_at: { ...TEXT_OR_NULL, description: 'End of the session without further requests.' },
  },
} as const;

/** Routes for signing in and out with a browser. */
function loginRoutes(parts: RouteParts): readonly Route[] {
  return [loginRoute(parts), callbackRoute(parts), logoutRoute(parts), sessionRoute(parts)];
}

function loginRoute({ cookies, options, pending, provider, count, log }: RouteParts): Route {
  return {
    method: 'GET',
    path: LOGIN_PATH,
    auth: 'none',
    summary: 'Start a browser sign-in at the identity provider',
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        return_to: {
          type: 'string',
          description: `Path of this gateway to open after the sign-in. Default: ${SESSION_PATH}.`,
        },
      },
    },
    responses: { 302: 'Redirect to the identity provider.' },
    async handler(ctx) {
      keepPrivate(ctx);
      await showErrors(ctx, { log, options }, async () => {
        const returnTo = readOnce(ctx, 'return_to') ?? SESSION_PATH;
        if (!isOwnPath(returnTo))
          throw new GatewayError(
            'invalid_request',
            '"return_to" must be a path of this gateway such as /console, without a host, and not the sign-in path.',
            { param: 'return_to' },
          );
        const now = Date.now();
        await count(ctx.state.ip, now);
        const browser = cookies.login.read(ctx.headers.cookie) ?? randomId();
        const url = await provider.loginUrl(await pending.begin(networkOf(ctx.state.ip), browser, returnTo, now));
        ctx.append('set-cookie', cookies.login.write(browser, LOGIN_MS));
        redirect(ctx, url.href);
      });
    },
  };
}

function callbackRoute(parts: RouteParts): Route {
  const { cookies, sessions, people, introductions, options, count, audit, log, recordRefusal } = parts;
  /** Records a refused person; technical failures are not refusals. */
  const refuse = (ctx: RouteContext, userId: string | undefined, error: unknown): never => {
    if (isGatewayError(error) && (error.status === 401 || error.status === 403)) {
      const actor = { via: 'console', ...(userId !== undefined && { userId }), address: ctx.state.ip } as const;
      recordRefusal({ actor, action: 'session.refused', subject: userId ?? 'openid', code: error.code });
    }
    throw error;
  };
  return {
    method: 'GET',
    path: CALLBACK_PATH,
    auth: 'none',
    summary: 'Redirect URI of the identity provider',
    // Providers add their own parameters, such as `session_state`.
    query: {
      type: 'object',
      properties: {
        state: { type: 'string' },
        code: { type: 'string' },
        iss: { type: 'string' },
        error: { type: 'string' },
      },
    },
    responses: { 302: 'Redirect to the requested path, with a session.' },
    async handler(ctx) {
      keepPrivate(ctx);
      await showErrors(ctx, { log, options }, async () => {
        const now = Date.now();
        await count(ctx.state.ip, now);
        const browser = cookies.login.read(ctx.headers.cookie);
        const { person, returnTo } = await finishSignIn(parts, browser, readResponse(ctx), now).catch(
          (error: unknown) => refuse(ctx, undefined, error),
        );
        const { userId, name, words, roles } = person;
        // Before the checks: a person who lost a role loses it everywhere.
        await people.record(userId, words);
        const isForDevice = isForDevices(returnTo);
        const check = isForDevice ? refuseBlocked : admit;
        await check(parts, person).catch((error: unknown) => refuse(ctx, userId, error));
        await recordName(parts.users, person);
        ctx.append('set-cookie', cookies.login.write(undefined));
        if (isForDevice) {
          const id = await introductions.put(userId, { ...person, returnTo }, now);
          ctx.append('set-cookie', cookies.person.write(id, INTRODUCTION_MS));
          return redirect(ctx, options.basePath + returnTo);
        }
        const former = cookies.session.read(ctx.headers.cookie);
        if (former !== undefined) await sessions.end(former, now);
        const id = await sessions.begin({ userId, ...(name !== undefined && { name }) }, now);
        const actor = { via: 'console', userId, address: ctx.state.ip } as const;
        await audit({ actor, action: 'session.begin', subject: userId, after: { roles } });
        ctx.append('set-cookie', cookies.session.write(id, options.sessionForMs));
        redirect(ctx, options.basePath + returnTo);
      });
    },
  };
}

function logoutRoute({ cookies, sessions, options, audit }: RouteParts): Route {
  return {
    method: 'POST',
    path: LOGOUT_PATH,
    auth: 'none',
    summary: 'End the session of this browser',
    description:
      'Allowed only from a page of this gateway. Without a session it has no effect; the response reports that.',
    responses: {
      200: {
        description: 'The session has ended.',
        schema: {
          type: 'object',
          required: ['object', 'ended'],
          properties: {
            object: { const: 'session' },
            ended: { type: 'boolean', description: 'True if there was a session.' },
          },
        },
      },
    },
    async handler(ctx) {
      keepPrivate(ctx);
      const { cookie } = ctx.headers;
      if (cookies.session.isSent(cookie))
        refuseOtherOrigin({ method: ctx.method, headers: ctx.headers }, options.origin);
      const id = cookies.session.read(cookie);
      const ended = id === undefined ? undefined : await sessions.end(id, Date.now());
      if (cookies.session.isSent(cookie)) ctx.append('set-cookie', cookies.session.write(undefined));
      if (ended) {
        const actor = { via: 'console', userId: ended.userId, address: ctx.state.ip } as const;
        await audit({ actor, action: 'session.end', subject: ended.userId });
      }
      ctx.body = { object: 'session', ended: ended !== undefined };
    },
  };
}

function sessionRoute({ cookies, sessions, people, options }: RouteParts): Route {
  return {
    ...FOR_OPERATORS,
    scope: 'any',
    method: 'GET',
    path: SESSION_PATH,
    summary: 'Show the signed-in person and the end of the session',
    responses: { 200: { description: 'Identity of the request.', schema: SESSION } },
    async handler(ctx) {
      keepPrivate(ctx);
      const { credential, userId } = ctx.state.principal;
      const id = credential === 'session' ? cookies.session.read(ctx.headers.cookie) : undefined;
      const found = id === undefined ? undefined : await sessions.find(id, Date.now());
      ctx.body = {
        object: 'session',
        credential,
        user_id: userId,
        name: found?.name ?? null,
        roles: found ? rolesOf((await people.find(userId))?.words ?? [], options.roles) : [],
        scopes: listScopes(ctx.state.principal),
        started_at: showTime(found?.startedAt),
        ends_at: showTime(found?.endsAt),
        idle_at: showTime(found?.idleAt),
      };
    },
  };
}

function showTime(unixMs: number | undefined): string | null {
  return unixMs === undefined ? null : new Date(unixMs).toISOString();
}

/** Koa's redirect would re-encode the URL, and add a body that no browser shows. */
function redirect(ctx: RouteContext, to: string): void {
  ctx.status = 302;
  ctx.set('location', to);
  ctx.body = '';
}

function readResponse(ctx: RouteContext): ProviderResponse {
  const found = ['state', 'code', 'iss', 'error'].flatMap((name) => {
    const value = readOnce(ctx, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** Reads a query parameter; throws if it is repeated, since two readers could use different values. */
function readOnce(ctx: Pick<RouteContext, 'querystring'>, name: string): string | undefined {
  const [value, ...more] = new URLSearchParams(ctx.querystring).getAll(name);
  if (more.length === 0) return value;
  throw new GatewayError('invalid_request', `"${name}" is duplicated. Send it once.`, { param: name });
}

/** Shows text alone, and never inside a frame. */
const HEADERS = Object.freeze({
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
});

/** Forbids browsers to store the response, or to send its address as a referrer. */
function keepPrivate(ctx: RouteContext): void {
  ctx.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

/** Shows a person the error of a sign-in as a page; programs get the usual error. */
async function showErrors(
  ctx: RouteContext,
  { log, options: { basePath } }: Pick<RouteParts, 'log' | 'options'>,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    const { requestId } = ctx.state;
    log.info(
      { request_id: requestId, code: error.code, ...(error.cause !== undefined && { reason: reasonOf(error.cause) }) },
      'sign-in rejected',
    );
    if (ctx.accepts('json', 'html') !== 'html') throw error;
    ctx.status = error.status;
    ctx.set({ ...HEADERS, ...error.headers });
    if (error.retryAfterMs !== undefined) ctx.set('retry-after', String(Math.ceil(error.retryAfterMs / 1000)));
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = pageOf(error, requestId, basePath + LOGIN_PATH);
  }
}

/** Messages of an error's causes: `fetch` explains failures only there. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown';
  return [cause.message, ...(cause.cause === undefined ? [] : [reasonOf(cause.cause)])].join(': ').slice(0, 500);
}

function pageOf({ status, message }: GatewayError, requestId: string, login: string): string {
  const title = status === 403 ? 'Access denied' : 'You are not signed in';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title></head>
<body>
<h1>${title}</h1>
<p>${escapeHtml(message)}</p>
<p><a href="${login}">Sign in again</a></p>
<p><small>Request ${escapeHtml(requestId)}</small></p>
</body>
</html>
`;
}

/** Sign-in requests per minute from one network. */
const LOGINS = 30;

/**
 * People sign in with a browser at an OpenID provider, and operate the gateway over the admin API with a session
 * cookie.
 */
export default definePlugin({
  name: 'openid',
  kind: 'auth',
  apiVersion: 1,
  // The provider names the hosts of its keys.
  permissions: ['records', 'hosts', 'operators'],
  credentials: ['session'],
  // A session is sent in a cookie, never in place of keys and tokens.
  isCredential: () => false,
  configSchema: CONFIG_SCHEMA,
  check: (config) => findProblems(config),

  setup(api, config) {
    const options = readOptions(config, api.settings.basePath);
    const cookies = createCookies(options.isSecure, options.basePath);
    const { counters, stored } = api.stores;
    const documents = createStoredDocuments<Session>(stored, 'sessions');
    const ofUsers = createUserDocuments(api.stores.sets, 'sessions');
    api.stores.personalData(ofUsers.personal('sessions', documents));
    const sessions = createSessions(
      {
        ids: createStoredDocuments<SessionId>(stored, 'session-ids'),
        sessions: documents,
        ofUsers,
        seen: createStoredDocuments<number>(stored, 'session-seen'),
        counters,
      },
      options,
    );
    const pending = createPendingLogins(
      createSecrets('logins', LOGIN_MS, createDocuments(api.keyv<StoredSecret<PendingLogin>>('logins')), counters),
    );
    const people = createPeople(api, options);
    const provider = createIdentityProvider({
      options,
      now: () => performance.now(),
      fetch: api.fetch,
    });
    const count = createSignInRate(LOGINS);
    const {
      operators: { audit },
      log,
    } = api;
    const users = usersOf(api);
    const shared = createDocuments(api.stores.share<StoredSecret<Introduction>>(INTRODUCTIONS));
    const introductions = createSecrets(INTRODUCTIONS, INTRODUCTION_MS, shared, counters);
    const parts = { options, cookies, sessions, people, introductions, pending, provider, users, audit, log, count };
    const recordRefusal = createRefusals(api);
    for (const route of loginRoutes({ ...parts, recordRefusal })) api.route(route);
    authenticate(api, options, cookies, sessions, people);
    renewSessions(api, cookies, sessions);
  },
});

/** Accepts the cookie as a credential on the admin API, for requests without a key or token. */
function authenticate(
  api: PluginApi,
  options: OpenIdOptions,
  cookies: Cookies,
  sessions: Sessions,
  people: People,
): void {
  const { roles, origin } = options;
  api.hook('authenticate', async ({ credential, path, method, headers, now }): Promise<Principal | undefined> => {
    if (credential !== '' || !path.startsWith(ADMIN_PREFIX)) return undefined;
    const id = cookies.session.read(headers['cookie']);
    const session = id === undefined ? undefined : await sessions.find(id, now);
    const person = session && (await people.find(session.userId));
    // Without a person the session belongs to another configuration.
    if (!person) return undefined;
    refuseOtherOrigin({ method, headers }, origin);
    const { userId } = session;
    return Object.freeze({
      ...({ credential: 'session', userId, account: userId } as const),
      ...rightsOfWords(person.words, roles),
    });
  });
  // Runs after all others: a request with only a cookie had a session.
  api.hook('authenticate', {
    order: 'post',
    handler({ credential, path, headers }) {
      if (credential !== '' || !path.startsWith(ADMIN_PREFIX)) return undefined;
      if (!cookies.session.isSent(headers['cookie'])) return undefined;
      throw new GatewayError(
        'invalid_token',
        `Your session has ended. Sign in again at ${options.basePath}${LOGIN_PATH}.`,
      );
    },
  });
}

/** Records the use of a session, and regularly sends the browser a new id. */
function renewSessions(api: PluginApi, cookies: Cookies, sessions: Sessions): void {
  api.use(async (ctx, next) => {
    if (!ctx.path.startsWith(ADMIN_PREFIX)) return next();
    try {
      await next();
    } finally {
      const { principal } = ctx.state as { readonly principal?: Principal };
      const id = principal?.credential === 'session' ? cookies.session.read(ctx.headers.cookie) : undefined;
      // A new id that cannot reach the browser would end its session.
      const mayReplace = !ctx.headerSent && ctx.respond !== false && !ctx.res.closed;
      const now = Date.now();
      const newer = id === undefined ? undefined : await renew(id, now, mayReplace);
      if (newer) ctx.append('set-cookie', cookies.session.write(newer.id, newer.endsAt - now));
    }
  });

  /** The request itself is done, so a store failure now must not affect it. */
  const renew: Sessions['renew'] = (id, now, mayReplace) =>
    sessions.renew(id, now, mayReplace).catch((error: unknown) => {
      api.log.warn({ err: error }, 'session could not be renewed; the next request retries');
      return undefined;
    });
}
