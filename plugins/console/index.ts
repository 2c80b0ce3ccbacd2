import {
  definePlugin,
  GatewayError,
  isGatewayError,
  type PluginApi,
  type Principal,
  parseDuration,
  type Route,
  type RouteContext,
} from '../../contract/index.ts';
import { type CountSignIn, createSignInRate } from '../auth/kit/sign-in-rate.ts';
import { createRefusals, FOR_OPERATORS, listScopes } from '../policies/kit/index.ts';
import { ADMIN_PREFIX, isLocal, readCookie, refuseOtherPages, writeCookie } from './browser.ts';
import { pageRoutes } from './pages.ts';
import { playgroundRoute } from './playground.ts';
import { type ConsoleSessions, createConsoleSessions } from './sessions.ts';
import { createTries, type Tries } from './try.ts';

/** User whom the link at the start signs in: that of the first key. */
const FIRST_USER = 'local';

const STATE = {
  type: 'object',
  required: ['object', 'version', 'user_id', 'key_id', 'scopes', 'ends_at', 'features', 'name', 'color'],
  properties: {
    object: { const: 'console' },
    version: { type: 'string' },
    user_id: { type: ['string', 'null'], description: 'User who is signed in; null if no one is.' },
    key_id: { type: ['string', 'null'], description: 'The key that the session was made with.' },
    scopes: {
      type: 'array',
      items: { type: 'string' },
      description: 'What may be done in this session; an admin all.',
    },
    ends_at: { type: ['string', 'null'], description: 'When the session ends at the latest.' },
    features: {
      type: 'array',
      items: { enum: ['speech', 'agents', 'mcp', 'changes'] },
      description: 'Configured features that have a page; empty without a session.',
    },
    name: { type: ['string', 'null'], description: 'Name of the installation.' },
    color: { type: ['string', 'null'], description: 'Color of the installation.' },
  },
} as const;

/** Features with a page, by the route that the page needs. */
const FEATURES = Object.freeze({
  speech: 'GET /api/core/admin/speech',
  agents: 'POST /api/core/admin/agent',
  mcp: 'GET /api/core/admin/mcp',
  changes: 'GET /api/core/admin/changes',
} as const);

interface Parts {
  readonly sessions: ConsoleSessions;
  readonly audit: PluginApi['operators']['audit'];
  readonly version: string;
  readonly basePath: string;
  /** Name and color of the installation, which the pages show. */
  readonly installation: { readonly name: string | null; readonly color: string | null };
  /** Configured features that have a page; complete once the gateway listens. */
  findFeatures(): readonly string[];
  readonly recordRefusal: ReturnType<typeof createRefusals>;
  readonly count: CountSignIn;
}

function signInRoutes(parts: Parts): readonly Route[] {
  return [stateRoute(parts), linkRoute(parts), keyRoute(parts), signOutRoute(parts)];
}

function stateRoute({ sessions, version, installation, findFeatures }: Parts): Route {
  return {
    method: 'GET',
    path: '/api/core/admin/console',
    auth: 'none',
    summary: 'Who is signed in at the console',
    responses: { 200: { description: 'The signed-in user, if any.', schema: STATE } },
    async handler(ctx) {
      const id = readCookie(ctx.headers.cookie);
      const request = { now: Date.now(), address: ctx.state.ip };
      const session = id === undefined ? undefined : await findOrNone(sessions, id, request);
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        object: 'console',
        version: session ? version : '',
        user_id: session?.principal.userId ?? null,
        key_id: session?.principal.keyId ?? null,
        scopes: session ? listScopes(session.principal) : [],
        ends_at: session ? new Date(session.endsAt).toISOString() : null,
        features: session ? findFeatures() : [],
        ...installation,
      };
    },
  };
}

/** Features whose routes exist; the routes of speech exist without a vendor of speech. */
function findFeatures({ models, operators }: Pick<PluginApi, 'models' | 'operators'>): readonly string[] {
  const routes = operators.gateway.plugins().flatMap((plugin) => plugin.routes);
  return Object.entries(FEATURES).flatMap(([name, route]) => {
    const isConfigured = name !== 'speech' || models.offers('speech').size > 0;
    return isConfigured && routes.includes(route) ? [name] : [];
  });
}

