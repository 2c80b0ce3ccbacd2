import { GAP_WORDS, parseRange, type Range } from './phrases.ts';
import type { Reading, Sign } from './reading.ts';

/**
 * One-line condition. All its words must occur near each other; `a|b` is a choice.
 * - `chest`: the concept as a present fact
 * - `-breathe`: a function that the body does not perform
 * - `?arm`: a concept in any sense
 * - `#20..54`: a number
 * - `!muscle`: must not occur nearby; `!<ask` must not occur before
 * - `~8`: maximum words between first and last (default 12, `~*` is the full text)
 */
export interface Condition {
  readonly text: string;
  readonly terms: readonly (readonly Choice[])[];
  readonly excluded: readonly Choice[];
  readonly excludedBefore: readonly Choice[];
  readonly within: number;
}

interface Choice {
  readonly concept: string;
  readonly mode: 'present' | 'refused' | 'any' | 'number';
  readonly range: Range;
}

interface TokenRange {
  readonly from: number;
  readonly to: number;
}

const DEFAULT_WITHIN = 12;
const NO_RANGE: Range = [0, 0];

/** Parses a condition; throws a TypeError if it is invalid. */
export function parseCondition(text: string): Condition {
  const words = text.split(/\s+/);
  const near = words.find((word) => word.startsWith('~'))?.slice(1);
  const within = near === undefined ? DEFAULT_WITHIN : near === '*' ? Number.POSITIVE_INFINITY : Number(near);
  const excluded = words.filter((word) => /^![^<]/.test(word)).flatMap((word) => parseChoices(word.slice(1)));
  const excludedBefore = words.filter((word) => word.startsWith('!<')).flatMap((word) => parseChoices(word.slice(2)));
  const terms = words.filter((word) => !/^[~!]/.test(word)).map(parseChoices);
  if (terms.length === 0 || Number.isNaN(within)) throw new TypeError(`the condition "${text}" is invalid`);
  return { text, terms, excluded, excludedBefore, within };
}

function parseChoices(word: string): readonly Choice[] {
  return word.split('|').map((choice) => {
    if (choice.startsWith('#')) return { concept: '#', mode: 'number', range: parseRange(choice.slice(1)) };
    const mode = choice.startsWith('-') ? 'refused' : choice.startsWith('?') ? 'any' : 'present';
    return { concept: choice.replace(/^[-?]/, ''), mode, range: NO_RANGE };
  });
}

/** Concepts of a condition. */
export function conceptsOf({ terms, excluded, excludedBefore }: Condition): readonly string[] {
  return [...terms.flat(), ...excluded, ...excludedBefore]
    .filter(({ mode }) => mode !== 'number')
    .map(({ concept }) => concept);
}

/** True if a text names the subject of a condition, even if denied, past or a question. */
export function isNamed(condition: Condition, reading: Reading, facts: ReadonlySet<string>): boolean {
  const anyhow = (choices: readonly Choice[]) =>
    choices.map((choice) => (choice.mode === 'number' ? choice : ({ ...choice, mode: 'any' } as const)));
  return holds({ ...condition, terms: condition.terms.map(anyhow), excluded: [], excludedBefore: [] }, reading, facts);
}

/** True if a condition holds in a text; `facts` are concepts known without being written. */
export function holds(condition: Condition, reading: Reading, facts: ReadonlySet<string>): boolean {
  const lists: (readonly TokenRange[])[] = [];
  for (const choices of condition.terms) {
    if (choices.some(({ concept, mode }) => mode !== 'refused' && facts.has(concept))) continue;
    const places = choices.flatMap((choice) => placesOf(choice, reading));
    if (places.length === 0) return false;
    lists.push(places.sort((one, other) => one.from - other.from));
  }
  const longer = lists.flat().filter(({ from, to }) => to > from && to - from < GAP_WORDS);
  // The water of a water tablet is part of the match: it excludes nothing.
  const isOutside = ({ from, to }: TokenRange) => !longer.some((place) => place.from <= from && to <= place.to);
  const barred = condition.excluded.flatMap((choice) => placesOf(choice, reading)).filter(isOutside);
  const barredBefore = condition.excludedBefore.flatMap((choice) => placesOf(choice, reading)).filter(isOutside);
  const isBarred = (low: number, high: number) =>
    barred.some(({ from, to }) => to >= low - condition.within && from <= high + condition.within) ||
    barredBefore.some(({ from, to }) => to >= low - condition.within && from <= low);
  return isNear(lists, isBarred, condition.within);
}

function placesOf({ concept, mode, range: [low, high] }: Choice, reading: Reading): readonly TokenRange[] {
  if (mode === 'number') {
    return reading.numbers.filter(({ value }) => value >= low && value <= high).map(({ at }) => ({ from: at, to: at }));
  }
  return (reading.signs.get(concept) ?? []).filter((sign) => fits(sign, mode));
}

function fits({ denied, refused, setting }: Sign, mode: 'present' | 'refused' | 'any'): boolean {
  if (mode === 'any') return true;
  return setting === 'present' && (mode === 'refused' ? refused : !denied);
}

/** True if one position of every list lies within this many words, and nothing excludes it. */
function isNear(
  lists: readonly (readonly TokenRange[])[],
  isBarred: (low: number, high: number) => boolean,
  within: number,
): boolean {
  const [first, ...others] = lists;
  if (first === undefined) return true;
  return first.some((start) => {
    let low = start.from;
    let high = start.to;
    for (const places of others) {
      const nearest = nearestTo(places, low, high);
      if (nearest === undefined) return false;
      low = Math.min(low, nearest.from);
      high = Math.max(high, nearest.to);
      if (high - low > within) return false;
    }
    return !isBarred(low, high);
  });
}

/** Position closest to a range of text; positions are sorted. */
function nearestTo(places: readonly TokenRange[], low: number, high: number): TokenRange | undefined {
  let start = 0;
  let end = places.length;
  while (start < end) {
    const middle = (start + end) >>> 1;
    if ((places[middle]?.from ?? 0) < low) start = middle + 1;
    else end = middle;
  }
  const [before, after] = [places[start - 1], places[start]];
  if (before === undefined || after === undefined) return before ?? after;
  return after.from - high < low - before.to ? after : before;
}
