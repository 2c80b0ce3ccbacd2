import Router from '@koa/router';
import type Koa from 'koa';
import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { AuthRequest } from '../contract/hooks.ts';
import type { Schema } from '../contract/json.ts';
import type { FormLimits, Route, RouteContext } from '../contract/plugin.ts';
import type { Owned } from '../plugins/registry.ts';
import { readCredential } from './credentials.ts';
import type { Lifecycle } from './lifecycle.ts';
import { readJsonBody } from './read-body.ts';
import { readForm } from './read-form.ts';
import { requestFault } from './request-fault.ts';
import type { RequestState } from './request-state.ts';
import { createRouteIndex } from './route-index.ts';
import type { RouteValidators, Validate } from './route-validators.ts';

export interface RouterDeps {
  readonly routes: readonly Owned<Route>[];
  readonly validators: RouteValidators;
  readonly authenticate: ((request: AuthRequest) => Promise<Principal | undefined> | Principal | undefined) | undefined;
  readonly lifecycle: Lifecycle;
  readonly maxBodyBytes: number;
}

/** Nesting a body may have. */
const MAX_DEPTH = 64;

/** Compiles routes once; throws a PluginError for a route that cannot work. */
export function createRouter(deps: RouterDeps): Koa.Middleware {
  const router = new Router();
  const index = createRouteIndex<RouteHandler>();
  const unindexed = new Set<string>();
  for (const { owner, value: route } of deps.routes) {
    const handler = createHandler(deps, owner, route);
    router.register(route.path, [route.method.toLowerCase()], handler as never);
    // Routes win in the order of their registration: what comes after one that only the router knows is the router's too.
    if (!unindexed.has(route.method) && !index.add(route.method, route.path, handler)) unindexed.add(route.method);
  }
  const routes = router.routes();
  const allowed = allowedMethods(router);
  return (ctx) => {
    const found = index.find(ctx.method, ctx.path);
    if (found) {
      (ctx as unknown as { params: unknown }).params = found.params;
      return found.value(ctx);
    }
    // A handler never calls next, so next means that no route matched.
    return routes(ctx as never, async () => {
      throw unmatched(ctx, allowed(ctx.path));
    });
  };
}

type RouteHandler = (ctx: Koa.Context) => Promise<void>;

function createHandler(deps: RouterDeps, owner: string, route: Route): RouteHandler {
  const compile = (schema: Schema | undefined, what: 'body' | 'query'): Validate | undefined =>
    schema && deps.validators.create(schema, owner, route, what);
  const validateBody = compile(route.body as Schema | undefined, 'body');
  const validateQuery = compile(route.query, 'query');
  const label = `${route.method} ${route.path}`;
  const authenticate = authenticator(deps, route);
  const maxBytes = route.maxBodyBytes ?? deps.maxBodyBytes;
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = label;
    if (authenticate) {
      const principal = authenticate(ctx);
      state.principal = principal instanceof Promise ? await principal : principal;
    }
    if (validateQuery) check(validateQuery, Object.fromEntries(new URLSearchParams(ctx.querystring)), 'query');
    state.signal = deps.lifecycle.abortSignal(ctx.res);
    if (route.form) return handleForm(ctx, route, route.form, validateBody);
    if (validateBody) {
      const { value, empty } = await readJsonBody(ctx.req, { maxBytes, maxDepth: MAX_DEPTH });
      if (!(empty && route.bodyOptional)) check(validateBody, value, undefined);
      state.body = value;
    }
    await route.handler(ctx as unknown as RouteContext<never>);
    // Koa would say 404 for a handler that forgot its answer.
    if (ctx.body === undefined && ctx.status === 404 && ctx.respond !== false && !ctx.headerSent)
      throw new Error(`plugin "${owner}": ${label} answered nothing`);
  };
}

/** A route that takes a form: its files are there while the handler works, and gone after it. */
async function handleForm(
  ctx: Koa.Context,
  route: Route,
  limits: FormLimits,
  validate: Validate | undefined,
): Promise<void> {
  const { fields, files, remove } = await readForm(ctx, limits);
  try {
    if (validate) check(validate, fields, undefined);
    const state = ctx.state as RequestState;
    state.body = fields;
    state.files = files;
    await route.handler(ctx as unknown as RouteContext<never>);
  } finally {
    await remove();
  }
}

function check(validate: Validate, value: unknown, where: string | undefined): void {
  const fault = validate(value);
  if (fault) throw requestFault(fault, value, where);
}

/** The check of who calls, for one route; undefined when the route is open to all. */
function authenticator(
  deps: RouterDeps,
  route: Route,
): ((ctx: Koa.Context) => Principal | Promise<Principal>) | undefined {
  const { auth, permission } = route;
  if (auth === 'none') return undefined;
  const takesKey = auth.includes('key');
  const takesToken = auth.includes('token');
  const wanted =
    takesKey && takesToken
      ? 'an API key or a token of the identity provider'
      : takesKey
        ? 'an API key'
        : 'a token of the identity provider';
  const admit = (principal: Principal | undefined): Principal => {
    if (!principal)
      throw new GatewayError(
        takesKey ? 'invalid_api_key' : 'invalid_token',
        `The credential is not one of this gateway's. This route needs ${wanted}.`,
      );
    if (principal.credential === 'key' ? !takesKey : !takesToken) {
      throw new GatewayError(
        principal.credential === 'key' ? 'invalid_token' : 'invalid_api_key',
        `This route needs ${wanted}, and the other kind was sent.`,
      );
    }
    if (principal.credential === 'token' && permission !== undefined && !principal.permissions?.includes(permission)) {
      throw new GatewayError('permission_denied', `The token lacks the permission "${permission}".`);
    }
    return principal;
  };
  return (ctx) => {
    const presented = readCredential(ctx.req);
    if (!presented)
      throw new GatewayError(
        'missing_api_key',
        `This route needs ${wanted}: send "Authorization: Bearer …"${takesKey ? ' or "x-api-key: …"' : ''}.`,
      );
    const { credential, bearer } = presented;
    const principal = deps.authenticate?.({ credential, bearer, now: Date.now() });
    return principal instanceof Promise ? principal.then(admit) : admit(principal);
  };
}

/** Which methods a path has. */
function allowedMethods(router: Router): (path: string) => readonly string[] {
  return (path) =>
    [...new Set(router.stack.filter((layer) => layer.match(path)).flatMap((layer) => layer.methods))].sort();
}

function unmatched(ctx: Koa.Context, methods: readonly string[]): GatewayError {
  const path = ctx.path.length > 200 ? `${ctx.path.slice(0, 197)}…` : ctx.path;
  if (methods.length === 0) return new GatewayError('unknown_url', `Unknown request URL: ${ctx.method} ${path}`);
  return new GatewayError(
    'method_not_allowed',
    `${path} does not take ${ctx.method}; it takes ${methods.join(', ')}.`,
    { headers: { allow: methods.join(', ') } },
  );
}
