import type { Language } from '../engine/language.ts';
import { type CompiledLexicon, compileLexicon } from '../engine/sightings.ts';
import { GERMAN } from './de.ts';
import { ENGLISH } from './en.ts';
import { SPANISH } from './es.ts';
import { FRENCH } from './fr.ts';
import { ITALIAN } from './it.ts';

export const LEXICONS = Object.freeze({ en: ENGLISH, de: GERMAN, fr: FRENCH, es: SPANISH, it: ITALIAN });

const compiled = new Map<Language, CompiledLexicon>();

/** The lexicon of a language, made ready for search when it is first needed. */
export function lexiconOf(language: Language): CompiledLexicon {
  const known = compiled.get(language);
  if (known) return known;
  const made = compileLexicon(LEXICONS[language]);
  compiled.set(language, made);
  return made;
}
