import type { Texts } from '../engine/language.ts';

/** Where a rule comes from. */
export interface Source {
  readonly title: string;
  readonly url: string;
}

/** What a test holds a rule to. */
export interface RuleExamples {
  /** At least one in every language. */
  readonly positive: readonly string[];
  readonly negative: readonly string[];
  /** Cases at the edge, and what the rule says to them. */
  readonly boundary: readonly (readonly [text: string, holds: boolean])[];
}

/** A sign that needs care at once, found in what somebody wrote. */
export interface Rule {
  readonly id: string;
  /** Raised when the rule says something else than before. */
  readonly version: number;
  /** How fast: at once by the emergency number, or today. */
  readonly urgency: 'emergency' | 'urgent';
  /** Which notice is shown first. */
  readonly kind: 'emergency' | 'poison' | 'crisis' | 'urgent';
  readonly sign: Texts;
  /** Conditions over the concepts of the lexicons (see `engine/condition.ts`); the rule holds when one of them does. */
  readonly when: readonly string[];
  readonly source: Source;
  readonly examples: RuleExamples;
}

/** How old an infant may be for the infant rules, in years: three months. */
export const INFANT_YEARS = 0.25;
