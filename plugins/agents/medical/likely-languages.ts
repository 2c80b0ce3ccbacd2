import { LANGUAGES, type Language, scoreLanguages } from './engine/language.ts';
import { normalise } from './engine/normalise.ts';
import { COMPILED } from './lexicon/index.ts';

/** A language is read with slips forgiven when it scores this much of the best one, and as written when a little less. */
const PLAUSIBLE = 0.7;
const POSSIBLE = 0.6;

/** With fewer frequent words than this, they say little of the language. */
const FEW_WORDS = 3;
/** As many words are looked up in the lexicons then. */
const LOOKED_UP = 40;

type Scores = ReturnType<typeof scoreLanguages>;

export interface LikelyLanguage {
  readonly language: Language;
  readonly withSlips: boolean;
  /** The text, or a sentence of it, is likelier in this language than in any other. */
  readonly isMain: boolean;
}

/**
 * The languages that a text may be in, the likeliest first. People mix languages: what a sentence is clearly written in is
 * read too.
 */
export function likelyLanguages(text: string): readonly LikelyLanguage[] {
  const normalised = normalise(text);
  const shares = new Map<Language, number>();
  for (const [index, part] of [normalised, ...normalised.split(/[.!?\n]+/)].entries()) {
    const frequent = scoreLanguages(part);
    const isClear = (frequent[0]?.score ?? 0) >= FEW_WORDS;
    if (index > 0 && !isClear) continue;
    const scores = isClear ? frequent : withLexicons(part, frequent);
    const best = Math.max(...scores.map(({ score }) => score));
    for (const { language, score } of scores) {
      const share = best === 0 ? 1 : score / best;
      if (index === 0 || share === 1) shares.set(language, Math.max(shares.get(language) ?? 0, share));
    }
  }
  return LANGUAGES.map((language) => ({ language, share: shares.get(language) ?? 0 }))
    .filter(({ share }) => share >= POSSIBLE)
    .sort((one, other) => other.share - one.share)
    .map(({ language, share }) => ({ language, withSlips: share >= PLAUSIBLE, isMain: share === 1 }));
}

/** A text with few frequent words: what the lexicons know counts too. */
function withLexicons(normalised: string, scores: Scores): Scores {
  const words = normalised.split(/[^a-z]+/).slice(0, LOOKED_UP);
  return scores.map(({ language, score }) => {
    const { index } = COMPILED.of(language);
    return { language, score: score + words.filter((word) => index.knows(word)).length };
  });
}
