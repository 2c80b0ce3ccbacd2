import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CallContext, isGatewayError, type PluginApi } from '../../../contract/index.ts';
import type { Access, Scope } from './access.ts';
import type { Embedder } from './embedder.ts';
import type { IndexReader, Passage, VectorRow } from './index-reader.ts';
import { type Likeness, likeness, type QueryWord, toComparedText, toQueryWords } from './terms.ts';

interface Found {
  readonly hits: readonly Hit[];
  /** Search mode: words and vectors, or words alone. */
  readonly mode: 'hybrid' | 'words';
}

export type Retrieve = (query: string, limit: number, caller: CallContext) => Promise<Found>;

/** Searches the index for a caller; by words alone if the query is not embedded in time, or no passage is. */
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
      log.warn({ request_id: caller.requestId, code }, 'query could not be embedded; searched by words only');
      return byWords(query, limit, scope);
    }
  };
}

export interface Hit extends Passage {
  /**
   * 0 to 1: share of the query that matches (see {@link coverage}), or its cosine if higher. Never more than the
   * previous hit's.
   */
  readonly score: number;
}

/** Usual constant of reciprocal rank fusion: the rate at which a rank loses weight. */
const RRF_K = 60;

/** Hits of each ranking that are fused. */
const DEPTH = 100;

/** Passage by its row id, with the cosine of its vector to the query's. */
interface Near {
  readonly id: number;
  readonly cosine: number;
}

/** Searches a scope by words, and by meaning if the query has a vector; the two rankings are fused. */
export function searchPassages(
  reader: IndexReader,
  query: string,
  limit: number,
  scope: Scope,
  nearest: ((depth: number) => readonly Near[]) | undefined,
): readonly Hit[] {
  const words = toQueryWords(query);
  const { hits: byWords, weights } = reader.searchWords(words, scope.folders, DEPTH);
  const whole = new Map(byWords.map((hit) => [hit.id, hit.whole]));
  const near = (nearest?.(DEPTH) ?? []).filter(({ cosine }) => cosine > 0);
  const cosines = new Map(near.map(({ id, cosine }) => [id, cosine]));
  const found: Hit[] = [];
  const less: Hit[] = [];
  for (const id of fuseRankings([byWords, near].map((ranking) => ranking.map((one) => one.id)))) {
    if (found.length >= limit) break;
    const passage = reader.passage(id);
    // Deleted since the vectors were loaded, or indexed under earlier rules.
    if (!passage || !scope.includes(passage.source)) continue;
    const { share, isLike } = coverage(words, weights, whole.get(id), passage);
    const cosine = cosines.get(id) ?? 0;
    (isLike || cosine > 0 ? found : less).push({ ...passage, score: Math.max(share, cosine) });
  }
  // Passages with less than half of a word come after better ones, and never alone.
  return found.length === 0 ? [] : withFallingScores([...found, ...less].slice(0, limit));
}

/** Limits a passage's score to that of the previous passage. */
function withFallingScores(hits: readonly Hit[]): readonly Hit[] {
  let last = 1;
  return hits.map((hit) => {
    last = Math.min(last, Math.round(hit.score * 1e6) / 1e6);
    return { ...hit, score: last };
  });
}

/** Highest value of a query word for which the passage has only similar words. */
const LIKE = 0.9;

/** Least share of a query of several words in a passage that has none of them, only similar ones. */
const MIN_SIMILAR = Object.freeze({ words: 3, share: 0.3 });

/**
 * Share of the query's words in a passage, weighted by rarity; 1 only if it contains every word exactly. Also whether
 * it contains any of them, or a similar one.
 */
function coverage(
  words: readonly QueryWord[],
  weights: readonly number[],
  whole: ReadonlySet<number> = new Set(),
  { title, location, text }: Passage,
): Likeness {
  if (words.length === 0 || whole.size === words.length)
    return { share: Math.min(1, whole.size), isLike: whole.size > 0 };
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const compared = toComparedText([title, ...(location.headings ?? []), text].join('\n'));
  let covered = 0;
  let isAny = whole.size > 0;
  for (const [at, { word }] of words.entries()) {
    const { share, isLike } = whole.has(at) ? { share: 1 / LIKE, isLike: true } : likeness(word, compared);
    covered += (weights[at] ?? 0) * LIKE * share;
    isAny ||= isLike;
  }
  const share = covered / all;
  return { share, isLike: isAny && (whole.size > 0 || words.length < MIN_SIMILAR.words || share >= MIN_SIMILAR.share) };
}

/** Reciprocal rank fusion: the ids of several rankings, best first. */
export function fuseRankings(rankings: readonly (readonly number[])[]): readonly number[] {
  const sums = new Map<number, number>();
  for (const ranking of rankings)
    for (const [rank, id] of ranking.entries()) sums.set(id, (sums.get(id) ?? 0) + 1 / (RRF_K + rank + 1));
  return [...sums].sort(([a, x], [b, y]) => y - x || a - b).map(([id]) => id);
}

/** All vectors of one index revision, in one array for an exact search. */
interface VectorTable {
  readonly revision: number;
  /** True if any of these folders has a vector. */
  hasAny(folders: ReadonlySet<string>): boolean;
  /** Passages of these folders by cosine to a vector of unit length, best first. */
  nearest(query: Float32Array, depth: number, folders: ReadonlySet<string>): readonly Near[];
}

/** Rows read at once; requests are served in between. */
const SLICE = 500;

/** Reads all vectors of a model. Omits vectors that differ in length from the newest one. */
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
      return firstRows(scores, depth).map((at) => ({ id: ids[searched[at] ?? 0] ?? 0, cosine: scores[at] ?? 0 }));
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

/** Rows with the highest scores, best first; equal ones in order. */
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

/** A table is reloaded after a change of the index, but at intervals of at least ten times its load time. */
const REST_FACTOR = 10;

/** Newest table, loaded on demand. */
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
