import type { RouterContext } from '@koa/router';
import Router from '@koa/router';
import type Koa from 'koa';
import type { CredentialKind } from '../contract/call.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import { deepFreeze } from '../contract/json.ts';
import type { FormLimits, Route, RouteContext } from '../contract/plugin.ts';
import type { TagRules } from '../contract/tags.ts';
import { CORE, runOwned } from '../plugins/attribution.ts';
import type { Owned } from '../plugins/registry.ts';
import {
  type CompileRoute,
  createRouteCompiler,
  type RequestSchemas,
  type Validate,
} from '../plugins/request-schemas.ts';
import type { CountAdmin } from './admin-rate.ts';
import { type Asking, type Authenticate, type CredentialReader, createAuthenticator } from './authenticate.ts';
import { sessionOf, withRequestTags } from './caller-headers.ts';
import { readCredential } from './credentials.ts';
import { type RespondOnce, readIdempotencyKey } from './idempotency.ts';
import type { Lifecycle } from './lifecycle.ts';
import { createMemory, type Memory, ownerAt, ownerOf } from './memory.ts';
import { readBodyBytes, readJsonBody } from './read-body.ts';
import { type FormSource, formBytes, readForm } from './read-form.ts';
import { requestError } from './request-error.ts';
import type { RequestState } from './request-state.ts';

export interface RouterDeps {
  readonly routes: readonly Owned<Route>[];
  /** Compiles the routes' schemas. */
  readonly requests: RequestSchemas;
  readonly authenticate: Authenticate | undefined;
  /** The kinds of credentials that are known here; all unless set. */
  readonly credentials?: ReadonlySet<CredentialKind>;
  /** `readCredential` by its plain rules unless set. */
  readonly readCredential?: CredentialReader;
  /** The tags that requests may name; none unless set. */
  readonly tags?: TagRules;
  readonly lifecycle: Lifecycle;
  readonly maxBodyBytes: number;
  /** The client format of a route, which its errors are written in; OpenAI's unless set. */
  readonly dialectOf?: (route: Route) => DialectDefinition | undefined;
  /** Responds to requests that have an idempotency key, on routes that take one; the key is ignored unless set. */
  readonly respondOnce?: RespondOnce | undefined;
  /** Counts requests to routes of operators; they are not limited unless set. */
  readonly countAdmin?: CountAdmin;
  /** The memory in flight, shared by every generation; one of its own unless set. */
  readonly memory?: Memory;
}

const NO_TAGS: TagRules = Object.freeze({});

type Handler = (ctx: Koa.Context) => Promise<void>;

/** Makes one middleware of all routes; the first registered wins. Throws a PluginError for a route that cannot work. */
export function createRouter(deps: RouterDeps): Koa.Middleware {
  const router = new Router();
  const compile = createRouteCompiler(deps.requests);
  const memory = deps.memory ?? createMemory();
  for (const { owner, value: route } of deps.routes)
    router.register(route.path, [route.method], createHandler(deps, memory, compile, owner, route));
  const dispatch = router.routes();
  return (ctx) =>
    dispatch(ctx as RouterContext, async () => {
      // A handler never calls next, so next means that no route matched.
      throw unmatched(ctx as RouterContext);
    });
}

/** What is done for a request to a route, in this order: who calls, the query, the body, the handler. */
function createHandler(deps: RouterDeps, memory: Memory, compile: CompileRoute, owner: string, route: Route): Handler {
  const validateBody = compile(owner, route, 'body');
  const validateQuery = compile(owner, route, 'query');
  const authenticate = createAuthenticator(
    deps.authenticate,
    route,
    deps.readCredential ?? (({ req }) => readCredential(req)),
    deps.credentials,
  );
  const countAdmin = route.role === 'admin' && !route.isProbe ? deps.countAdmin : undefined;
  const maxBytes = route.form ? formBytes(route.form) : (route.maxBodyBytes ?? deps.maxBodyBytes);
  const label = `${route.method} ${route.path}`;
  const dialect = deps.dialectOf?.(route);
  const run = (ctx: Koa.Context): unknown => {
    const work = () => route.handler(ctx as RouteContext);
    // Core itself handles the routes of dialects.
    return owner === CORE || dialect ? work() : runOwned(owner, work);
  };
  const assertResponded = (ctx: Koa.Context): void => {
    // Koa would say 404 for a handler that forgot its response.
    if (ctx.body === undefined && ctx.status === 404 && ctx.respond !== false && !ctx.headerSent)
      throw new Error(`plugin "${owner}": ${label} answered nothing`);
  };
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = label;
    if (owner !== CORE) state.plugin = owner;
    state.dialect = dialect ?? state.dialect;
    const hold = memory.book(ownerAt(state.ip));
    if (ctx.res.closed) hold.release();
    else ctx.res.once('close', () => hold.release());
    let read: Promise<Buffer> | undefined;
    const bytes = (): Promise<Buffer> => {
      read ??= readBodyBytes(ctx.req, { maxBytes, hold, memory });
      return read;
    };
    const found = authenticate?.(ctx as Asking, bytes);
    const principal = found instanceof Promise ? await found : found;
    if (principal) hold.assign(ownerOf(principal));
    if (principal && countAdmin) await countAdmin(principal);
    state.session = sessionOf(ctx.headers);
    state.principal = principal && withRequestTags(principal, ctx.headers, deps.tags ?? NO_TAGS, route);
    if (validateQuery) check(validateQuery, Object.fromEntries(new URLSearchParams(ctx.querystring)), 'query');
    state.signal = deps.lifecycle.abortSignal(ctx.res, route.isEndless);
    if (route.form)
      return handleForm(ctx, route.form, { hold, memory, bytes: await read }, validateBody, async () => {
        await run(ctx);
        assertResponded(ctx);
      });
    if (validateBody) {
      const { value, empty, raw } = await readJsonBody(ctx.req, { maxBytes, hold, memory, bytes });
      if (!(empty && route.bodyOptional)) check(validateBody, value, undefined);
      if (route.isIdempotent && deps.respondOnce && !state.outer && readIdempotencyKey(ctx.req) !== undefined)
        return deps.respondOnce(ctx, raw);
      state.body = value;
    }
    const work = run(ctx);
    if (work) await work;
    assertResponded(ctx);
  };
}

/** A route that takes a form: its files are there while the handler works, and deleted after it. */
async function handleForm(
  ctx: Koa.Context,
  limits: FormLimits,
  source: FormSource,
  validate: Validate | undefined,
  handle: () => Promise<void>,
): Promise<void> {
  const { fields, files, remove } = await readForm(ctx, limits, source);
  try {
    if (validate) check(validate, fields, undefined);
    const state = ctx.state as RequestState;
    state.body = deepFreeze(fields);
    state.files = deepFreeze(files);
    await handle();
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
