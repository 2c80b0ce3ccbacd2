import type { Language } from '../../engine/language.ts';
import type { Lexicon } from '../../engine/phrases.ts';
import { compileLexicons } from '../../engine/sightings.ts';
import de from './de.json' with { type: 'json' };
import en from './en.json' with { type: 'json' };
import es from './es.json' with { type: 'json' };
import fr from './fr.json' with { type: 'json' };
import it from './it.json' with { type: 'json' };
import medicines from './medicines.json' with { type: 'json' };

/**
 * Names of medicines and parts of them for all languages. Substances are matched by the suffixes that the WHO assigns
 * to a class (INN stems), and brands by their names in Europe and America.
 */
const MEDICINES = Object.values(medicines).join(', ');

/** Vocabulary of answers about medicines by language; names of medicines are shared. */
export const RELEASE_LEXICONS: Readonly<Record<Language, Lexicon>> = Object.freeze({
  en: withMedicines('en', en),
  de: withMedicines('de', de),
  fr: withMedicines('fr', fr),
  es: withMedicines('es', es),
  it: withMedicines('it', it),
});

function withMedicines(language: Language, lexicon: typeof en | typeof fr): Lexicon {
  const { concepts } = lexicon;
  return {
    ...lexicon,
    language,
    concepts: { ...concepts, medicine: `${MEDICINES}, ${concepts.medicine}`, medicine_name: MEDICINES },
  };
}

/** Vocabulary of medicines prepared for search. */
export const RELEASE_COMPILED = compileLexicons(RELEASE_LEXICONS);
