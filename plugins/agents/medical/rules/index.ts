import type { Texts } from '../engine/language.ts';
import breathingAndHeart from './breathing-and-heart.json' with { type: 'json' };
import infectionAndMetabolism from './infection-and-metabolism.json' with { type: 'json' };
import injury from './injury.json' with { type: 'json' };
import neurology from './neurology.json' with { type: 'json' };
import obstetricsAndChildren from './obstetrics-and-children.json' with { type: 'json' };
import poisoningAndSelfHarm from './poisoning-and-self-harm.json' with { type: 'json' };
import signsTogether from './signs-together.json' with { type: 'json' };

/** Common fields of all rules. */
export interface RuleData {
  readonly id: string;
  /** Increment it when the meaning of the rule changes. */
  readonly version: number;
  /** Clinician who reviewed this version, and the day; null without a review. */
  readonly reviewed: { readonly by: string; readonly on: string } | null;
  /** Conditions on the concepts of a lexicon (see `engine/condition.ts`); the rule matches if one of them holds. */
  readonly when: readonly string[];
  /** Source of the rule. */
  readonly source: { readonly title: string; readonly url: string };
  /** Test examples. */
  readonly examples: {
    /** At least one in every language. */
    readonly positive: readonly string[];
    readonly negative: readonly string[];
    /** Borderline cases with the expected result. */
    readonly boundary: readonly (readonly [text: string, holds: boolean])[];
  };
}

/** Sign that needs immediate care, found in a text. */
export interface Rule extends RuleData {
  /** Order in which signs are reported: the most life-threatening has the lowest rank. */
  readonly rank: number;
  /** Time to act: immediately by the emergency number, or today. */
  readonly urgency: 'emergency' | 'urgent';
  /** Determines the notice that is shown first. */
  readonly kind: 'emergency' | 'poison' | 'crisis' | 'urgent';
  readonly sign: Texts;
}

/**
 * All rules, in the order in which they are reported. `test/plugins/agents/medical/rules.test.ts` checks their shape.
 */
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

/**
 * Rule without a condition: it applies if no emergency rule matches and the findings weigh more than zero
 * (`engine/weighing.ts`).
 */
export const SIGNS_TOGETHER: Rule = Object.freeze(signsTogether as Rule);

/** Age limit of the infant rules in years: three months. */
export const INFANT_YEARS = 0.25;
