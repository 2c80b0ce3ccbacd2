import { normalise } from './normalise.ts';

/** Languages of notices and rules; other languages get English notices, and answers in their own language. */
export const LANGUAGES = Object.freeze(['en', 'de', 'fr', 'es', 'it'] as const);
export type Language = (typeof LANGUAGES)[number];

/** A text in every language of {@link LANGUAGES}. */
export type Texts = Readonly<Record<Language, string>>;

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Frequent words of each language, after {@link normalise}. Words of several languages are listed in each. */
export const FREQUENT: Readonly<Record<Language, ReadonlySet<string>>> = Object.freeze({
  en: words(
    'the a and my is has had with since what should not feel feeling pain when you this am was it for after been can i of to in on im its hes shes his her she he they we our are were from that keep keeps got get wont cant dont didnt doesnt isnt do does did be by at as if but or an out up all over just now very really some any have going gone took there how why who your me him them us will would could about into than then too so one two three been being because here still even like which once ever also only more theres years ago never again whose during while before next nor',
  ),
  de: words(
    'ich und der die das ist habe hat hab mit seit was nicht mein meine meinem meiner meinen bin ein eine einen auf nach schmerzen wenn kann sie er es im zu mir sich den dem des von ihr ihm ihn wir uns mich dich du sein seine war wird werden wurde bei aus an am in vor oder aber noch nur schon sehr so wie dass jetzt heute gestern kein keine mehr hatte haben sind soll was wo warum immer ganz hilfe nich kriegt krieg plotzlich unser unsere dann auch da zum zur um uber unter gerade grad und welche welcher wann einmal ob worden sollte muss durfte gibt jemand oft nie nun etwas bekommt',
  ),
  fr: words(
    'je et le la les est ai a avec depuis que ne pas mon ma mes suis un une douleur quand peux il elle au du des j dans sur de d l en n s c qu plus se me qui ce cette ca sa son ses nous vous on sont ont etre fait faire tout tres mais ou bien comme apres avant pour par si jai cest aux notre nos mal peut va vais jsuis jvais suis meme toute tous rien quelle quels quelles faut dois puis devrais aurait avait ans leur y deux encore toujours jamais cela lors vers chez combien',
  ),
  es: words(
    'yo y el la los las es tengo tiene con desde que no mi mis estoy esta un una dolor cuando puedo en me del hace por muy se le lo de al su sus a como mas pero si para ha he han hay son ser fue era todo toda ya sin nada te les nos tu este eso porque despues ahora hoy ayer puede estan tomo tomado desde bien mal hijo hija tuvo vez cual cuales quien donde deberia anos sobre hasta tanto cada aunque sino ella sido tuve mismo estaba algun ese esa',
  ),
  it: words(
    'io e il lo la gli le i ho ha con da che non mi mio mia sono un una dolore quando posso in si del della di al alla per molto nel nella ma se sta sto anche come piu ci e era tutto tutta gia senza niente ti suo sua nostro nostra questo perche dopo adesso oggi ieri ora puo stanno preso dal dalla sul sulla c l un cosa fa faccio nn ke hanno siamo stato stata avuto anni ebbe quanto quale quali chi dove dovrei devo ogni mai fino pero lei lui nei sui dei degli delle nello quasi fatto fare suoi nostri hai abbiamo volta',
  ),
});

const SCAN_CHARACTERS = 4000;

/** Counts the frequent words of each language in a normalised text, in descending order. */
export function scoreLanguages(normalised: string): readonly { readonly language: Language; readonly score: number }[] {
  const found = normalised
    .slice(0, SCAN_CHARACTERS)
    .replaceAll(/(?<=[a-z])'(?=(?:t|s|m|ve|re|ll|d)\b)/g, '')
    .split(/[^a-z]+/);
  return LANGUAGES.map((language) => ({
    language,
    score: found.filter((word) => FREQUENT[language].has(word)).length,
  })).sort((one, other) => other.score - one.score);
}

/** Detects the language of a text by its frequent words; undefined if no language clearly leads. */
export function detectLanguage(text: string): Language | undefined {
  const [first, second] = scoreLanguages(normalise(text.slice(0, SCAN_CHARACTERS)));
  return first && second && first.score > second.score ? first.language : undefined;
}

/** Maps a BCP 47 tag to {@link LANGUAGES}. */
export function languageOf(tag: string | undefined): Language | undefined {
  const primary = tag?.toLowerCase().split(/[-_]/)[0];
  return LANGUAGES.find((language) => language === primary);
}
