import { crisisLine, emergencyNumber } from './emergency-numbers.ts';
import type { Language, Texts } from './engine/language.ts';
import {
  CRISIS,
  CRISIS_STEPS,
  DISCLAIMER,
  EMERGENCY,
  EMERGENCY_STEPS,
  LINE,
  NUMBER,
  POISON,
  SAFE_STEPS,
  UNANSWERED,
  URGENT,
  WITHHELD,
} from './notice-texts.ts';
import type { Rule } from './rules/rule.ts';

/** Sentences that no model writes: they are the same whatever the models say. */
export interface Notices {
  /** Put first when there are danger signs: what is most pressing first. */
  readonly notice: (kinds: readonly Rule['kind'][]) => string;
  /** Ends every answer; it too names the emergency number. */
  readonly disclaimer: string;
  /** Beside an error. */
  readonly unanswered: string;
  /** Instead of an answer that the safety review did not release. */
  readonly withheld: string;
  /** What to do meanwhile. */
  readonly steps: (kinds: readonly Rule['kind'][]) => readonly string[];
  readonly safeSteps: readonly string[];
}

const BY_KIND: Readonly<Record<Rule['kind'], Texts>> = {
  poison: POISON,
  emergency: EMERGENCY,
  crisis: CRISIS,
  urgent: URGENT,
};

/** The fixed sentences for a language and country; `ownLine` is the operator's own line for people in a crisis. */
export function noticesFor(language: Language, country: string | undefined, ownLine: string | undefined): Notices {
  const line = ownLine ?? crisisLine(country);
  const fill = (text: string) =>
    text
      .replace('{number}', emergencyNumber(country) ?? NUMBER[language])
      .replace('{line}', line === undefined ? '' : LINE[language].replace('{line}', line));
  return {
    notice: (kinds) => {
      // Whoever is told to call now is not also told to wait until later today.
      const told = kinds.some((kind) => kind !== 'urgent') ? kinds.filter((kind) => kind !== 'urgent') : kinds;
      const inOrder = (Object.keys(BY_KIND) as Rule['kind'][]).filter((kind) => told.includes(kind));
      return inOrder.map((kind) => fill(BY_KIND[kind][language])).join('\n\n');
    },
    disclaimer: fill(DISCLAIMER[language]),
    unanswered: fill(UNANSWERED[language]),
    withheld: WITHHELD[language],
    steps: (kinds) => [
      ...(kinds.includes('emergency') || kinds.includes('poison') ? EMERGENCY_STEPS[language] : []),
      ...(kinds.includes('crisis') ? CRISIS_STEPS[language] : []),
    ],
    safeSteps: SAFE_STEPS[language],
  };
}
