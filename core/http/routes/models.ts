import { allModels, listModels, modelsOfProvider } from '../../calls/model-lists.ts';
import type { Aliases, Catalog } from '../../calls/targets.ts';
import type { Principal } from '../../contract/call.ts';
import type { DialectDefinition, DialectModels } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Schema } from '../../contract/json.ts';
import type { ModelRow, Route, RouteContext } from '../../contract/plugin.ts';
import { callOwned } from '../../plugins/attribution.ts';
import type { Owned } from '../../plugins/registry.ts';
import { dialectOfList, MODELS_PATH } from '../dialect-prefixes.ts';

const MODEL_LIST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ModelList',
  type: 'object',
  required: ['object', 'data'],
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: { type: 'object', required: ['id', 'object', 'created', 'owned_by'] } },
  },
});

export interface ModelRouteDeps {
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
export function modelRoutes(deps: ModelRouteDeps): readonly Route[] {
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
