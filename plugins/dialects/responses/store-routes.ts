import { GatewayError, type PluginApi } from '../../../core/index.ts';
import { RESPONSES_RESPONSE } from './schema.ts';
import type { ResponseStore } from './store.ts';

/** The routes by which callers read and delete what `store: on` keeps of theirs. */
export function addStoreRoutes(api: Pick<PluginApi, 'route'>, store: ResponseStore): void {
  const path = '/v1/responses/:id';
  api.route({
    ...{ method: 'GET', path, auth: ['key'], summary: 'A response of the caller that is kept' },
    responses: { 200: { description: 'The response.', schema: RESPONSES_RESPONSE } },
    async handler(ctx) {
      const kept = await store.get(ctx.state.principal, ctx.params['id'] ?? '');
      if (!kept) throw notFound();
      ctx.body = kept.response;
    },
  });
  api.route({
    ...{ method: 'DELETE', path, auth: ['key'], summary: 'Delete a response of the caller' },
    responses: { 200: { description: 'It is deleted.', schema: DELETED } },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      if (!(await store.remove(ctx.state.principal, id))) throw notFound();
      ctx.body = { id, object: 'response', deleted: true };
    },
  });
}

const DELETED = Object.freeze({
  type: 'object',
  required: ['id', 'object', 'deleted'],
  properties: { id: { type: 'string' }, object: { const: 'response' }, deleted: { const: true } },
});

function notFound(): GatewayError {
  return new GatewayError(
    'not_found',
    'No response with this id is kept for you. It may have been deleted, or be too old.',
  );
}