/** A session whose key may not be used from here is shown as signed out. */
async function findOrNone(
  sessions: ConsoleSessions,
  ...[id, request]: Parameters<ConsoleSessions['find']>
): ReturnType<ConsoleSessions['find']> {
  try {
    return await sessions.find(id, request);
  } catch (error) {
    if (isGatewayError(error) && error.code === 'permission_denied') return undefined;
    throw error;
  }
}

function linkRoute(parts: Parts): Route {
  return {
    method: 'POST',
    path: '/api/core/admin/console/link',
    auth: 'none',
    summary: 'Sign in by the token of a link that the gateway printed',
    description: 'A token works once, for two minutes, on the machine of the gateway alone.',
    body: {
      type: 'object',
      required: ['token'],
      additionalProperties: false,
      properties: { token: { type: 'string', minLength: 1, maxLength: 100 } },
    } as const,
    responses: { 204: 'Signed in: the response sets the cookie.' },
    handler: (ctx) =>
      signInByLink(parts, ctx).catch((error: unknown) => {
        const actor = { via: 'console', address: ctx.state.ip } as const;
        if (isGatewayError(error) && (error.status === 401 || error.status === 403))
          parts.recordRefusal({ actor, action: 'session.refused', subject: 'console', code: error.code });
        throw error;
      }),
  };
}

async function signInByLink(parts: Parts, ctx: RouteContext): Promise<void> {
  if (!isLocal(ctx.req))
    throw new GatewayError(
      'permission_denied',
      'A link works on the machine of the gateway alone, by no proxy. From elsewhere sign in with an operator’s key.',
    );
  refuseOtherPages(ctx);
  const now = Date.now();
  await parts.count(ctx.state.ip, now);
  const { token } = ctx.state.body as { readonly token: string };
  const userId = await parts.sessions.takeLink(token, now);
  await signIn(parts, ctx, { credential: 'session', userId, account: userId, isAdmin: true });
}

function keyRoute(parts: Parts): Route {
  return {
    ...FOR_OPERATORS,
    scope: 'any',
    method: 'POST',
    path: '/api/core/admin/console/session',
    auth: ['key'],
    summary: 'Sign in with the operator’s key of this request',
    responses: { 204: 'Signed in: the response sets the cookie.' },
    async handler(ctx) {
      refuseOtherPages(ctx);
      await parts.count(ctx.state.ip, Date.now());
      await signIn(parts, ctx, { ...ctx.state.principal, credential: 'session' });
    },
  };
}

async function signIn({ sessions, audit, basePath }: Parts, ctx: RouteContext, principal: Principal): Promise<void> {
  const now = Date.now();
  const former = readCookie(ctx.headers.cookie);
  if (former !== undefined) await sessions.end(former);
  const { userId, keyId } = principal;
  const { id, session } = await sessions.begin(principal, now);
  const after = keyId === undefined ? { by: 'link' } : { by: `tg_${keyId}` };
  const actor = { via: 'console', userId, address: ctx.state.ip } as const;
  await audit({ actor, action: 'session.begin', subject: userId, after });
  ctx.append('set-cookie', writeCookie(ctx, basePath, id, session.endsAt - now));
  ctx.status = 204;
}

function signOutRoute({ sessions, audit, basePath }: Parts): Route {
  return {
    method: 'POST',
    path: '/api/core/admin/console/sign-out',
    auth: 'none',
    summary: 'End the session of this browser',
    responses: { 204: 'There is no session any more.' },
    async handler(ctx) {
      refuseOtherPages(ctx);
      const id = readCookie(ctx.headers.cookie);
      const session = id === undefined ? undefined : await sessions.peek(id, Date.now());
      if (id !== undefined && session) {
        await sessions.end(id);
        const { userId } = session.principal;
        const actor = { via: 'console', userId, address: ctx.state.ip } as const;
        await audit({ actor, action: 'session.end', subject: userId });
      }
      ctx.append('set-cookie', writeCookie(ctx, basePath));
      ctx.status = 204;
    },
  };
}

