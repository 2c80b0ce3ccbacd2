import type Koa from 'koa';
import type { CredentialKind, Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { AuthRequest } from '../contract/hooks.ts';
import type { Route } from '../contract/plugin.ts';
import type { PresentedCredential } from './credentials.ts';
import { RequestAborted } from './read-body.ts';
import type { RequestState } from './request-state.ts';

/** The `authenticate` hooks as one function; undefined where no plugin has one. */
export type Authenticate = (request: AuthRequest) => Principal | undefined | Promise<Principal | undefined>;

/** The same without users whom an operator blocked, however they prove who they are. */
export function withoutBlocked(
  authenticate: Authenticate | undefined,
  refuseBlocked: (userId: string) => void | Promise<void>,
): Authenticate | undefined {
  if (!authenticate) return undefined;
  const admit = (principal: Principal | undefined): ReturnType<Authenticate> => {
    const looking = principal && refuseBlocked(principal.userId);
    return looking ? looking.then(() => principal) : principal;
  };
  return (request) => {
    const principal = authenticate(request);
    return principal instanceof Promise ? principal.then(admit) : admit(principal);
  };
}

/** What an authenticator reads of a request. */
export type Asking = Pick<Koa.Context, 'req' | 'method' | 'path' | 'headers'> & {
  readonly state: Pick<RequestState, 'ip'>;
};

/** Finds out who calls; throws, or rejects with, a 401 or 403 for a caller that may not use the route. */
export type Authenticator = (ctx: Asking, rawBody: () => Promise<Uint8Array>) => Principal | Promise<Principal>;

/** Finds the credential of a request; throws for one that may not be where it is. */
export type CredentialReader = (ctx: Pick<Asking, 'req' | 'path'>) => PresentedCredential | undefined;

/** The check of who calls, for one route; undefined when the route is open to all. */
export function createAuthenticator(
  authenticate: Authenticate | undefined,
  route: Pick<Route, 'auth' | 'permission' | 'role'>,
  readPresented: CredentialReader,
  credentials?: ReadonlySet<CredentialKind>,
): Authenticator | undefined {
  const { auth } = route;
  if (auth === 'none') return undefined;
  const kinds = kindsTaken({ auth, role: route.role });
  const wanted = describeWanted(auth);
  // No credential would do: that is the operator's to change, so the caller is not asked for one.
  if (credentials && !kinds.some((kind) => credentials.has(kind)))
    return () => {
      throw new GatewayError(
        'feature_disabled',
        `This route needs ${wanted}, and no plugin here knows ${auth.includes('key') ? 'any' : 'tokens'}. Its operator adds one under "auth" in the configuration.`,
      );
    };
  const canSignIn = kinds.includes('session') && credentials?.has('session');
  const check = (principal: Principal | undefined, presented: PresentedCredential | undefined): Principal => {
    if (!principal && !presented)
      throw new GatewayError(
        'missing_api_key',
        `This route needs ${wanted}: send "Authorization: Bearer …"${auth.includes('key') ? ' or "x-api-key: …"' : ''}${canSignIn ? ', or sign in with a browser' : ''}.`,
      );
    return admitPrincipal(principal, route, wanted);
  };
  return (ctx, rawBody) => {
    const presented = readPresented(ctx);
    const { method, path, headers } = ctx;
    let shown: AuthRequest['headers'] | undefined;
    const principal = authenticate?.(
      Object.freeze({
        credential: presented?.credential ?? '',
        bearer: presented?.bearer ?? false,
        now: Date.now(),
        method,
        path,
        // Copied for those who read them: schemes that sign a request, and cookies.
        get headers() {
          shown ??= Object.freeze({ ...headers });
          return shown;
        },
        rawBody: () => rawBody().catch(tellAborted),
        address: ctx.state.ip,
      }),
    );
    return principal instanceof Promise
      ? principal.then((found) => check(found, presented))
      : check(principal, presented);
  };
}

/** To a plugin, a caller who hung up is an error like any other that it need not know. */
function tellAborted(error: unknown): never {
  if (!(error instanceof RequestAborted)) throw error;
  throw new GatewayError('request_timeout', 'The caller hung up before the body was complete.', { cause: error });
}

interface Taken {
  readonly auth: Route['auth'];
  readonly role?: Route['role'] | undefined;
}

/** The kinds of credentials that a route takes. A session only goes where operators are: no model call is paid by a cookie. */
export function kindsTaken({ auth, role }: Taken): readonly CredentialKind[] {
  if (auth === 'none') return [];
  return role === 'admin' ? [...auth, 'session'] : auth;
}

function describeWanted(auth: Exclude<Route['auth'], 'none'>): string {
  if (!auth.includes('key')) return 'a token of the identity provider';
  return auth.includes('token') ? 'an API key or a token of the identity provider' : 'an API key';
}

/** Holds a principal to what the route takes: the kind of credential, and for a token the permission. */
function admitPrincipal(
  principal: Principal | undefined,
  { auth, permission, role }: Pick<Route, 'auth' | 'permission' | 'role'>,
  wanted: string,
): Principal {
  if (!principal)
    throw new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `The credential is not one of this gateway's. This route needs ${wanted}.`,
    );
  const { credential } = principal;
  if (!kindsTaken({ auth, role }).includes(credential))
    throw new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `This route needs ${wanted}, and the other kind was sent.`,
    );
  if (role === 'admin') {
    if (principal.isAdmin === true) return principal;
    throw new GatewayError(
      'permission_denied',
      'This route is for operators: it takes an admin key ("tollgate keys create --admin") or a token with the admin permission.',
    );
  }
  if (credential === 'token' && permission !== undefined && !principal.permissions?.includes(permission))
    throw new GatewayError('permission_denied', `The token lacks the permission "${permission}".`);
  return principal;
}
