import type { Language } from './language.ts';

type Respelling = readonly (readonly [pattern: RegExp, by: string])[];

/** Spellings that sound alike in a language are written alike: what people mix up when they type as they speak. */
const RESPELLINGS: Readonly<Record<Language, Respelling>> = Object.freeze({
  en: [
    [/ph/g, 'f'],
    [/ck|q|c(?![eiyh])/g, 'k'],
    [/c(?=[eiy])/g, 's'],
    [/y/g, 'i'],
    [/z/g, 's'],
    [/ea|ie|ei/g, 'e'],
  ],
  de: [
    [/ae/g, 'a'],
    [/oe/g, 'o'],
    [/ue/g, 'u'],
    [/ph|v/g, 'f'],
    [/th|dt|d(?=$|[^aeiouy])/g, 't'],
    [/ck|c(?!h)|q/g, 'k'],
    [/tz/g, 'z'],
    [/y/g, 'i'],
    [/ie/g, 'i'],
    [/(?<=[aeiou])h(?=[^aeiou]|$)/g, ''],
  ],
  fr: [
    [/ph/g, 'f'],
    [/qu|q|c(?![eiyh])|k/g, 'k'],
    [/c(?=[eiy])/g, 's'],
    [/eau|au/g, 'o'],
    [/ai|ei/g, 'e'],
    [/y/g, 'i'],
    [/e[mn](?=[^aeiou])/g, 'an'],
    [/(?<=[aeiou])m(?=[bp])/g, 'n'],
    [/(?<!c)h/g, ''],
    [/(?:er|ez|ent)$/, 'e'],
    [/(?<=.{3})(?:es?|[stdxzp])$/, ''],
    [/z/g, 's'],
  ],
  es: [
    [/ll/g, 'i'],
    [/v/g, 'b'],
    [/qu|k|q|c(?![eih])/g, 'k'],
    [/c(?=[ei])|z|x/g, 's'],
    [/(?<!c)h/g, ''],
    [/g(?=[ei])/g, 'j'],
    [/y/g, 'i'],
    [/m(?=[bp])/g, 'n'],
    [/(?<=ad)o$/g, 'o'],
  ],
  it: [
    [/ch|qu|k|q|c(?![ei])/g, 'k'],
    [/h/g, ''],
    [/j|y/g, 'i'],
    [/gli/g, 'li'],
    [/m(?=[bp])/g, 'n'],
  ],
});

/** How a word sounds, roughly: words with one key are taken for the same word. */
export function soundOf(word: string, language: Language): string {
  let key = word;
  for (const [pattern, by] of RESPELLINGS[language]) key = key.replace(pattern, by);
  return key.replace(/(.)\1+/g, '$1');
}

/** How many slips are forgiven in a word of this length. */
export function slipsAllowed(length: number): 0 | 1 | 2 {
  return length >= 9 ? 2 : length >= 5 ? 1 : 0;
}

/** Which letters a word has, as bits: a quick way to see that two words are too far apart. */
export function lettersOf(word: string): number {
  let mask = 0;
  for (let index = 0; index < word.length; index += 1) mask |= 1 << ((word.charCodeAt(index) - 97) % 32);
  return mask;
}

/** How many bits are set. */
export function countBits(mask: number): number {
  let bits = mask - ((mask >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

/** The two rows before the current one, reused: words are short and this runs often. */
const rows = [new Uint8Array(64), new Uint8Array(64), new Uint8Array(64)] as const;

/**
 * The Damerau-Levenshtein distance (one missing, added, changed or swapped letter each counts one), or `limit + 1` when it
 * is greater than `limit`. With `prefix` what follows in `text` after the closest beginning costs nothing.
 */
export function distance(word: string, text: string, limit: number, prefix = false): number {
  const { length } = text;
  if (length > 60 || word.length > 60) return limit + 1;
  let [older, last, row]: readonly [Uint8Array, Uint8Array, Uint8Array] = rows;
  for (let column = 0; column <= length; column += 1) last[column] = column;
  for (let line = 1; line <= word.length; line += 1) {
    row[0] = line;
    let best = line;
    for (let column = 1; column <= length; column += 1) {
      const isSame = word[line - 1] === text[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (row[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwap =
        line > 1 && column > 1 && word[line - 1] === text[column - 2] && word[line - 2] === text[column - 1];
      if (isSwap) cost = Math.min(cost, (older[column - 2] ?? 0) + 1);
      row[column] = cost;
      if (cost < best) best = cost;
    }
    if (best > limit) return limit + 1;
    [older, last, row] = [last, row, older];
  }
  if (!prefix) return last[length] ?? limit + 1;
  let best = limit + 1;
  for (let column = 1; column <= length; column += 1) best = Math.min(best, last[column] ?? best);
  return best;
}
