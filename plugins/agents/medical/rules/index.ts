import type { Texts } from '../engine/language.ts';
import breathingAndHeart from './breathing-and-heart.json' with { type: 'json' };
import infectionAndMetabolism from './infection-and-metabolism.json' with { type: 'json' };
import injury from './injury.json' with { type: 'json' };
import neurology from './neurology.json' with { type: 'json' };
import obstetricsAndChildren from './obstetrics-and-children.json' with { type: 'json' };
import poisoningAndSelfHarm from './poisoning-and-self-harm.json' with { type: 'json' };
import signsTogether from './signs-together.json' with { type: 'json' };

/** What every rule has, of whatever it looks at. */
export interface RuleData {
  readonly id: string;
  /** Raised when the rule says something else than before. */
  readonly version: number;
  /** Which clinician read this version, and on what day; null when none has. */
  readonly reviewed: { readonly by: string; readonly on: string } | null;
  /** Conditions over the concepts of a lexicon (see `engine/condition.ts`); the rule holds when one of them does. */
  readonly when: readonly string[];
  /** Where it comes from. */
  readonly source: { readonly title: string; readonly url: string };
  /** What a test holds it to. */
  readonly examples: {
    /** At least one in every language. */
    readonly positive: readonly string[];
    readonly negative: readonly string[];
    /** Cases at the edge, and what the rule says to them. */
    readonly boundary: readonly (readonly [text: string, holds: boolean])[];
  };
}

/** A sign that needs care at once, found in what somebody wrote. */
export interface Rule extends RuleData {
  /** The order in which signs are reported: what threatens life fastest has the lowest. */
  readonly rank: number;
  /** How fast: at once by the emergency number, or today. */
  readonly urgency: 'emergency' | 'urgent';
  /** Which notice is shown first. */
  readonly kind: 'emergency' | 'poison' | 'crisis' | 'urgent';
  readonly sign: Texts;
}

/** All rules, in the order in which they are reported. Their shape is checked by `test/plugins/agents/medical/rules.test.ts`. */
export const RULES: readonly Rule[] = Object.freeze(
  (
    [
      ...breathingAndHeart,
      ...infectionAndMetabolism,
      ...injury,
      ...neurology,
      ...obstetricsAndChildren,
      ...poisoningAndSelfHarm,
    ] as unknown as readonly Rule[]
  ).toSorted((one, other) => one.rank - other.rank),
);

/** Has no condition: it holds where no rule of emergencies does, and what is found weighs more than nothing (`engine/weighing.ts`). */
export const SIGNS_TOGETHER: Rule = Object.freeze(signsTogether as Rule);

/** How old an infant may be for the infant rules, in years: three months. */
export const INFANT_YEARS = 0.25;
