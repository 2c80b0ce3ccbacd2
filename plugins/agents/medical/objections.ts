import { type Condition, holds, parseCondition } from './engine/condition.ts';
import { LANGUAGES } from './engine/language.ts';
import { normalise } from './engine/normalise.ts';
import { type Reading, readText } from './engine/reading.ts';
import { RELEASE_RULES } from './release-rules/index.ts';
import { RELEASE_COMPILED } from './release-rules/lexicon/index.ts';
import type { ReleaseRule } from './release-rules/release-rule.ts';

const CONDITIONS: ReadonlyMap<ReleaseRule, readonly Condition[]> = new Map(
  RELEASE_RULES.map((rule) => [rule, rule.when.map(parseCondition)]),
);

/** An instruction stands in one sentence: what the next one says is no part of it. */
const READ = Object.freeze({ withSlips: false, sentenceGap: 100 });

/** Concepts that hold an amount; what somebody named may be repeated. */
const AMOUNTS = Object.freeze(['amount', 'soft_amount', 'spoon']);

/** A summary that is nothing but a diagnosis. */
const BARE =
  /^\s*(?:you have|it is|this is|sie haben|du hast|das ist|es ist|vous avez|c'est|usted tiene|tiene|es|lei ha|ha|hai|e) [\w' -]{3,60}[.!]?\s*$/;
const BARE_OBJECTION = 'It is nothing but a diagnosis; say what it may be, why, and what speaks against it.';

const NO_FACTS: ReadonlySet<string> = new Set();

/**
 * What an answer must not hold, whatever the reviewers say: a certain or bare diagnosis, a dose that neither the person nor a
 * source named, the start, stop or change of a medicine, false comfort beside a danger sign. Answers objections in words for
 * the writer.
 */
export function findObjections(
  texts: readonly string[],
  summary: string | undefined,
  given: string,
  isUrgent: boolean,
): readonly string[] {
  const text = texts.join('\n');
  const known = amountsIn(given);
  const found = findReleaseRules(text, isUrgent, known).map(({ objection }) => objection);
  return [...(BARE.test(normalise(summary ?? '')) ? [BARE_OBJECTION] : []), ...found];
}

/** The rules that a text breaks; `known` are amounts that may be repeated. */
export function findReleaseRules(
  text: string,
  isUrgent: boolean,
  known: ReadonlySet<string> = new Set(),
): readonly ReleaseRule[] {
  const readings = readAll(text);
  const repeating = readings.map((reading) => withoutKnown(reading, known));
  return RELEASE_RULES.filter(
    (rule) =>
      (isUrgent || rule.besideDanger !== true) &&
      (rule.mayRepeat ? repeating : readings).some((reading) =>
        CONDITIONS.get(rule)?.some((condition) => holds(condition, reading, NO_FACTS)),
      ),
  );
}

/** In every language: what is generated is well spelt, and must not slip through because its language was mistaken. */
function readAll(text: string): readonly Reading[] {
  return LANGUAGES.map((language) => readText(text, RELEASE_COMPILED.of(language), READ));
}

/** Every amount that a text names, as number and unit. */
function amountsIn(text: string): ReadonlySet<string> {
  return new Set(
    readAll(text).flatMap((reading) => AMOUNTS.flatMap((name) => reading.signs.get(name) ?? []).map(reading.wordsOf)),
  );
}

function withoutKnown(reading: Reading, known: ReadonlySet<string>): Reading {
  const signs = new Map(reading.signs);
  for (const name of AMOUNTS) {
    const unknown = signs.get(name)?.filter((sign) => !known.has(reading.wordsOf(sign)));
    if (unknown) signs.set(name, unknown);
  }
  return { ...reading, signs };
}

/** All texts inside a value. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