/** Maximum sign-in attempts per minute from one network, per process. */
const TRIES = 30;

/**
 * Accepts the cookie as a credential on operator routes, for requests without a key or token; also accepts the
 * credential of a trial request.
 */
function authenticate(api: PluginApi, sessions: ConsoleSessions, tries: Tries): void {
  api.hook('authenticate', {
    // Runs after keys and tokens: a call with one never reaches it.
    order: 'post',
    handler({ credential, path, method, headers, now, address }) {
      if (credential !== '') return tries.take(credential);
      if (!path.startsWith(ADMIN_PREFIX)) return undefined;
      const id = readCookie(headers['cookie']);
      if (id === undefined) return undefined;
      refuseOtherPages({ method, headers });
      return sessions.find(id, { now, address }).then((session) => {
        if (session) return Object.freeze(session.principal);
        throw new GatewayError(
          'invalid_token',
          `Your session has ended: sign in at ${api.settings.basePath}/console again.`,
        );
      });
    },
  });
}

/** Command that prints a link. */
function consoleCommand(api: PluginApi, sessions: ConsoleSessions): void {
  api.command({
    name: 'console',
    summary: 'Print a link to sign in at the console, once, within two minutes',
    options: [
      { flags: '--user <id>', summary: 'user to sign in; default: the user of this system' },
      { flags: '--url <url>', summary: 'address of the gateway, if it differs from the configuration' },
    ],
    async run({ actor, options, io }) {
      const userId = options['user'] ?? actor.userId ?? FIRST_USER;
      const base = String(options['url'] ?? api.settings.url).replace(/\/+$/, '');
      const token = await sessions.makeLink(String(userId), Date.now());
      const url = `${base}${linkPath(token)}`;
      io.result({ url, user_id: userId }, url);
      io.note('It works once, within two minutes, on this machine.');
    },
  });
}

/** The token is in the fragment, which browsers never send and logs never contain. */
function linkPath(token: string): string {
  return `/console#sign-in=${token}`;
}

/** Operators' console: pages for the operator routes, and sign-in. */
export default definePlugin({
  name: 'console',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['credentials', 'operators'],
  section: 'console',
  commands: [{ name: 'console', summary: 'Print a link to sign in at the console' }],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    description: 'The pages for operators at `/console`; `policies: { console: false }` switches them off.',
    properties: {
      remote: {
        type: 'boolean',
        default: false,
        description: 'Shows the page to other machines too, and behind proxies. They sign in with an admin key.',
      },
      sessionFor: {
        type: 'string',
        format: 'duration',
        default: '8h',
        description: 'After this a person signs in again.',
      },
      name: {
        type: 'string',
        minLength: 1,
        maxLength: 40,
        description: 'Name of this installation, such as `staging`; shown on every page.',
      },
      color: {
        type: 'string',
        pattern: '^#[0-9a-fA-F]{6}$',
        description: 'Color of a line on every page, such as `#b3261e`, to tell installations apart.',
      },
    },
  },
  setup(api, config) {
    const sessions = createConsoleSessions(api, parseDuration(config.sessionFor));
    const parts = {
      sessions,
      audit: api.operators.audit,
      version: api.settings.version,
      basePath: api.settings.basePath,
      installation: { name: config.name ?? null, color: config.color ?? null },
      findFeatures: () => findFeatures(api),
      count: createSignInRate(TRIES),
      recordRefusal: createRefusals(api),
    };
    const tries = createTries();
    const routes = [
      ...pageRoutes(config.remote, api.settings.basePath),
      ...signInRoutes(parts),
      playgroundRoute(api),
      ...tries.routes,
    ];
    for (const route of routes) api.route(route);
    authenticate(api, sessions, tries);
    consoleCommand(api, sessions);
    api.operators.offerSignIn({
      title: 'Console (signs in once, within two minutes; "tollgate users console" prints another link)',
      makePath: async () => linkPath(await sessions.makeLink(FIRST_USER, Date.now())),
    });
  },
});
