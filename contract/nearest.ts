const MAX_LENGTH = 80;

/**
 * Returns at most `max` candidates that resemble `word`, best first. Ignores case, `-`, `_` and spaces. A candidate that starts
 * with the word, or the reverse, counts as similar. Words over 80 characters match nothing, so hostile input is cheap.
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

/** Returns `Did you mean "a" or "b"?` for similar candidates, or undefined. */
export function didYouMean(word: string, candidates: Iterable<string>, max = 3): string | undefined {
  const near = nearest(word, candidates, max).map((name) => `"${name}"`);
  if (near.length === 0) return undefined;
  const last = near.pop();
  return `Did you mean ${near.length > 0 ? `${near.join(', ')} or ${last}` : last}?`;
}

function normalise(word: string): string {
  return word.toLowerCase().replace(/[-_\s]/g, '');
}

/** Returns a distance: 0 for the same word, undefined for no resemblance. */
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

/** Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions, transpositions. */
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
