import { createReadStream, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { type Aliases, allModels, type Catalog, listModels, modelsOfProvider } from '../calls/models.ts';
import type { Principal } from '../contract/call.ts';
import type { DialectDefinition, DialectModels } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Schema } from '../contract/json.ts';
import type { ModelRow, Route, RouteContext } from '../contract/plugin.ts';
import { callOwned } from '../plugins/attribution.ts';
import type { Owned } from '../plugins/registry.ts';
import { dialectOfList, MODELS_PATH } from './authenticate.ts';
import type { Phase } from './lifecycle.ts';
import { type AdminRouteDeps, adminRoutes } from './operator-routes.ts';

type CoreRouteDeps = HealthRouteDeps & AdminRouteDeps & Omit<ModelRouteDeps, 'created'>;

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ catalog, aliases, dialects, ...deps }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, dialects, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(deps),
    ...adminRoutes(deps),
    ...docsRoutes(),
    rootRoute(),
  ];
}

const ROOT: Schema = {
  type: 'object',
  required: ['name', 'docs'],
  properties: { name: { type: 'string' }, docs: { type: 'string' } },
};

/** `GET` and `HEAD /`: clients look there for a server before their first call. Tells no version; gives way to a plugin's page. */
function rootRoute(): Route {
  return {
    method: 'GET',
    path: '/',
    summary: 'That a gateway is here, and where its documentation is',
    auth: 'none',
    isFallback: true,
    responses: { 200: { description: 'Yes.', schema: ROOT } },
    handler(ctx) {
      ctx.body = { name: 'tollgate', docs: '/docs' };
    },
  };
}

interface HealthRouteDeps {
  phase(): Phase;
  /** Why the last reload was refused; undefined when it was not. */
  reloadProblem(): string | undefined;
  /** Resolves when the store answers. */
  storeHealth(): Promise<void>;
  /** The OpenAPI document as JSON text, made once. */
  openApi(): string;
}

const HEALTH: Schema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string' }, checks: { type: 'object' } },
};

/** How long the store may take to answer a readiness check. */
const STORE_CHECK_MS = 1000;

/**
 * `/livez`: the process answers, also while draining, so that nothing kills it. `/readyz` (and `/healthz`): it takes
 * requests, and its store answers. A configuration that was refused is told beside: the one before it still serves.
 */
function healthRoutes(deps: HealthRouteDeps): readonly Route[] {
  const ready = async (ctx: { status: number; body: unknown }) => {
    const phase = deps.phase();
    const store = phase === 'ready' ? await storeState(deps) : 'not asked';
    const isReady = phase === 'ready' && store === 'ok';
    ctx.status = isReady ? 200 : 503;
    const problem = deps.reloadProblem();
    const checks = { store, ...(problem !== undefined && { reload: problem }) };
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
    health('/livez', 'Is the process alive?', (ctx) => {
      ctx.body = { status: 'alive' };
    }),
    health('/readyz', 'Does it take requests?', ready),
    health('/healthz', 'The same as /readyz', ready),
    {
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document',
      auth: 'none',
      responses: { 200: { description: 'OpenAPI 3.1.', contentType: 'application/json' } },
      handler(ctx) {
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = deps.openApi();
      },
    },
  ];
}

async function storeState({ storeHealth }: HealthRouteDeps): Promise<'ok' | 'unavailable'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'unavailable'>((resolve) => {
    timer = setTimeout(() => resolve('unavailable'), STORE_CHECK_MS);
  });
  try {
    return await Promise.race([storeHealth().then(() => 'ok' as const), late]);
  } catch {
    return 'unavailable';
  } finally {
    clearTimeout(timer);
  }
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
  readonly dialects: readonly Owned<DialectDefinition>[];
  /** Unix seconds: when this gateway started, since vendors' lists tell no creation time. */
  readonly created: number;
}

/** What a route responds with for a caller. */
type Read = (ctx: RouteContext) => unknown;

/** A list of models, and one of them. */
interface Lists {
  readonly list: Read;
  readonly one: Read;
}

/** The model lists of both surfaces and of clients' formats: only what the caller's key may use and what can be called. */
function modelRoutes(deps: ModelRouteDeps): readonly Route[] {
  const ofPath = openAiLists(deps, (ctx) => providerModels(deps, ctx.params['provider'] ?? '', ctx.state.principal));
  const ofAll = openAiLists(deps, (ctx) => allModels(deps, ctx.state.principal));
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
    get('/api/core/:provider/models', 'Models of one provider', ofPath.list, MODEL_LIST),
    get('/api/core/:provider/models/*id', 'One model of one provider; its id may hold slashes', ofPath.one),
    get(
      MODELS_PATH,
      'All models as `provider/model`, and the aliases; in the form of the client whose headers are sent',
      (ctx) => ofForm(ctx).list(ctx),
      MODEL_LIST,
    ),
    get(`${MODELS_PATH}/*id`, 'One model or alias', (ctx) => ofForm(ctx).one(ctx)),
    ...[...ofDialects].flatMap(([dialect, lists]) => routesOfDialect(dialect, lists)),
  ];
}

