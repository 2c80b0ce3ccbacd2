import { createHash } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Principal } from '../../contract/call.ts';
import type { DialectDefinition, DialectModels, ListedModel } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { PluginReport } from '../../contract/gateway.ts';
import type { Schema } from '../../contract/json.ts';
import type { PlanFinder } from '../../contract/plans.ts';
import type { Route, RouteContext } from '../../contract/plugin.ts';
import { type Aliases, type Catalog, listModels, listModelsOf } from '../../models/catalog.ts';
import { openAiModel } from '../../models/model-table.ts';
import { docsRoutes } from '../../openapi/docs-pages.ts';
import { callAttributed } from '../plugins/attribution.ts';
import type { Attributed } from '../plugins/registry.ts';
import { dialectOfList, MODELS_PATH } from './authenticate.ts';
import type { Phase } from './lifecycle.ts';

type CoreRouteDeps = HealthRouteDeps & Omit<ModelRouteDeps, 'created'> & { readonly basePath: string };

/** Routes of a gateway without any plugin. */
export function coreRoutes({ catalog, aliases, dialects, planOf, basePath, ...deps }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, dialects, planOf, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(deps),
    ...docsRoutes(),
    rootRoute(basePath),
  ];
}

const ROOT: Schema = {
  type: 'object',
  required: ['name', 'docs'],
  properties: { name: { type: 'string' }, docs: { type: 'string' } },
};

/**
 * `GET` and `HEAD /`: clients check there for a server before their first call. Reveals no version; gives way to a plugin's page.
 */
function rootRoute(basePath: string): Route {
  return {
    method: 'GET',
    path: '/',
    summary: 'Service name and documentation link',
    auth: 'none',
    isFallback: true,
    responses: { 200: { description: 'Yes.', schema: ROOT } },
    handler(ctx) {
      ctx.body = { name: 'tollgate', docs: `${basePath}/docs` };
    },
  };
}

interface HealthRouteDeps {
  phase(): Phase;
  /** Returns why the last reload was rejected; undefined if it succeeded. */
  reloadProblem(): string | undefined;
  /** Returns `ok`, or the problem of the store. */
  storeHealth(): Promise<string>;
  /** Returns reports on the configured instances. */
  plugins(): readonly PluginReport[];
  /** Returns the OpenAPI document as JSON text, generated once. */
  openApi(): string;
}

const HEALTH: Schema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string' }, checks: { type: 'object' } },
};

/** Time limit of the store in a readiness check. */
const STORE_CHECK_MS = 1000;
const LATE = 'The store did not respond within a second.';

/**
 * `/livez`: the process responds, even while draining, so that no supervisor kills it. `/readyz` (and `/healthz`): it accepts
 * requests, and its store responds and accepted the last write. It also reports a rejected configuration (the previous one stays
 * active) and plugins that fail repeatedly. These do not affect readiness: one caller may have triggered the failure, and must not
 * take the gateway away from others.
 */
function healthRoutes(deps: HealthRouteDeps): readonly Route[] {
  const ready = async (ctx: { status: number; body: unknown }) => {
    const phase = deps.phase();
    const found = phase === 'ready' ? await storeState(deps) : 'not asked';
    const store = found === 'ok' || found === 'not asked' ? found : 'unavailable';
    const isReady = store === 'ok';
    ctx.status = isReady ? 200 : 503;
    const problem = deps.reloadProblem();
    const plugins = deps.plugins().flatMap(describeFailing).join('; ');
    const checks = {
      store,
      ...(store !== found && { store_problem: found }),
      ...(problem !== undefined && { reload: problem }),
      ...(plugins !== '' && { plugins }),
    };
    ctx.body = { status: isReady ? 'ready' : phase === 'ready' ? 'not ready' : phase, checks };
  };
  const health = (path: string, summary: string, handler: Route['handler']): Route => ({
    method: 'GET',
    path,
    summary,
    auth: 'none',
    isProbe: true,
    responses: { 200: { description: 'Yes.', schema: HEALTH }, 503: { description: 'No.', schema: HEALTH } },
    handler,
  });
  return [
    health('/livez', 'Check that the process is alive', (ctx) => {
      ctx.body = { status: 'alive' };
    }),
    health('/readyz', 'Check that the gateway accepts requests', ready),
    health('/healthz', 'Same as /readyz', ready),
    {
      method: 'GET',
      path: '/openapi.json',
      summary: 'OpenAPI document',
      auth: 'none',
      responses: { 200: { description: 'OpenAPI 3.1.', contentType: 'application/json' } },
      handler: createDocumentHandler(deps.openApi),
    },
  ];
}

