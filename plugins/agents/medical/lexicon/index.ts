import type { Language } from '../engine/language.ts';
import type { Lexicon } from '../engine/phrases.ts';
import { type CompiledLexicon, compileLexicon } from '../engine/sightings.ts';
import de from './de.json' with { type: 'json' };
import en from './en.json' with { type: 'json' };
import es from './es.json' with { type: 'json' };
import fr from './fr.json' with { type: 'json' };
import it from './it.json' with { type: 'json' };

/** What people say in each language. How entries are written: `engine/phrases.ts`. */
export const LEXICONS: Readonly<Record<Language, Lexicon>> = Object.freeze({
  en: { language: 'en', ...en },
  de: { language: 'de', ...de },
  fr: { language: 'fr', ...fr },
  es: { language: 'es', ...es },
  it: { language: 'it', ...it },
});

const compiled = new Map<Language, CompiledLexicon>();

/** The lexicon of a language, made ready for search when it is first needed. */
export function lexiconOf(language: Language): CompiledLexicon {
  const known = compiled.get(language);
  if (known) return known;
  const made = compileLexicon(LEXICONS[language]);
  compiled.set(language, made);
  return made;
}
