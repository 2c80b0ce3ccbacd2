import type { Language } from './language.ts';
import { normalise } from './normalise.ts';

/**
 * Vocabulary of a language. `concepts` contains entries separated by commas. An entry is one or more words with this
 * syntax:
 * - `stem*`, `*end` and `*middle*`: any word with that part
 * - `#2..8`: a number in that range
 * - `..`: up to three words
 * - `a/b`: either word; `[a]`: an optional word
 * - `^` before an entry: only at the start of a clause
 */
export interface Lexicon {
  readonly language: Language;
  readonly concepts: Readonly<Record<string, string>>;
  /** Chat abbreviations: `short=word` or `short=two_words`, separated by spaces. */
  readonly aliases: string;
  /** Words similar to those of the lexicon that are never read as a misspelling. */
  readonly plain: string;
}

/** Element of a phrase. */
export type Atom =
  | { readonly kind: 'word' | 'prefix' | 'suffix' | 'part'; readonly text: string }
  | { readonly kind: 'number'; readonly ranges: readonly Range[] }
  | { readonly kind: 'gap' };

export type Range = readonly [low: number, high: number];

export interface Phrase {
  readonly concept: string;
  /** Only at the start of a clause. */
  readonly isFirst: boolean;
  readonly atoms: readonly Atom[];
}

/** Maximum words matched by `..`. */
export const GAP_WORDS = 3;

/** Parses `20..54` or `3..`. */
export function parseRange(text: string): Range {
  const [low = '', high = ''] = text.split('..');
  const from = low === '' ? 0 : Number(low);
  const to = text.includes('..') ? (high === '' ? Number.POSITIVE_INFINITY : Number(high)) : from;
  if (Number.isNaN(from) || Number.isNaN(to)) throw new TypeError(`"${text}" is not a range of numbers`);
  return [from, to];
}

/** Expanded entries of one concept of a lexicon. */
export function parsePhrases({ language, concepts }: Lexicon, concept: string): readonly Phrase[] {
  return (concepts[concept] ?? '')
    .split(',')
    .map((entry) => entry.replaceAll('-', ' ').trim())
    .filter((entry) => entry !== '')
    .flatMap((entry) => expand(entry.split(/\s+/)))
    .map((words) => ({
      concept,
      isFirst: words[0] === '^',
      atoms: words.filter((word) => word !== '^').flatMap((word) => parseAtoms(word, language)),
    }));
}

/** Lists all combinations of alternatives and optional words of an entry. */
function expand(words: readonly string[]): readonly (readonly string[])[] {
  let ways: readonly (readonly string[])[] = [[]];
  for (const word of words) {
    const isOptional = word.startsWith('[');
    const choices = word.startsWith('#') ? [word] : (isOptional ? word.slice(1, -1) : word).split('/');
    ways = ways.flatMap((way) => [...(isOptional ? [way] : []), ...choices.map((choice) => [...way, choice])]);
  }
  return ways;
}

function parseAtoms(word: string, language: Language): readonly Atom[] {
  if (word === '..') return [{ kind: 'gap' }];
  if (word.startsWith('#')) return [{ kind: 'number', ranges: word.slice(1).split('|').map(parseRange) }];
  const isJoined = language === 'en' || language === 'de';
  const text = normalise(word).replaceAll('*', '');
  const texts = isJoined ? [text.replaceAll("'", '')] : text.split("'").filter((part) => part !== '');
  return texts.map((part, index) => {
    const startsOpen = index === 0 && word.startsWith('*');
    const endsOpen = index === texts.length - 1 && word.endsWith('*');
    const kind = startsOpen ? (endsOpen ? 'part' : 'suffix') : endsOpen ? 'prefix' : 'word';
    return { kind, text: part };
  });
}
