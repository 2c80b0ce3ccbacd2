import type { Scope } from './access.ts';
import type { IndexReader, Passage } from './index-reader.ts';
import { toQueryWords } from './terms.ts';

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
