import type { Texts } from '../language.ts';

/** Where a rule comes from. */
export interface Source {
  readonly title: string;
  readonly url: string;
}

/**
 * A sign that needs care at once, found in plain text (see `plainText`). The rule holds when one pattern of every list in
 * `all` is found and not negated. Patterns are linear: bounded repetitions only.
 */
export interface RedFlag {
  readonly id: string;
  /** How fast: at once by the emergency number, or today. */
  readonly urgency: 'emergency' | 'urgent';
  /** Which notice is shown first. */
  readonly kind: 'emergency' | 'poison' | 'crisis' | 'urgent';
  readonly sign: Texts;
  readonly all: readonly (readonly RegExp[])[];
  /** Facts of the patient that stand for the first list of `all`. */
  readonly patient?: 'infant' | 'pregnant';
  readonly source: Source;
}

/** How old an infant may be for the infant rules, in years: three months. */
export const INFANT_YEARS = 0.25;
