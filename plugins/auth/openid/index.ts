import { definePlugin, GatewayError, type PluginApi, type Principal } from '../../../core/index.ts';
import { CONFIG_SCHEMA } from './config-schema.ts';
import { type Cookies, createCookies, refuseOtherOrigin } from './cookies.ts';
import { createDocuments } from './documents.ts';
import { createIdentityProvider } from './identity-provider.ts';
import { createLoginRate } from './login-rate.ts';
import { findProblems, type OpenIdOptions, readOptions } from './options.ts';
import { ADMIN_PREFIX, LOGIN_PATH } from './paths.ts';
import { createPendingLogins, type PendingLogin } from './pending-logins.ts';
import { loginRoutes } from './routes.ts';
import { createSessions, type Session, type SessionId, type Sessions } from './sessions.ts';
import { usersOf } from './sign-in.ts';

/** People sign in with a browser, at an OpenID provider, and operate the gateway over the admin API by a session cookie. */
export default definePlugin({
  name: 'openid',
  kind: 'auth',
  apiVersion: 1,
  credentials: ['session'],
  // A session comes in a cookie, never where keys and tokens do.
  isCredential: () => false,
  configSchema: CONFIG_SCHEMA,
  check: (config) => findProblems(config),

  setup(api, config) {
    const options = readOptions(config);
    const cookies = createCookies(options.isSecure);
    const { counters } = api.stores;
    const sessions = createSessions(
      {
        ids: createDocuments(api.keyv<SessionId>('session-ids')),
        sessions: createDocuments(api.keyv<Session>('sessions')),
        seen: createDocuments(api.keyv<number>('session-seen')),
        counters,
      },
      options,
    );
    const pending = createPendingLogins(createDocuments(api.keyv<PendingLogin>('logins')), counters);
    const provider = createIdentityProvider({
      options,
      onFailure: (error) => api.log.warn({ err: error }, 'The signing keys of the identity provider cannot be read.'),
      now: () => performance.now(),
    });
    const count = createLoginRate();
    const { audit, log } = api;
    const parts = { options, cookies, sessions, pending, provider, users: usersOf(api), audit, log, count };
    for (const route of loginRoutes(parts)) api.route(route);
    authenticate(api, options, cookies, sessions);
    renewSessions(api, cookies, sessions);
  },
});

/** Takes the cookie as a credential on the admin API, where no key or token came. */
function authenticate(api: PluginApi, options: OpenIdOptions, cookies: Cookies, sessions: Sessions): void {
  const { issuer, clientId, adminRoles, origin } = options;
  api.hook('authenticate', async ({ credential, path, method, headers, now }): Promise<Principal | undefined> => {
    if (credential !== '' || !path.startsWith(ADMIN_PREFIX)) return undefined;
    const id = cookies.session.read(headers['cookie']);
    const session = id === undefined ? undefined : await sessions.find(id, now);
    // Of another configuration than this one.
    if (!session || session.issuer !== issuer || session.clientId !== clientId) return undefined;
    refuseOtherOrigin({ method, headers }, origin);
    const isAdmin = session.roles.some((role) => adminRoles.includes(role));
    const { userId } = session;
    return Object.freeze({ credential: 'session', userId, account: userId, ...(isAdmin && { isAdmin }) });
  });
  // After all others had their turn: who comes with a cookie alone had a session.
  api.hook('authenticate', {
    order: 'post',
    handler({ credential, path, headers }) {
      if (credential !== '' || !path.startsWith(ADMIN_PREFIX)) return undefined;
      if (!cookies.session.isSent(headers['cookie'])) return undefined;
      throw new GatewayError('invalid_token', `Your session has ended. Sign in again at ${LOGIN_PATH}.`);
    },
  });
}

/** Notes that a session is in use, and gives the browser a new id once in a while. */
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

  /** What the request was for is done, so a store that fails now is no error of it. */
  const renew: Sessions['renew'] = (id, now, mayReplace) =>
    sessions.renew(id, now, mayReplace).catch((error: unknown) => {
      api.log.warn({ err: error }, 'a session could not be renewed; the next request tries again');
      return undefined;
    });
}
