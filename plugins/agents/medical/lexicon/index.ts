import type { Language } from '../engine/language.ts';
import type { Lexicon } from '../engine/phrases.ts';
import { compileLexicons } from '../engine/sightings.ts';
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

/** The lexicons made ready for search. */
export const COMPILED = compileLexicons(LEXICONS);
