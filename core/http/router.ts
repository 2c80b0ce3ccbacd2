import Router, { type RouterContext } from '@koa/router';
import type Koa from 'koa';
import { GatewayError } from '../contract/errors.ts';
import type { Schema } from '../contract/json.ts';
import type { FormLimits, Route, RouteContext } from '../contract/plugin.ts';
import type { Owned } from '../plugins/registry.ts';
import { type Authenticate, createAuthenticator } from './authenticate.ts';
import { type BodyBudget, createBodyBudget } from './body-budget.ts';
import { type CompileRoute, createRouteCompiler, type Validate } from './compile-routes.ts';
import type { Lifecycle } from './lifecycle.ts';
import { readJsonBody } from './read-body.ts';
import { readForm } from './read-form.ts';
import { requestError } from './request-error.ts';
import type { RequestState } from './request-state.ts';

export interface RouterDeps {
  readonly routes: readonly Owned<Route>[];
  /** Schemas that the routes' schemas refer to by their `$id`. */
  readonly schemas: readonly Schema[];
  readonly authenticate: Authenticate | undefined;
  readonly lifecycle: Lifecycle;
  readonly maxBodyBytes: number;
}

type Handler = (ctx: Koa.Context) => Promise<void>;

/** Makes one middleware of all routes; the first registered wins. Throws a PluginFault for a route that cannot work. */
export function createRouter(deps: RouterDeps): Koa.Middleware {
  const router = new Router();
  const compile = createRouteCompiler(deps.schemas);
  const budget = createBodyBudget();
  for (const { owner, value: route } of deps.routes)
    router.register(route.path, [route.method], createHandler(deps, budget, compile, owner, route));
  const dispatch = router.routes();
  return (ctx) =>
    dispatch(ctx as RouterContext, async () => {
      // A handler never calls next, so next means that no route matched.
      throw unmatched(ctx as RouterContext);
    });
}

/** What is done for a request to a route, in this order: who calls, the query, the body, the handler. */
function createHandler(
  deps: RouterDeps,
  budget: BodyBudget,
  compile: CompileRoute,
  owner: string,
  route: Route,
): Handler {
  const validateBody = compile(owner, route, 'body');
  const validateQuery = compile(owner, route, 'query');
  const authenticate = createAuthenticator(deps.authenticate, route);
  const maxBytes = route.maxBodyBytes ?? deps.maxBodyBytes;
  const label = `${route.method} ${route.path}`;
  const handle = async (ctx: Koa.Context): Promise<void> => {
    await route.handler(ctx as RouteContext);
    // Koa would say 404 for a handler that forgot its answer.
    if (ctx.body === undefined && ctx.status === 404 && ctx.respond !== false && !ctx.headerSent)
      throw new Error(`plugin "${owner}": ${label} answered nothing`);
  };
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = label;
    state.principal = await authenticate?.(ctx);
    if (validateQuery) check(validateQuery, Object.fromEntries(new URLSearchParams(ctx.querystring)), 'query');
    state.caller = deps.lifecycle.callerSignal(ctx.res);
    if (route.form) return handleForm(ctx, route.form, validateBody, handle);
    if (validateBody) {
      const hold = budget.open(ctx.res);
      const { value, raw, empty } = await readJsonBody(ctx.req, { maxBytes, hold });
      if (!(empty && route.bodyOptional)) check(validateBody, value, undefined);
      state.body = value;
      state.rawBody = raw;
    }
    return handle(ctx);
  };
}

/** A route that takes a form: its files are there while the handler works, and deleted after it. */
async function handleForm(
  ctx: Koa.Context,
  limits: FormLimits,
  validate: Validate | undefined,
  handle: Handler,
): Promise<void> {
  const { fields, files, remove } = await readForm(ctx, limits);
  try {
    if (validate) check(validate, fields, undefined);
    const state = ctx.state as RequestState;
    state.body = fields;
    state.files = files;
    await handle(ctx);
  } finally {
    await remove();
  }
}

function check(validate: Validate, value: unknown, where: string | undefined): void {
  const error = validate(value);
  if (error) throw requestError(error, value, where);
}

/** The error for a request that no route takes: 405 when its path has other methods, else 404. */
function unmatched(ctx: RouterContext): GatewayError {
  const path = ctx.path.length > 200 ? `${ctx.path.slice(0, 197)}…` : ctx.path;
  const methods = [...new Set(ctx.matched?.flatMap((layer) => layer.methods))].sort().join(', ');
  if (methods === '') return new GatewayError('unknown_url', `Unknown request URL: ${ctx.method} ${path}`);
  return new GatewayError('method_not_allowed', `${path} does not take ${ctx.method}; it takes ${methods}.`, {
    headers: { allow: methods },
  });
}
