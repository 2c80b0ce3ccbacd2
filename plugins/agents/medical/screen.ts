import { detectLanguage, plainText } from './language.ts';
import { isNegated } from './negation.ts';
import { RED_FLAGS } from './red-flags/index.ts';
import { INFANT_YEARS, type RedFlag } from './red-flags/red-flag.ts';
import type { Patient } from './request.ts';

/** The rules that hold for what a caller wrote, by text alone: no model, no network, the same every time. */
export function screenForRedFlags(message: string, patient: Patient = {}): readonly RedFlag[] {
  const spellings = spellingsOf(message);
  return RED_FLAGS.filter((flag) => spellings.some((text) => holds(flag, text, patient)));
}

/** German without umlauts is also written with ae, oe and ue. */
function spellingsOf(message: string): readonly string[] {
  const text = plainText(message);
  const language = detectLanguage(message);
  const mayBeGerman = language === 'de' || language === undefined;
  return mayBeGerman && /[aou]e/.test(text) ? [text, text.replace(/([aou])e/g, '$1')] : [text];
}

function holds(flag: RedFlag, text: string, patient: Patient): boolean {
  return flag.all.every((patterns, index) => {
    if (index === 0 && flag.patient && isPatient(flag.patient, patient)) return true;
    return patterns.some((pattern) => isSaid(pattern, text));
  });
}

/** Whether the pattern is found somewhere where it is not denied. */
function isSaid(pattern: RegExp, text: string): boolean {
  for (const match of text.matchAll(new RegExp(pattern, 'g'))) {
    const end = match.index + match[0].length;
    if (!isNegated(text.slice(0, match.index), text.slice(end))) return true;
  }
  return false;
}

function isPatient(kind: 'infant' | 'pregnant', { age, pregnant }: Patient): boolean {
  return kind === 'pregnant' ? pregnant === true : age !== undefined && age !== null && age < INFANT_YEARS;
}
