const MAX_LENGTH = 80;

/**
 * At most `max` candidates that resemble `word`, best first; none when nothing is near. Case, `-`, `_` and spaces do
 * not count, a candidate that begins with the word (or the other way round) counts as near. Words over 80 characters
 * resemble nothing, so that hostile input costs nothing.
 */
export function nearest(word: string, candidates: Iterable<string>, max = 3): readonly string[] {
  const wanted = normalise(word);
  if (wanted === '' || word.length > MAX_LENGTH) return [];
  const scored: { readonly candidate: string; readonly score: number }[] = [];
  for (const candidate of new Set(candidates)) {
    const score = rate(wanted, normalise(candidate));
    if (score !== undefined) scored.push({ candidate, score });
  }
  return scored
    .sort((a, b) => a.score - b.score || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, max)
    .map(({ candidate }) => candidate);
}

/** `Did you mean "a" or "b"?` for the near candidates, or undefined. */
export function didYouMean(word: string, candidates: Iterable<string>, max = 3): string | undefined {
  const near = nearest(word, candidates, max).map((name) => `"${name}"`);
  if (near.length === 0) return undefined;
  const last = near.pop();
  return `Did you mean ${near.length > 0 ? `${near.join(', ')} or ${last}` : last}?`;
}

function normalise(word: string): string {
  return word.toLowerCase().replace(/[-_\s]/g, '');
}

/** 0 is the same word; undefined is not near. */
function rate(wanted: string, candidate: string): number | undefined {
  if (candidate === '' || candidate.length > MAX_LENGTH) return undefined;
  const allowed = Math.max(1, Math.floor(Math.min(wanted.length, candidate.length) / 3));
  const typos = distance(wanted, candidate);
  if (typos <= allowed) return typos;
  const isPrefix = wanted.length >= 3 && (candidate.startsWith(wanted) || wanted.startsWith(candidate));
  return isPrefix && candidate.length >= 3
    ? allowed + Math.abs(candidate.length - wanted.length) / MAX_LENGTH
    : undefined;
}

/** Damerau-Levenshtein (optimal string alignment): insertions, deletions, substitutions, swapped neighbours. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