const compress = promisify(gzip);

/** Serves a JSON document that is public and large: compressed once, cached for a moment, and not sent again to a client that has it. */
function createDocumentHandler(read: () => string): Route['handler'] {
  let etag: string | undefined;
  let zipped: Promise<Buffer> | undefined;
  return async (ctx) => {
    const text = read();
    etag ??= `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
    ctx.set({ etag, 'cache-control': 'public, max-age=60' });
    ctx.vary('accept-encoding');
    ctx.type = 'application/json; charset=utf-8';
    // Fresh responses need a status of success.
    ctx.status = 200;
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
      ctx.body = text;
      return;
    }
    zipped ??= compress(text);
    ctx.set('content-encoding', 'gzip');
    ctx.body = await zipped;
  };
}

/** Consecutive failed calls after which a plugin is reported. */
const FAILING = 10;

/** The output is public: the reason why a plugin was skipped is for operators only. */
function describeFailing({ name, counts, parts, problem }: PluginReport): readonly string[] {
  if (problem !== undefined) return [`${name}: could not be set up and is not loaded; the log has the reason`];
  const ill = parts.filter(({ isHealthy }) => !isHealthy).map((part) => `${name}: "${part.name}" is ${part.state}`);
  const failing = counts
    .filter(({ failedInARow }) => failedInARow >= FAILING)
    .map(({ hook, failedInARow }) => `${name}: its hook "${hook}" failed its last ${failedInARow} calls`);
  return [...failing, ...ill];
}

/**
 * Returns `ok`, or the problem of the store. A response that arrived while this process was busy is read after the timers, and
 * counts.
 */
function storeState({ storeHealth }: HealthRouteDeps): Promise<string> {
  const late = pause(STORE_CHECK_MS, undefined, { ref: false }).then(() => nextTurn(LATE));
  return Promise.race([storeHealth(), late]);
}

const MODEL_LIST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ModelList',
  type: 'object',
  required: ['object', 'data'],
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: { type: 'object', required: ['id', 'object', 'created', 'owned_by'] } },
  },
});

interface ModelRouteDeps {
  readonly catalog: Catalog;
  readonly aliases: Aliases;
  readonly dialects: readonly Attributed<DialectDefinition>[];
  readonly planOf: PlanFinder;
  /** Unix seconds: the gateway's start, because vendors' lists have no creation time. */
  readonly created: number;
}

/** Returns the response of a route for a caller. */
type Read = (ctx: RouteContext) => Promise<unknown>;

/** Model list, and a single model. */
interface Lists {
  readonly list: Read;
  readonly one: Read;
}

/**
 * Creates the model lists of both surfaces and of clients' formats. They contain only callable models that the caller's key allows.
 */
function modelRoutes(deps: ModelRouteDeps): readonly Route[] {
  const ofPath = openAiLists((ctx) =>
    listInPlan(deps, ctx, (principal) => providerModels(deps, ctx.params['provider'] ?? '', principal)),
  );
  const ofAll = openAiLists((ctx) => listInPlan(deps, ctx, (principal) => listModels(deps, principal, deps.created)));
  const definitions = deps.dialects.map(({ value }) => value);
  const ofDialects = new Map(
    deps.dialects.flatMap(({ owner, value }) =>
      value.models ? [[value, dialectLists(deps, owner, value, value.models)] as const] : [],
    ),
  );
  const ofForm = (ctx: RouteContext): Lists => {
    const dialect = dialectOfList(definitions, ctx.headers);
    const lists = dialect && ofDialects.get(dialect);
    return lists ?? ofAll;
  };
  return [
    get('/api/core/:provider/models', 'List the models of one provider', ofPath.list, MODEL_LIST),
    get('/api/core/:provider/models/*id', 'Get a model of one provider; its id may contain slashes', ofPath.one),
    get(
      MODELS_PATH,
      'List all models as `provider/model` and all aliases, in the format of the client’s headers',
      (ctx) => ofForm(ctx).list(ctx),
      MODEL_LIST,
    ),
    get(`${MODELS_PATH}/*id`, 'Get a model or an alias', (ctx) => ofForm(ctx).one(ctx)),
    ...[...ofDialects].flatMap(([dialect, lists]) => routesOfDialect(dialect, lists)),
  ];
}

function get(path: string, summary: string, read: Read, schema?: Schema): Route {
  return {
    method: 'GET',
    path,
    summary,
    auth: ['key'],
    responses: { 200: schema ? { description: 'Models.', schema } : { description: 'What there is.' } },
    async handler(ctx) {
      ctx.body = await read(ctx);
    },
  };
}

/** Returns the models that a caller may use by its key and plan. */
async function listInPlan(
  { planOf }: Pick<ModelRouteDeps, 'planOf'>,
  { state: { principal } }: RouteContext,
  list: (principal: Principal) => readonly ListedModel[],
): Promise<readonly ListedModel[]> {
  const rows = list(principal);
  // If the store is unavailable and the plan unknown, calls are rejected but lists are not.
  const { models } =
    (
      await Promise.resolve(principal)
        .then(planOf)
        .catch(() => undefined)
    )?.plan ?? {};
  if (!models) return rows;
  const inPlan = new Set(list({ ...principal, models }).map(({ id }) => id));
  return rows.filter(({ id }) => inPlan.has(id));
}

function openAiLists(read: (ctx: RouteContext) => Promise<readonly ListedModel[]>): Lists {
  return {
    list: async (ctx) => ({ object: 'list', data: (await read(ctx)).map(openAiModel) }),
    one: async (ctx) => openAiModel(findModel(await read(ctx), ctx)),
  };
}

function dialectLists(
  { catalog, aliases, planOf, created }: ModelRouteDeps,
  owner: string,
  { aliases: dialectAliases }: DialectDefinition,
  models: DialectModels,
): Lists {
  const read = (ctx: RouteContext) =>
    listInPlan({ planOf }, ctx, (principal) => listModels({ catalog, aliases, dialectAliases }, principal, created));
  return {
    list: async (ctx) => {
      const rows = await read(ctx);
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      return callAttributed(owner, () => models.list(rows, query));
    },
    one: async (ctx) => {
      const row = findModel(await read(ctx), ctx);
      return callAttributed(owner, () => models.one(row));
    },
  };
}

/** Creates the list of a client's format at a path of its own. */
function routesOfDialect({ models, name }: DialectDefinition, { list, one }: Lists): readonly Route[] {
  if (models?.path === undefined || models.path === MODELS_PATH) return [];
  return [
    get(models.path, `List models in the format "${name}"`, list),
    get(`${models.path}/*id`, `Get a model in the format "${name}"`, one),
  ];
}

function findModel(rows: readonly ListedModel[], ctx: RouteContext): ListedModel {
  const row = rows.find(({ id }) => id === ctx.params['id']);
  if (row) return row;
  throw new GatewayError(
    'unsupported_model',
    'Model not found, or this key may not use it. GET /v1/models lists the models.',
    {
      param: 'model',
    },
  );
}

function providerModels(deps: ModelRouteDeps, provider: string, principal: Principal): readonly ListedModel[] {
  const { catalog } = deps;
  if (!catalog.has(provider))
    throw new GatewayError('unsupported_provider', `Provider not found. Use one of ${catalog.providers().join(', ')}.`);
  return listModelsOf(catalog, provider, principal, deps.created);
}
