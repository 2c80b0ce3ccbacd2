import { GatewayError, type PluginApi, type Route, type RouteContext } from '../../../core/index.ts';
import { FOR_OPERATORS } from '../../../core/operators.ts';
import { type Cookies, refuseOtherOrigin } from './cookies.ts';
import { keepPrivate, showErrors } from './page.ts';
import { CALLBACK_PATH, isOwnPath, LOGIN_PATH, LOGOUT_PATH, SESSION_PATH } from './paths.ts';
import { LOGIN_MS } from './pending-logins.ts';
import { randomId } from './random-id.ts';
import type { Sessions } from './sessions.ts';
import { finishSignIn, type ProviderResponse, type SignInParts } from './sign-in.ts';

export interface RouteParts extends SignInParts {
  readonly cookies: Cookies;
  readonly sessions: Sessions;
  readonly audit: PluginApi['audit'];
  readonly log: PluginApi['log'];
  /** Counts a request to sign in; throws for one too many. */
  count(address: string, now: number): Promise<void>;
}

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const SESSION = {
  type: 'object',
  required: ['object', 'credential', 'user_id', 'name', 'roles', 'started_at', 'ends_at', 'idle_at'],
  properties: {
    object: { const: 'session' },
    credential: { enum: ['key', 'token', 'session'], description: 'What the request came with.' },
    user_id: { type: 'string' },
    name: { ...TEXT_OR_NULL, description: 'What the identity provider calls the person.' },
    roles: { type: 'array', items: { type: 'string' }, description: 'The roles that make the person an operator.' },
    started_at: { ...TEXT_OR_NULL, description: 'ISO 8601; null without a session, as are the others.' },
    ends_at: { ...TEXT_OR_NULL, description: 'When the session ends at the latest.' },
    idle_at: { ...TEXT_OR_NULL, description: 'When it ends if no other request comes.' },
  },
} as const;

/** Signing in and out with a browser. */
export function loginRoutes(parts: RouteParts): readonly Route[] {
  return [loginRoute(parts), callbackRoute(parts), logoutRoute(parts), sessionRoute(parts)];
}

function loginRoute({ cookies, pending, provider, count, log }: RouteParts): Route {
  return {
    ...{ method: 'GET', path: LOGIN_PATH, auth: 'none' },
    summary: 'Sign in with a browser, at the identity provider',
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        return_to: {
          type: 'string',
          description: `A path of this gateway to go to then; ${SESSION_PATH} unless given.`,
        },
      },
    },
    responses: { 302: 'To the identity provider.' },
    async handler(ctx) {
      keepPrivate(ctx);
      await showErrors(ctx, log, async () => {
        const returnTo = readOnce(ctx, 'return_to') ?? SESSION_PATH;
        if (!isOwnPath(returnTo))
          throw new GatewayError(
            'invalid_request',
            '"return_to" must be a path of this gateway such as /console, without a host, and not that of signing in.',
            { param: 'return_to' },
          );
        await count(ctx.state.ip, Date.now());
        const browser = cookies.login.read(ctx.headers.cookie) ?? randomId();
        const url = await provider.loginUrl(await pending.begin(browser, returnTo));
        ctx.append('set-cookie', cookies.login.write(browser, LOGIN_MS));
        redirect(ctx, url.href);
      });
    },
  };
}

function callbackRoute(parts: RouteParts): Route {
  const { cookies, sessions, options, count, audit, log } = parts;
  return {
    ...{ method: 'GET', path: CALLBACK_PATH, auth: 'none' },
    summary: 'Where the identity provider sends a browser back to',
    // Providers add parameters of their own, such as `session_state`.
    query: {
      type: 'object',
      properties: {
        state: { type: 'string' },
        code: { type: 'string' },
        iss: { type: 'string' },
        error: { type: 'string' },
      },
    },
    responses: { 302: 'To the path that the person wanted, with a session.' },
    async handler(ctx) {
      keepPrivate(ctx);
      await showErrors(ctx, log, async () => {
        const now = Date.now();
        await count(ctx.state.ip, now);
        const browser = cookies.login.read(ctx.headers.cookie);
        const { person, returnTo } = await finishSignIn(parts, browser, readResponse(ctx), now);
        const { issuer, clientId } = options;
        const former = cookies.session.read(ctx.headers.cookie);
        if (former !== undefined) await sessions.end(former, now);
        const id = await sessions.begin({ ...person, issuer, clientId }, now);
        const actor = { via: 'console', userId: person.userId, address: ctx.state.ip } as const;
        await audit({ actor, action: 'session.begin', subject: person.userId, after: { roles: person.roles } });
        ctx.append('set-cookie', cookies.login.write(undefined));
        ctx.append('set-cookie', cookies.session.write(id, options.sessionForMs));
        redirect(ctx, returnTo);
      });
    },
  };
}

function logoutRoute({ cookies, sessions, options, audit }: RouteParts): Route {
  return {
    ...{ method: 'POST', path: LOGOUT_PATH, auth: 'none' },
    summary: 'End the session of this browser',
    description: 'From a page of this gateway only. Without a session it does nothing, and says so.',
    responses: {
      200: {
        description: 'The session has ended.',
        schema: {
          type: 'object',
          required: ['object', 'ended'],
          properties: {
            object: { const: 'session' },
            ended: { type: 'boolean', description: 'Whether there was one.' },
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
        await audit({ actor, action: 'session.end', subject: ended.userId, before: { roles: ended.roles } });
      }
      ctx.body = { object: 'session', ended: ended !== undefined };
    },
  };
}

function sessionRoute({ cookies, sessions }: RouteParts): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: SESSION_PATH, summary: 'Say who is signed in, and until when' },
    responses: { 200: { description: 'Who makes this request.', schema: SESSION } },
    async handler(ctx) {
      keepPrivate(ctx);
      const { credential, userId } = ctx.state.principal;
      const id = credential === 'session' ? cookies.session.read(ctx.headers.cookie) : undefined;
      const found = id === undefined ? undefined : await sessions.find(id, Date.now());
      ctx.body = {
        ...{ object: 'session', credential, user_id: userId, name: found?.name ?? null, roles: found?.roles ?? [] },
        ...{
          started_at: showTime(found?.startedAt),
          ends_at: showTime(found?.endsAt),
          idle_at: showTime(found?.idleAt),
        },
      };
    },
  };
}

function showTime(unixMs: number | undefined): string | null {
  return unixMs === undefined ? null : new Date(unixMs).toISOString();
}

/** Koa's own would encode and rewrite it, and add a body that nobody reads. */
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

/** A parameter of the query; throws for one that came twice, of which two readers could take different ones. */
function readOnce(ctx: Pick<RouteContext, 'querystring'>, name: string): string | undefined {
  const [value, ...more] = new URLSearchParams(ctx.querystring).getAll(name);
  if (more.length === 0) return value;
  throw new GatewayError('invalid_request', `"${name}" came twice.`, { param: name });
}
