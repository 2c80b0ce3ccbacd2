import type { Library, Passage } from './library.ts';

export interface Hit extends Passage {
  /** 0 to 1: 1 is first in every ranking. Comparable within one answer only. */
  readonly score: number;
}

/** Reciprocal rank fusion's usual constant: how fast a rank loses weight. */
const RRF_K = 60;

/** How many of each ranking are fused. */
const DEPTH = 100;

/** The most words of a query that count. */
const MAX_WORDS = 64;

/** An FTS5 query of a caller's words: quoted, so that nothing in them is syntax, and joined by OR. Undefined without words. */
export function toMatch(query: string): string | undefined {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])].slice(0, MAX_WORDS);
  return words.length === 0 ? undefined : words.map((word) => `"${word}"`).join(' OR ');
}

/** Searches by words, and by meaning where the query has a vector; the two rankings are fused. */
export function searchPassages(
  library: Library,
  query: string,
  limit: number,
  nearest: ((depth: number) => readonly number[]) | undefined,
): readonly Hit[] {
  const match = toMatch(query);
  const rankings = [...(match ? [library.searchWords(match, DEPTH)] : []), ...(nearest ? [nearest(DEPTH)] : [])];
  return fuseRankings(rankings)
    .slice(0, limit)
    .flatMap(({ id, score }) => {
      const passage = library.passage(id);
      return passage ? [{ ...passage, score }] : [];
    });
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
export interface VectorTable {
  readonly revision: number;
  /** Row ids by cosine to a vector of unit length, best first. */
  nearest(query: Float32Array, depth: number): readonly number[];
}

export function createVectorTable(library: Library): VectorTable {
  const revision = library.revision();
  const rows = library.vectors();
  const dimensions = rows[0]?.vector.length ?? 0;
  const usable = rows.filter(({ vector }) => vector.length === dimensions);
  const flat = new Float32Array(usable.length * dimensions);
  for (const [at, { vector }] of usable.entries()) flat.set(vector, at * dimensions);
  const ids = usable.map(({ id }) => id);
  return {
    revision,
    nearest(query, depth) {
      if (query.length !== dimensions) return [];
      const scored = ids.map((id, row) => ({ id, score: dot(flat, row * dimensions, query) }));
      return scored
        .sort((a, b) => b.score - a.score)
        .slice(0, depth)
        .map(({ id }) => id);
    },
  };
}

function dot(flat: Float32Array, offset: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at += 1) sum += (flat[offset + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

/** A vector of length 1, so that a dot product is a cosine. */
export function normalise(vector: ArrayLike<number>): Float32Array {
  const floats = Float32Array.from(vector);
  const length = Math.sqrt(floats.reduce((sum, value) => sum + value * value, 0)) || 1;
  return floats.map((value) => value / length);
}
