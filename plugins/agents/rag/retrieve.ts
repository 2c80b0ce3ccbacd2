import { type CallContext, isGatewayError, type PluginApi } from '../../../core/index.ts';
import type { Access, Scope } from './access.ts';
import type { Embedder } from './embedder.ts';
import type { IndexReader } from './index-reader.ts';
import { type Hit, searchPassages } from './search.ts';
import { createVectorTables } from './vector-table.ts';

export interface Found {
  readonly hits: readonly Hit[];
  /** How it was searched: by words and vectors, or by words alone. */
  readonly mode: 'hybrid' | 'words';
}

export type Retrieve = (query: string, limit: number, caller: CallContext) => Promise<Found>;

/** Searches the index for a caller; by words alone when the query cannot be embedded in time, or nothing is embedded yet. */
export function createRetrieve(
  reader: IndexReader,
  access: Access,
  embedder: Embedder | undefined,
  { log }: Pick<PluginApi, 'log'>,
): Retrieve {
  const byWords = (query: string, limit: number, scope: Scope): Found => ({
    hits: searchPassages(reader, query, limit, scope, undefined),
    mode: 'words',
  });
  if (!embedder) return async (query, limit, { principal }) => byWords(query, limit, await access.scopeOf(principal));
  const tables = createVectorTables(reader, embedder.model);
  return async (query, limit, caller) => {
    const scope = await access.scopeOf(caller.principal);
    const table = await tables();
    if (!table.hasAny(scope.folders)) return byWords(query, limit, scope);
    try {
      const vector = await embedder.embedQuery(query, caller);
      const nearest = (depth: number) => table.nearest(vector, depth, scope.folders);
      return { hits: searchPassages(reader, query, limit, scope, nearest), mode: 'hybrid' };
    } catch (error) {
      caller.signal?.throwIfAborted();
      const code = isGatewayError(error) ? error.code : 'provider_timeout';
      log.warn({ req_id: caller.requestId, code }, 'a query could not be embedded: searched by words alone');
      return byWords(query, limit, scope);
    }
  };
}
