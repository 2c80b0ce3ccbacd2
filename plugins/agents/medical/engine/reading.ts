import { GRAMMAR } from './grammar.ts';
import type { Language } from './language.ts';
import { denialOf, findDenials } from './negation.ts';
import { normalise } from './normalise.ts';
import { findSettings, type Setting } from './setting.ts';
import { type CompiledLexicon, findSightings, type Sighting } from './sightings.ts';
import { readTokens, type Token } from './tokens.ts';

/** A concept as it stands in a text: where, denied or not, now or once. */
export interface Sign {
  readonly concept: string;
  /** Places of its first and last word, for distances. */
  readonly from: number;
  readonly to: number;
  readonly denied: boolean;
  readonly refused: boolean;
  readonly setting: Setting;
}

/** A text as rules see it. */
export interface Reading {
  readonly language: Language;
  readonly signs: ReadonlyMap<string, readonly Sign[]>;
  /** The words from one place to another. */
  readonly wordsOf: (sign: Pick<Sign, 'from' | 'to'>) => string;
  /** Every number with its place. */
  readonly numbers: readonly { readonly value: number; readonly at: number }[];
}

export interface ReadOptions {
  /** Whether words that are spelt wrongly are understood. */
  readonly withSlips: boolean;
  /** What a sentence speaks of that says nothing of the time. */
  readonly setting?: Setting;
  /** Words of distance that the end of a sentence counts for. */
  readonly sentenceGap?: number;
}

/** Reads a text in one language. */
export function readText(
  text: string,
  compiled: CompiledLexicon,
  { withSlips, setting, sentenceGap }: ReadOptions,
): Reading {
  const { language } = compiled.lexicon;
  const tokens = readTokens(normalise(text), language, compiled.aliases, sentenceGap);
  const { list } = tokens;
  const all = withoutIdioms(findSightings(tokens, compiled, withSlips));
  const signs = all.filter(({ concept }) => !GRAMMAR.has(concept));
  const denials = findDenials({ list, signs, words: grammarWords(all) });
  const settingOf = findSettings(tokens, all);
  const nowIn = new Set(all.flatMap(({ concept, from }) => (concept === 'now' ? [list[from]?.sentence] : [])));
  const byConcept = new Map<string, Sign[]>();
  for (const sighting of signs) {
    const sentence = list[sighting.from]?.sentence ?? 0;
    const known = settingOf(sighting);
    const sign: Sign = {
      concept: sighting.concept,
      from: placeOf(list, sighting.from),
      to: placeOf(list, sighting.to),
      ...denialOf(denials, sighting),
      setting: known === 'present' && setting !== undefined && !nowIn.has(sentence) ? setting : known,
    };
    const others = byConcept.get(sighting.concept);
    if (others) others.push(sign);
    else byConcept.set(sighting.concept, [sign]);
  }
  const numbers = list.flatMap(({ value, at }) => (value === undefined ? [] : [{ value, at }]));
  const wordsOf = ({ from, to }: Pick<Sign, 'from' | 'to'>) =>
    list
      .filter(({ at }) => at >= from && at <= to)
      .map(({ text, value }) => value ?? text)
      .join(' ');
  return { language, signs: byConcept, numbers, wordsOf };
}

function placeOf(list: readonly Token[], index: number): number {
  return list[index]?.at ?? 0;
}

/** "Dying of boredom" is no wish to die: what overlaps with an idiom is not seen. */
function withoutIdioms(sightings: readonly Sighting[]): readonly Sighting[] {
  const idioms = sightings.filter(({ concept }) => concept === 'idiom');
  if (idioms.length === 0) return sightings;
  return sightings.filter((one) => !idioms.some((idiom) => idiom.from <= one.to && one.from <= idiom.to));
}

/**
 * Where the words of grammar stand. A negation inside a longer entry ("no air") belongs to that entry: it is listed as
 * `inner`, and only makes a verb of the body a refused one.
 */
function grammarWords(all: readonly Sighting[]): ReadonlyMap<string, ReadonlySet<number>> {
  const inside = new Set<number>();
  const silent = new Set<number>();
  for (const { concept, from, to, isOpen } of all) {
    // "Never" also says how bad something is ("never had such pain"): it still denies.
    const isOwn = to > from && !GRAMMAR.has(concept) && concept !== 'worst' && isOpen !== true;
    const places = concept === 'pseudo' ? silent : isOwn ? inside : undefined;
    for (let index = from; places && index <= to; index += 1) places.add(index);
  }
  const words = new Map<string, Set<number>>();
  for (const { concept, from, to } of all) {
    const isNegation = concept === 'no' || concept === 'not' || concept === 'not_after';
    if (!GRAMMAR.has(concept) || (isNegation && silent.has(to))) continue;
    const kind = isNegation && inside.has(to) ? 'inner' : concept;
    const places = words.get(kind) ?? new Set<number>();
    words.set(kind, places.add(isNegation ? to : from));
  }
  return words;
}
