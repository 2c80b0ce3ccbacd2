import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CallContext, isGatewayError, type PluginApi } from '../../../core/index.ts';
import type { Access, Scope } from './access.ts';
import type { Embedder } from './embedder.ts';
import type { IndexReader, Passage, VectorRow } from './index-reader.ts';
import { toQueryWords } from './terms.ts';

interface Found {
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
      log.warn({ request_id: caller.requestId, code }, 'a query could not be embedded: searched by words alone');
      return byWords(query, limit, scope);
    }
  };
}

export interface Hit extends Passage {
  /** 0 to 1: 1 is first in every ranking that found anything. Comparable within one response only. */
  readonly score: number;
}

/** Reciprocal rank fusion's usual constant: how fast a rank loses weight. */
const RRF_K = 60;

/** How many of each ranking are fused. */
const DEPTH = 100;

/** Searches a scope by words, and by meaning where the query has a vector; the two rankings are fused. */
export function searchPassages(
  reader: IndexReader,
  query: string,
  limit: number,
  scope: Scope,
  nearest: ((depth: number) => readonly number[]) | undefined,
): readonly Hit[] {
  const byWords = reader.searchWords(toQueryWords(query), scope.folders, DEPTH);
  const rankings = [byWords, nearest?.(DEPTH) ?? []].filter(({ length }) => length > 0);
  const hits: Hit[] = [];
  for (const { id, score } of fuseRankings(rankings)) {
    if (hits.length >= limit) break;
    const passage = reader.passage(id);
    // Gone since the vectors were loaded; or indexed under other rules than those of now.
    if (passage && scope.includes(passage.source)) hits.push({ ...passage, score });
  }
  return hits;
}

/** Reciprocal rank fusion of rankings of ids, scaled so that the first of all rankings scores 1. */
export function fuseRankings(
  rankings: readonly (readonly number[])[],
): readonly { readonly id: number; readonly score: number }[] {
  const sums = new Map<number, number>();
  for (const ranking of rankings)
    for (const [rank, id] of ranking.entries()) sums.set(id, (sums.get(id) ?? 0) + 1 / (RRF_K + rank + 1));
  const best = Math.max(rankings.length, 1) / (RRF_K + 1);
  return [...sums]
    .map(([id, sum]) => ({ id, score: Math.round((sum / best) * 1e6) / 1e6 }))
    .sort((a, b) => b.score - a.score || a.id - b.id);
}

/** All vectors of one revision of the index, laid out in one array for an exact search. */
interface VectorTable {
  readonly revision: number;
  /** Whether any of these folders has a vector. */
  hasAny(folders: ReadonlySet<string>): boolean;
  /** Row ids of some folders by cosine to a vector of unit length, best first. */
  nearest(query: Float32Array, depth: number, folders: ReadonlySet<string>): readonly number[];
}

/** Rows that are read at once; requests are served between. */
const SLICE = 500;

/** Reads all vectors of a model. Vectors of another length than the newest one's are left out. */
export async function loadVectorTable(reader: IndexReader, model: string): Promise<VectorTable> {
  const revision = reader.revision();
  const parts: VectorRow[] = [];
  for (let above = 0; ; ) {
    const rows = reader.vectors(model, above, SLICE);
    parts.push(...rows);
    const last = rows.at(-1);
    if (!last || rows.length < SLICE) break;
    above = last.id;
    await nextTurn();
  }
  return createVectorTable(revision, parts);
}

export function createVectorTable(revision: number, rows: readonly VectorRow[]): VectorTable {
  const dimensions = rows.at(-1)?.vector.length ?? 0;
  const usable = rows.filter(({ vector }) => vector.length === dimensions);
  const flat = new Float32Array(usable.length * dimensions);
  for (const [at, { vector }] of usable.entries()) flat.set(vector, at * dimensions);
  const ids = usable.map(({ id }) => id);
  const rowsOf = groupRows(usable);
  return {
    revision,
    hasAny: (folders) => [...folders].some((folder) => rowsOf.has(folder)),
    nearest(query, depth, folders) {
      if (query.length !== dimensions) return [];
      const searched = [...folders].flatMap((folder) => rowsOf.get(folder) ?? []).sort((a, b) => a - b);
      const scores = new Float32Array(searched.length);
      for (const [at, row] of searched.entries()) scores[at] = dot(flat, row * dimensions, query);
      return firstRows(scores, depth).map((at) => ids[searched[at] ?? 0] ?? 0);
    },
  };
}

function groupRows(rows: readonly VectorRow[]): ReadonlyMap<string, readonly number[]> {
  const groups = new Map<string, number[]>();
  for (const [row, { folder }] of rows.entries()) {
    const group = groups.get(folder) ?? [];
    groups.set(folder, group);
    group.push(row);
  }
  return groups;
}

/** The rows of the highest scores, best first; equal ones in their order. */
function firstRows(scores: Float32Array, depth: number): readonly number[] {
  const floor = scores.length > depth ? (scores.toSorted()[scores.length - depth] ?? 0) : Number.NEGATIVE_INFINITY;
  const rows: number[] = [];
  for (const [row, score] of scores.entries()) if (score >= floor) rows.push(row);
  return rows.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, depth);
}

function dot(flat: Float32Array, offset: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at += 1) sum += (flat[offset + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

/** A table loads again when the index has changed, but not more often than ten times the time it took. */
const REST_FACTOR = 10;

/** The newest table, loaded when it is needed. */
export function createVectorTables(reader: IndexReader, model: string): () => Promise<VectorTable> {
  let table: VectorTable | undefined;
  let loading: Promise<VectorTable> | undefined;
  let restUntil = 0;
  const load = async (): Promise<VectorTable> => {
    const started = performance.now();
    try {
      table = await loadVectorTable(reader, model);
      restUntil = performance.now() + (performance.now() - started) * REST_FACTOR;
      return table;
    } finally {
      loading = undefined;
    }
  };
  return async () => {
    if (table && (table.revision === reader.revision() || performance.now() < restUntil)) return table;
    loading ??= load();
    return loading;
  };
}
