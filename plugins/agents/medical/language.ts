/** Languages that notices and rules are written in; others get English notices and answers in their own language. */
export const LANGUAGES = Object.freeze(['en', 'de', 'fr', 'es'] as const);
export type Language = (typeof LANGUAGES)[number];

/** A text in every language of {@link LANGUAGES}. */
export type Texts = Readonly<Record<Language, string>>;

/** Words that are frequent in one of the languages and rare in the others, after {@link plainText}. */
const WORDS: Readonly<Record<Language, ReadonlySet<string>>> = Object.freeze({
  en: new Set(
    'the and my is have has had with since what should not feel feeling pain when you this am are was it for after been can i'.split(
      ' ',
    ),
  ),
  de: new Set(
    'ich und der die das ist habe hat mit seit was nicht mein meine meinem bin ein eine auf nach schmerzen wenn kann sie er es im zu mir'.split(
      ' ',
    ),
  ),
  fr: new Set(
    'je et le la les est ai a avec depuis que ne pas mon ma mes suis un une douleur quand peux il elle au du des j dans sur'.split(
      ' ',
    ),
  ),
  es: new Set(
    'yo y el la los es tengo tiene con desde que no mi mis estoy un una dolor cuando puedo en me del hace por muy se'.split(
      ' ',
    ),
  ),
});

/** The language of a text by its frequent words; undefined when no language clearly leads. */
export function detectLanguage(text: string): Language | undefined {
  const words = plainText(text.slice(0, 4000)).split(/[^a-z]+/);
  const scores = LANGUAGES.map((language) => ({
    language,
    score: words.filter((word) => WORDS[language].has(word)).length,
  })).sort((one, other) => other.score - one.score);
  const [first, second] = scores;
  return first && second && first.score > second.score ? first.language : undefined;
}

/** A BCP 47 tag as one of {@link LANGUAGES}. */
export function languageOf(tag: string | undefined): Language | undefined {
  const primary = tag?.toLowerCase().split(/[-_]/)[0];
  return LANGUAGES.find((language) => language === primary);
}

/** Lower case, without accents and typographic quotes: what rules are matched against. */
export function plainText(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replace(/[’‘`´]/g, "'")
    .replace(/[ \t\u00a0]+/g, ' ');
}
