/** How many letters a part has; of Hangul, syllables. */
const LETTERS = 4;
const SYLLABLES = 2;

const HANGUL = /^\p{sc=Hangul}+$/u;

/**
 * The parts of a word: all runs of a few letters in it; a shorter word has none. Words that are written together
 * (Krankenversicherungsbeitrag), that carry particles (학교에서) or that end in another way (chevaux) share parts with the word that is
 * looked for. No dictionary is needed, and no knowledge of the language.
 */
export function partsOf(word: string): readonly string[] {
  const letters = [...word];
  const length = HANGUL.test(word) ? SYLLABLES : LETTERS;
  return Array.from({ length: Math.max(0, letters.length - length + 1) }, (_, at) =>
    letters.slice(at, at + length).join(''),
  );
}
