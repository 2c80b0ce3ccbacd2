import { type Aliases, allModels, type ModelList, modelsOfProvider } from '../../calls/targets.ts';
import type { Principal } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Schema } from '../../contract/json.ts';
import type { ModelRow, Route, RouteContext } from '../../contract/plugin.ts';

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
  readonly catalog: ModelList;
  readonly aliases: Aliases;
  /** Unix seconds: when this gateway started, since vendors' lists tell no creation time. */
  readonly created: number;
}

/** The model lists of both surfaces: only what the caller's key may use and what can be called. */
export function modelRoutes(deps: ModelRouteDeps): readonly Route[] {
  const entry = ({ id, owned_by }: ModelRow) => ({ id, object: 'model', created: deps.created, owned_by });
  const list = (rows: readonly ModelRow[]) => ({ object: 'list', data: rows.map(entry) });
  const one = (rows: readonly ModelRow[], id: string) => {
    const row = rows.find((candidate) => candidate.id === id);
    if (!row)
      throw new GatewayError('unsupported_model', 'There is no model of this name that this key may use.', {
        param: 'model',
      });
    return entry(row);
  };
  const ofPath = (ctx: RouteContext) => providerModels(deps, ctx.params['provider'] ?? '', ctx.state.principal);
  const ofAll = (ctx: RouteContext) => allModels(deps, ctx.state.principal);
  const idOf = (ctx: RouteContext) => ctx.params['id'] ?? '';
  const get = (path: string, summary: string, read: (ctx: RouteContext) => unknown, isList: boolean): Route => ({
    method: 'GET',
    path,
    summary,
    auth: ['key'],
    responses: { 200: isList ? { description: 'The models.', schema: MODEL_LIST } : { description: 'The model.' } },
    handler(ctx) {
      ctx.body = read(ctx);
    },
  });
  return [
    get('/api/core/:provider/models', 'Models of one provider', (ctx) => list(ofPath(ctx)), true),
    get(
      '/api/core/:provider/models/*id',
      'One model of one provider; its id may hold slashes',
      (ctx) => one(ofPath(ctx), idOf(ctx)),
      false,
    ),
    get('/v1/models', 'All models as `provider/model`, and the aliases', (ctx) => list(ofAll(ctx)), true),
    get('/v1/models/*id', 'One model or alias', (ctx) => one(ofAll(ctx), idOf(ctx)), false),
  ];
}

function providerModels({ catalog }: ModelRouteDeps, provider: string, principal: Principal): readonly ModelRow[] {
  if (!catalog.has(provider))
    throw new GatewayError(
      'unsupported_provider',
      `There is no provider of this name. Configured are: ${catalog.providers().join(', ')}.`,
    );
  return modelsOfProvider(catalog, provider, principal);
}
