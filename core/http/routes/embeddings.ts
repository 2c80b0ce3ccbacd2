import type { EmbeddingAnswer } from '../../calls/embed.ts';
import type { CallInit } from '../../calls/live-call.ts';
import type { Ask } from '../../calls/run.ts';
import { type Aliases, type Catalog, requestedTargets, targetOfPath } from '../../calls/targets.ts';
import type { EmbeddingRequest } from '../../contract/chat.ts';
import type { Route, RouteContext } from '../../contract/plugin.ts';
import { EMBEDDING_REQUEST, EMBEDDING_RESPONSE } from '../schemas.ts';
import { sendAnswer } from './answer.ts';
import { callInit } from './chat.ts';

export interface EmbeddingRouteDeps {
  readonly catalog: Catalog;
  readonly aliases: Aliases;
  embed(ask: Ask<'embeddings'>, init: CallInit): Promise<EmbeddingAnswer>;
}

/** Embeddings on both surfaces. */
export function embeddingRoutes(deps: EmbeddingRouteDeps): readonly Route[] {
  const route = (
    path: string,
    summary: string,
    find: (ctx: RouteContext, model: string) => Pick<Ask<'embeddings'>, 'targets' | 'requested'>,
  ): Route => ({
    method: 'POST',
    path,
    summary,
    auth: ['key'],
    body: EMBEDDING_REQUEST,
    responses: {
      200: {
        description: 'One embedding for each input, as numbers or as base64 of little-endian float32.',
        schema: EMBEDDING_RESPONSE,
      },
    },
    async handler(ctx) {
      const request = ctx.state.body as EmbeddingRequest;
      const answer = await deps.embed(
        { operation: 'embeddings', request, stream: false, ...find(ctx, request.model) },
        callInit(ctx),
      );
      sendAnswer(ctx, answer, JSON.stringify(answer.response));
    },
  });
  return [
    route('/api/core/:provider/embeddings', 'Embeddings by one provider', (ctx, model) => ({
      targets: [targetOfPath(deps.catalog, ctx.params['provider'] ?? '', model)],
    })),
    route('/v1/embeddings', 'Embeddings; the model is `provider/model` or an alias', (_ctx, model) =>
      requestedTargets(deps, model),
    ),
  ];
}
