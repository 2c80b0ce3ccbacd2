/** Scripts that put no space between words: their characters are indexed one by one, and looked up in pairs. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const EACH_UNSPACED = new RegExp(UNSPACED, 'gu');

/** The most words of a query that count. */
const MAX_WORDS = 64;

/** Words that nearly every English passage has: they find nothing, and cost a walk over all of it. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  'a an and are as at be but by can do does for from has have how i if in into is it its of on or that the their there these they this to was were what when where which who why will with you your'.split(
    ' ',
  ),
);

/** A text as it goes into the full-text index. */
export function indexText(text: string): string {
  return text.normalize('NFKC').replace(EACH_UNSPACED, ' $& ');
}

/**
 * An FTS5 query of a caller's words: each quoted, so that nothing in them is syntax, and joined by OR. Undefined without
 * words. Common English words count only where there are no others.
 */
export function toMatch(query: string): string | undefined {
  const words =
    query
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  const terms = new Set((telling.length > 0 ? telling : words).flatMap(toTerms));
  return terms.size === 0 ? undefined : [...terms].slice(0, MAX_WORDS).join(' OR ');
}

/** A word as a term; a run of unspaced characters as phrases of two. */
function toTerms(word: string): readonly string[] {
  if (!UNSPACED.test(word)) return [`"${word}"`];
  return [...indexText(word).matchAll(/\S+/gu)]
    .map(([part]) => part)
    .flatMap((part, at, parts) => {
      const next = parts[at + 1];
      if (!UNSPACED.test(part)) return [`"${part}"`];
      if (next !== undefined && UNSPACED.test(next)) return [`"${part} ${next}"`];
      return parts.length === 1 ? [`"${part}"`] : [];
    });
}