function get(path: string, summary: string, read: Read, schema?: Schema): Route {
  return {
    method: 'GET',
    path,
    summary,
    auth: ['key'],
    responses: { 200: schema ? { description: 'The models.', schema } : { description: 'What there is.' } },
    handler(ctx) {
      ctx.body = read(ctx);
    },
  };
}

function openAiLists({ created }: ModelRouteDeps, read: (ctx: RouteContext) => readonly ModelRow[]): Lists {
  const entry = ({ id, owned_by }: ModelRow) => ({ id, object: 'model', created, owned_by });
  return {
    list: (ctx) => ({ object: 'list', data: read(ctx).map(entry) }),
    one: (ctx) => entry(findModel(read(ctx), ctx)),
  };
}

function dialectLists(
  { catalog, aliases, created }: ModelRouteDeps,
  owner: string,
  { aliases: dialectAliases }: DialectDefinition,
  models: DialectModels,
): Lists {
  const read = (ctx: RouteContext) => listModels({ catalog, aliases, dialectAliases }, ctx.state.principal, created);
  return {
    list: (ctx) => {
      const rows = read(ctx);
      const query = Object.fromEntries(new URLSearchParams(ctx.querystring));
      return callOwned(owner, () => models.list(rows, query));
    },
    one: (ctx) => {
      const row = findModel(read(ctx), ctx);
      return callOwned(owner, () => models.one(row));
    },
  };
}

/** The list of a client's format at a path of its own. */
function routesOfDialect({ models, name }: DialectDefinition, { list, one }: Lists): readonly Route[] {
  if (models?.path === undefined || models.path === MODELS_PATH) return [];
  return [
    get(models.path, `The models, in the form of "${name}"`, list),
    get(`${models.path}/*id`, `One model, in the form of "${name}"`, one),
  ];
}

function findModel<Row extends { readonly id: string }>(rows: readonly Row[], ctx: RouteContext): Row {
  const row = rows.find(({ id }) => id === ctx.params['id']);
  if (row) return row;
  throw new GatewayError('unsupported_model', 'There is no model of this name that this key may use.', {
    param: 'model',
  });
}

function providerModels({ catalog }: ModelRouteDeps, provider: string, principal: Principal): readonly ModelRow[] {
  if (!catalog.has(provider))
    throw new GatewayError(
      'unsupported_provider',
      `There is no provider of this name. Configured are: ${catalog.providers().join(', ')}.`,
    );
  return modelsOfProvider(catalog, provider, principal);
}

const CONFIG_FILE = path.join(PACKAGE_ROOT, 'dist', 'assets', 'config.html');

/** Nothing but this origin: the viewer needs inline styles, and `connect-src` lets it try requests out. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate API</title>
<script type="module" src="/docs/viewer.js"></script>
</head>
<body>
<rapi-doc spec-url="/openapi.json" render-style="read" theme="light" show-header="false" load-fonts="false" allow-server-selection="false" allow-authentication="true"></rapi-doc>
</body>
</html>
`;

/** `/docs`: the OpenAPI document in RapiDoc, and the keys of the configuration; from this machine only. */
function docsRoutes(): readonly Route[] {
  const page = (path: string, summary: string, contentType: string, read: () => string | Readable): Route => ({
    method: 'GET',
    path,
    summary,
    auth: 'none',
    responses: { 200: { description: 'OK.', contentType } },
    handler(ctx) {
      ctx.set({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' });
      if (contentType === 'text/javascript') ctx.set('cache-control', 'max-age=3600');
      ctx.type = `${contentType}; charset=utf-8`;
      ctx.body = read();
    },
  });
  return [
    page('/docs', 'The API as a page', 'text/html', () => PAGE),
    page('/docs/viewer.js', 'The script of /docs', 'text/javascript', () => createReadStream(viewerFile())),
    // The build makes it; a gateway that runs from its sources has none.
    ...(existsSync(CONFIG_FILE)
      ? [page('/docs/config', 'The keys of the configuration', 'text/html', () => createReadStream(CONFIG_FILE))]
      : []),
  ];
}

/** The viewer's script: copied into `dist/assets` by the build, in `node_modules` when run from source. */
function viewerFile(): string {
  const built = path.join(PACKAGE_ROOT, 'dist', 'assets', 'rapidoc-min.js');
  return existsSync(built) ? built : createRequire(import.meta.url).resolve('rapidoc/dist/rapidoc-min.js');
}
