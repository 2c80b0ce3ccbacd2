import type { Reading } from './reading.ts';
import trained from './weights.json' with { type: 'json' };

/** What each feature of a text says for or against an emergency: a linear model, so that anybody can see why a text weighs what it does. */
interface Weights {
  /** What a text without any feature weighs. */
  readonly base: number;
  /** By feature, as {@link featuresOf} names them. */
  readonly weights: Readonly<Record<string, number>>;
}

/** Written by `npm run medical -- --train`. */
export const WEIGHTS: Weights = Object.freeze(trained);

/** In texts longer than those that the weights were found with, the rules alone decide. */
const MOST_WORDS = 60;

/** How many concepts are there now counts by steps. */
const STEPS = Object.freeze([1, 2, 3, 4, 5, 6, 8]);
const MOST_RULES = 3;

/**
 * What a text is weighed by: every concept that is named, again with a plus where it is there now, what says how the text speaks (of the
 * past, of somebody, in a film), every two concepts that are there now, whether it has a question, how many concepts are there now, and how many rules hold. No words: one set of weights
 * serves all languages. Undefined for a text longer than those that the weights were found with.
 */
export function featuresOf(
  { signs, grammar, hasQuestion, length }: Reading,
  facts: ReadonlySet<string>,
  rules: number,
): readonly string[] | undefined {
  if (length > MOST_WORDS) return undefined;
  const found = [...signs].flatMap(([concept, list]) =>
    list.some(({ denied, refused, setting }) => setting === 'present' && (!denied || refused)) ? [concept] : [],
  );
  const present = [...new Set([...found, ...facts])];
  return [
    ...new Set([...signs.keys(), ...facts]),
    ...present.map((concept) => `+${concept}`),
    ...pairsOf(present),
    ...[...grammar].map((concept) => `speaks:${concept}`),
    ...(hasQuestion ? ['question'] : []),
    ...STEPS.filter((step) => present.length >= step).map((step) => `signs:${step}`),
    `rules:${Math.min(rules, MOST_RULES)}`,
  ];
}

function pairsOf(present: readonly string[]): readonly string[] {
  const sorted = present.toSorted();
  return sorted.flatMap((one, at) => sorted.slice(at + 1).map((other) => `+${one}+${other}`));
}

/** Above zero an emergency is likelier than not. */
export function weigh(features: readonly string[]): number {
  return features.reduce((sum, feature) => sum + (WEIGHTS.weights[feature] ?? 0), WEIGHTS.base);
}

/** Whether somebody wants to know what to do: what rules find is reported then, whatever it weighs. */
export function callsForHelp(features: readonly string[]): boolean {
  return features.includes('speaks:what_to_do');
}
