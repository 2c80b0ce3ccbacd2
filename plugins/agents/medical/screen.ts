import { type Condition, holds, parseCondition } from './engine/condition.ts';
import { type Language, LANGUAGES, scoreLanguages } from './engine/language.ts';
import { normalise } from './engine/normalise.ts';
import { type Reading, readText } from './engine/reading.ts';
import { lexiconOf } from './lexicon/index.ts';
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

/** A language is read with slips forgiven when it scores this much of the best one, and as written when a little less. */
const PLAUSIBLE = 0.6;
const POSSIBLE = 0.5;

/** With fewer frequent words than this, they say little of the language. */
const FEW_WORDS = 3;

/** What a list of illnesses and medicines says about the person, whenever it was written. */
const RISKS = Object.freeze(['thinner', 'diabetic', 'asthma', 'immune', 'pacemaker', 'pregnant', 'insulin']);
const CHILD_YEARS = 12;

/** The rules that hold for what a caller wrote, by text alone: no model, no network, the same every time. */
export function screen(message: string, patient: Patient = {}): Screening {
  const languages = languagesOf(message);
  const facts = factsOf(patient);
  const readings = languages.map(({ language, withSlips }) => readText(message, lexiconOf(language), { withSlips }));
  readings.push(...readHistory(patient, facts));
  const found = RULES.flatMap((rule) => {
    const where = readings.find((reading) => isFound(rule, reading, facts));
    return where ? [{ rule, language: where.language }] : [];
  });
  return { flags: found.map(({ rule }) => rule), language: mostFrequent(found.map(({ language }) => language)) };
}

function isFound(rule: Rule, reading: Reading, facts: ReadonlySet<string>): boolean {
  return CONDITIONS.get(rule)?.some((condition) => holds(condition, reading, facts)) ?? false;
}

/** The languages that a message may be in, the likeliest first; every sentence has a say. */
function languagesOf(message: string): readonly { readonly language: Language; readonly withSlips: boolean }[] {
  const shares = new Map<Language, number>();
  for (const [index, part] of [message, ...message.split(/[.!?\n]+/)].entries()) {
    const frequent = scoreLanguages(part);
    if (index > 0 && (frequent[0]?.score ?? 0) < FEW_WORDS) continue;
    const scores = (frequent[0]?.score ?? 0) < FEW_WORDS ? withLexicons(part, frequent) : frequent;
    const best = Math.max(...scores.map(({ score }) => score));
    for (const { language, score } of scores) {
      const share = best === 0 ? 1 : score / best;
      shares.set(language, Math.max(shares.get(language) ?? 0, share));
    }
  }
  return LANGUAGES.map((language) => ({ language, share: shares.get(language) ?? 0 }))
    .filter(({ share }) => share >= POSSIBLE)
    .sort((one, other) => other.share - one.share)
    .map(({ language, share }) => ({ language, withSlips: share >= PLAUSIBLE }));
}

/** A text with few frequent words: what the lexicons know counts too. */
function withLexicons(text: string, scores: ReturnType<typeof scoreLanguages>): ReturnType<typeof scoreLanguages> {
  const words = normalise(text).split(/[^a-z]+/).slice(0, 40);
  return scores.map(({ language, score }) => {
    const { index } = lexiconOf(language);
    return { language, score: score + words.filter((word) => index.knows(word)).length };
  });
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
  return languagesOf(text).map(({ language, withSlips }) => {
    const reading = readText(text, lexiconOf(language), { withSlips, setting: 'past' });
    for (const risk of RISKS) if (reading.signs.get(risk)?.some(({ denied }) => !denied)) facts.add(risk);
    return reading;
  });
}

function mostFrequent(languages: readonly Language[]): Language | undefined {
  const counts = LANGUAGES.map((language) => ({ language, count: languages.filter((one) => one === language).length }));
  const best = counts.reduce((one, other) => (other.count > one.count ? other : one));
  return best.count > 0 ? best.language : undefined;
}
