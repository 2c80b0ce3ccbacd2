import { GatewayError } from '../../../contract/index.ts';
import type { Voice } from '../kit/index.ts';

/** Voices of the program: languages, and variants that change the speaker (`en-us+f3`). */
export interface EspeakVoices {
  readonly languages: readonly Voice[];
  readonly variants: readonly string[];
}

/** OpenAI's voice names, which many clients always send, as variants of similar sex and pitch. */
export const VARIANT_OF_NAME: Readonly<Record<string, string>> = Object.freeze({
  alloy: 'f1',
  ash: 'm1',
  ballad: 'm3',
  cedar: 'm2',
  coral: 'f2',
  echo: 'm7',
  fable: 'm4',
  marin: 'f5',
  nova: 'f3',
  onyx: 'm8',
  sage: 'f4',
  shimmer: 'f5',
  verse: 'm6',
});

/** Ids become an argument of the program: letters, digits and signs only, and never a leading dash. */
const ID = /^[A-Za-z0-9][\w+-]{0,62}$/;

/** Row of `espeak-ng --voices`: priority, language, age and sex, name, file, other languages. */
const ROW = /^\s*\d+\s+(\S+)\s+\S+\s+(\S+)\s+(\S+)/;

/** Languages in the output of `espeak-ng --voices`. */
export function readLanguages(table: string): readonly Voice[] {
  return rows(table).map(({ language, name, file }) => {
    // The listed name of one language is unknown to the program; its file name works.
    const id = language === language.toLowerCase() ? language : (file.split('/').at(-1) ?? file);
    return { id, name: name.replaceAll('_', ' ').trim(), language };
  });
}

/** Variants in the output of `espeak-ng --voices=variant`, except those with a space in the file name. */
export function readVariants(table: string): readonly string[] {
  return rows(table)
    .filter(({ file, name }) => file.startsWith('!v/') && !(name.includes('_') && name.startsWith(`${file.slice(3)}_`)))
    .map(({ file }) => file.slice(3));
}

function rows(table: string) {
  return table.split('\n').flatMap((line) => {
    const [, language = '', name = '', file = ''] = ROW.exec(line) ?? [];
    return file !== '' && ID.test(file.replaceAll(/[!/]/g, '')) && ID.test(language) ? [{ language, name, file }] : [];
  });
}

/** Voices for a list: names of other vendors first, then every language. */
export function listedVoices({ languages }: EspeakVoices): readonly Voice[] {
  const names = Object.keys(VARIANT_OF_NAME).map((id) => ({ id, name: `${id.charAt(0).toUpperCase()}${id.slice(1)}` }));
  return [...names, ...languages];
}

/**
 * Returns true for a language, or a language with an existing variant; an unknown variant would have no effect. A
 * bare language (`fr`, `en`) means the program's voice for it (`fr-fr`, `en-us`).
 */
export function isEspeakVoice(id: string, { languages, variants }: EspeakVoices): boolean {
  const [language = '', variant, ...rest] = id.split('+');
  if (!ID.test(id) || rest.length > 0) return false;
  return findLanguage(language, languages) !== undefined && (variant === undefined || variants.includes(variant));
}

/** Languages with another name in the program. */
const OTHER_NAME: Readonly<Record<string, string>> = Object.freeze({
  zh: 'cmn',
  'zh-hk': 'yue',
  no: 'nb',
  en: 'en-us',
});

/** Id of a language; for a bare language, that of the program's voice for it. */
function findLanguage(id: string, languages: readonly Voice[]): string | undefined {
  const ids = languages.map((voice) => voice.id);
  if (ids.includes(id)) return id;
  return /^[a-z]{2,3}$/i.test(id) ? widen(id, ids) : undefined;
}

/** Language voice near a BCP 47 tag: a wider or narrower one (`de-AT` and `de`, `fr` and `fr-fr`). */
function widen(tag: string, ids: readonly string[]): string | undefined {
  const wanted = tag.toLowerCase();
  const [primary = wanted] = wanted.split('-');
  const names = [wanted, OTHER_NAME[wanted], OTHER_NAME[primary], primary, `${primary}-${primary}`];
  return names.find((id) => id !== undefined && ids.includes(id)) ?? ids.find((id) => id.startsWith(`${primary}-`));
}

/** Language voice for a BCP 47 tag; throws for a language that the program does not support. */
export function languageVoice(tag: string, { languages }: EspeakVoices): string {
  const found = widen(
    tag,
    languages.map(({ id }) => id),
  );
  if (found !== undefined) return found;
  throw new GatewayError(
    'invalid_request',
    'language is not supported by this speech provider. Use a language of its voices list.',
    { param: 'language' },
  );
}

/** Argument `-v` for a voice and a language. */
export function voiceArgument(voice: string, language: string | undefined, known: EspeakVoices): string {
  const named = VARIANT_OF_NAME[voice];
  if (named !== undefined) return `${language === undefined ? 'en-us' : languageVoice(language, known)}+${named}`;
  const [base = voice, ...variant] = voice.split('+');
  return [findLanguage(base, known.languages) ?? base, ...variant].join('+');
}
