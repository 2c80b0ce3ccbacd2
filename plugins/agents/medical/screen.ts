import { type Condition, holds, isNamed, parseCondition } from './engine/condition.ts';
import { LANGUAGES, type Language } from './engine/language.ts';
import { type Reading, readText } from './engine/reading.ts';
import { COMPILED } from './lexicon/index.ts';
import { type LikelyLanguage, likelyLanguages } from './likely-languages.ts';
import type { Patient } from './request.ts';
import { RULES } from './rules/index.ts';
import { INFANT_YEARS, type Rule } from './rules/rule.ts';

/** What the rules say to a message. */
export interface Screening {
  readonly flags: readonly Rule[];
  /** The language in which most rules were found; undefined when none was. */
  readonly language: Language | undefined;
}

const CONDITIONS: ReadonlyMap<Rule, readonly Condition[]> = new Map(
  RULES.map((rule) => [rule, rule.when.map(parseCondition)]),
);

/** What a list of illnesses and medicines says about the person, whenever it was written. */
const RISKS = Object.freeze(['thinner', 'diabetic', 'asthma', 'immune', 'pacemaker', 'pregnant', 'insulin']);
const CHILD_YEARS = 12;

/** The rules that hold for what a caller wrote, by text alone: no model, no network, the same every time. */
export function screen(message: string, patient: Patient = {}): Screening {
  const languages = likelyLanguages(message);
  const facts = factsOf(patient);
  const read = ({ language, withSlips }: LikelyLanguage) => readText(message, COMPILED.of(language), { withSlips });
  const main = languages.filter(({ isMain }) => isMain).map(read);
  const others = languages.filter(({ isMain }) => !isMain).map(read);
  const lists = readHistory(patient, facts);
  const found = RULES.flatMap((rule) => {
    // What the main language names as denied or past is not found in one that only looks like it.
    const isKnown = main.some((reading) => CONDITIONS.get(rule)?.some((one) => isNamed(one, reading, facts)));
    const readings = [...main, ...(isKnown ? [] : others), ...lists];
    const where = readings.find((reading) => isFound(rule, reading, facts));
    return where ? [{ rule, language: where.language }] : [];
  });
  return { flags: found.map(({ rule }) => rule), language: mostFrequent(found.map(({ language }) => language)) };
}

function isFound(rule: Rule, reading: Reading, facts: ReadonlySet<string>): boolean {
  return CONDITIONS.get(rule)?.some((condition) => holds(condition, reading, facts)) ?? false;
}

/** What is known of the person beside the message. */
function factsOf({ age, pregnant }: Patient): Set<string> {
  const facts = new Set<string>();
  if (typeof age === 'number' && age < CHILD_YEARS) facts.add('child');
  if (typeof age === 'number' && age < INFANT_YEARS) for (const fact of ['infant', 'baby']) facts.add(fact);
  if (pregnant === true) facts.add('pregnant');
  return facts;
}

/**
 * The lists of illnesses, medicines and allergies. They say what was, so a sign in them counts only when the text says that
 * it is now; what makes other signs more dangerous is added to the facts.
 */
function readHistory({ history, medications, allergies }: Patient, facts: Set<string>): readonly Reading[] {
  const text = [history, medications, allergies].flatMap((list) => list ?? []).join('\n');
  if (text === '') return [];
  return likelyLanguages(text).map(({ language, withSlips }) => {
    const reading = readText(text, COMPILED.of(language), { withSlips, setting: 'past' });
    for (const risk of RISKS) if (reading.signs.get(risk)?.some(({ denied }) => !denied)) facts.add(risk);
    return reading;
  });
}

function mostFrequent(languages: readonly Language[]): Language | undefined {
  const counts = LANGUAGES.map((language) => ({ language, count: languages.filter((one) => one === language).length }));
  const best = counts.reduce((one, other) => (other.count > one.count ? other : one));
  return best.count > 0 ? best.language : undefined;
}
