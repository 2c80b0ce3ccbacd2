import {
  FUNCTIONS,
  findAnimals,
  findCited,
  findFamily,
  GRAMMAR,
  ILLNESSES,
  LIFE_SIGNS,
  SAYS_WHEN,
  WHOLE_COMPLAINTS,
} from './grammar.ts';
import type { Language } from './language.ts';
import { normalise } from './normalise.ts';
import { type CompiledLexicon, findSightings, type Sighting } from './sightings.ts';
import { readTokens, type Token, type Tokens } from './tokens.ts';

/** Concept found in a text, with its position, denial and time. */
export interface Sign {
  readonly concept: string;
  /** Positions of its first and last word, for distances. */
  readonly from: number;
  readonly to: number;
  readonly denied: boolean;
  readonly refused: boolean;
  readonly setting: Setting;
}

/** Text as rules see it. */
export interface Reading {
  readonly language: Language;
  readonly signs: ReadonlyMap<string, readonly Sign[]>;
  /** Returns the words of a sign. */
  readonly wordsOf: (sign: Pick<Sign, 'from' | 'to'>) => string;
  /** Numbers with their positions. */
  readonly numbers: readonly { readonly value: number; readonly at: number }[];
  /** Concepts of {@link GRAMMAR} found in the text. */
  readonly grammar: ReadonlySet<string>;
  readonly hasQuestion: boolean;
  /** Length in words. */
  readonly length: number;
}

interface ReadOptions {
  /** True if misspelt words are recognized. */
  readonly withSlips: boolean;
  /** Default setting of a sentence without an indication of time. */
  readonly setting?: Setting;
  /** Distance in words that the end of a sentence counts for. */
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
  const found = findSightings(tokens, compiled, withSlips);
  const all = withoutIdioms(found);
  const signs = all.filter(({ concept }) => !GRAMMAR.has(concept));
  const denials = findDenials({ list, signs, words: grammarWords(all) });
  const settingOf = findSettings(tokens, all);
  const nowIn = new Set(
    all.flatMap(({ concept, from }) => (concept === 'now' || concept === 'what_to_do' ? [list[from]?.sentence] : [])),
  );
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
  // Idioms mention things that they do not mean: a wrongly detected language must find nothing in them.
  const meant = new Set(all);
  for (const { concept, from, to } of found.filter((one) => !meant.has(one) && !GRAMMAR.has(one.concept))) {
    const sign = { concept, from: placeOf(list, from), to: placeOf(list, to), ...NONE, setting: 'general' } as const;
    byConcept.set(concept, [...(byConcept.get(concept) ?? []), sign]);
  }
  const numbers = list.flatMap(({ value, at }) => (value === undefined ? [] : [{ value, at }]));
  const wordsOf = ({ from, to }: Pick<Sign, 'from' | 'to'>) =>
    list
      .filter(({ at }) => at >= from && at <= to)
      .map(({ text, value }) => value ?? text)
      .join(' ');
  const grammar = new Set(found.flatMap(({ concept }) => (GRAMMAR.has(concept) ? [concept] : [])));
  const hasQuestion = tokens.sentences.some(({ isQuestion }) => isQuestion);
  return { language, signs: byConcept, numbers, wordsOf, grammar, hasQuestion, length: list.length };
}

function placeOf(list: readonly Token[], index: number): number {
  return list[index]?.at ?? 0;
}

/** "Dying of boredom" is not a wish to die: drops sightings that overlap with an idiom. */
function withoutIdioms(sightings: readonly Sighting[]): readonly Sighting[] {
  const idioms = sightings.filter(({ concept }) => concept === 'idiom');
  if (idioms.length === 0) return sightings;
  return sightings.filter((one) => !idioms.some((idiom) => idiom.from <= one.to && one.from <= idiom.to));
}

/**
 * Positions of grammar words. A negation within a longer entry ("no air") belongs to that entry. It is listed as
 * `inner`, and only turns a body function into a refused one.
 */
function grammarWords(all: readonly Sighting[]): ReadonlyMap<string, ReadonlySet<number>> {
  const inside = new Set<number>();
  const silent = new Set<number>();
  for (const { concept, from, to, isOpen } of all) {
    // "Never" may express intensity too ("never had such pain"): it still denies.
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

/** Time setting of a part of a sentence: present, past or general. */
type Setting = 'present' | 'past' | 'general';

/** Question words count only within this many first words. */
const FIRST_WORDS = 4;

/** Returns the setting of a sighting. */
type SettingOf = (sighting: Sighting) => Setting;

interface Part {
  readonly kinds: Set<string>;
  readonly isQuestion: boolean;
  readonly from: number;
  /** Concepts of the whole sentence, or of its part before or after "but". */
  readonly whole: Set<string>;
}

/**
 * Determines the setting of every word. A sentence has one, or one before and one after "but". A clause after a colon,
 * a semicolon or a bracket may have its own. In doubt it is the present. A word such as "now" or "since" overrides a
 * year or "years ago", except when the text says that all is well today.
 */
function findSettings({ list, sentences }: Tokens, sightings: readonly Sighting[]): SettingOf {
  const turns = new Set(sightings.filter(({ concept }) => concept === 'but').map(({ from }) => from));
  const parts: Part[] = [];
  const partOf = list.map(({ sentence, before }, index) => {
    const isNew = index === 0 || list[index - 1]?.sentence !== sentence || turns.has(index);
    if (isNew || before === '.') {
      const whole = isNew ? new Set<string>() : parts.at(-1)?.whole;
      const isQuestion = sentences[sentence]?.isQuestion ?? false;
      parts.push({ kinds: new Set(), isQuestion, from: index, whole: whole ?? new Set() });
    }
    return parts.length - 1;
  });
  // "L'aspirine aide-t-elle": the "elle" is part of the question, not a person.
  const asking = sightings.filter(({ concept, from, to }) => concept === 'asks' && to > from);
  const isAsking = (index: number) => asking.some(({ from, to }) => from <= index && index <= to);
  for (const { concept, from } of sightings) {
    if (concept === 'person' && isAsking(from)) continue;
    const part = parts[partOf[from] ?? 0];
    const kind = concept === 'asks' && part && from - part.from <= FIRST_WORDS ? 'asks_first' : concept;
    part?.kinds.add(kind);
    part?.whole.add(kind);
  }
  const settings = parts.map(({ kinds, whole, isQuestion }) =>
    settingOf([...kinds].some((kind) => SAYS_WHEN.has(kind)) ? kinds : whole, isQuestion),
  );
  const family = findFamily(list, sightings);
  const isAnimals = findAnimals(list, sightings);
  const isCited = findCited(list, sightings);
  return ({ concept, from }) => {
    if (family(from, concept)) return 'past';
    if (isAnimals(from) || isCited(from) || (ILLNESSES.has(concept) && isFear(parts[partOf[from] ?? 0]?.whole)))
      return 'general';
    const known = settings[partOf[from] ?? 0] ?? 'present';
    if (known === 'asked') return ILLNESSES.has(concept) ? 'general' : 'present';
    return known;
  };
}

/** "I dread a stroke, although I am well": the illness is feared, and other symptoms still count. */
function isFear(kinds: ReadonlySet<string> | undefined): boolean {
  return kinds?.has('fear') === true && kinds.has('well') && !kinds.has('now');
}

function settingOf(kinds: ReadonlySet<string>, isQuestion: boolean): Setting | 'asked' {
  const isWondering = isQuestion && kinds.has('if') && kinds.has('would');
  const isSupposed = (kinds.has('supposed') || isWondering) && !kinds.has('as_if');
  const isNow = (kinds.has('now') || (kinds.has('what_to_do') && !isSupposed)) && !kinds.has('well');
  if (kinds.has('fiction') || (isSupposed && !isNow)) return 'general';
  if (kinds.has('topic') && !isNow) return 'general';
  if (kinds.has('asks_first') && isQuestion && !isNow && !kinds.has('person')) return 'general';
  if (kinds.has('past') && !isNow) return 'past';
  return isQuestion && !isNow && !kinds.has('person') ? 'asked' : 'present';
}

/** Maximum words between a denial and the denied word. */
const REACH = 7;
/** Maximum words between a negation and its verb. */
const VERB_REACH = 5;
/** Maximum words between a negation and the denied complaint. */
const COMPLAINT_REACH = 4;
/** "Chest pain: no": words that a single word of denial looks back. */
const DENIED_WORDS = 3;
/** Maximum words of an item in a list of denied ones. */
const LIST_ITEM_WORDS = 3;

/** Denial of a sighting. */
interface Denial {
  /** The fact is absent: "no fever". */
  readonly denied: boolean;
  /** The body function is absent: "cannot breathe", "no pulse". */
  readonly refused: boolean;
}

const NONE: Denial = Object.freeze({ denied: false, refused: false });

/** Sightings by their first word, and the positions of grammar concepts. */
interface Grammar {
  readonly list: readonly Token[];
  readonly signs: readonly Sighting[];
  /**
   * Positions of `no`, `not`, `not_after`, `have`, `but`, `or`, `and`, `subject`, `denied_after`, `ruled_out`, `inner`
   * (see `reading.ts`).
   */
  readonly words: ReadonlyMap<string, ReadonlySet<number>>;
}

/**
 * Finds denied sightings. In doubt a sighting counts as a sign: a denial covers few words, never more than a clause.
 */
function findDenials(grammar: Grammar): ReadonlyMap<Sighting, Denial> {
  const denials = new Map<Sighting, Denial>();
  const starting = groupBy(grammar.signs, ({ from }) => from);
  const ending = groupBy(grammar.signs, ({ to }) => to);
  const has = (kind: string, index: number) => grammar.words.get(kind)?.has(index) ?? false;
  for (let index = 0; index < grammar.list.length; index += 1) {
    if (has('inner', index)) deny(index, 'inner', grammar, starting, denials);
    if (has('not', index) || has('no', index) || has('not_after', index)) denyAround(index, grammar, denials);
    if (has('not_after', index) && lookAround(index, grammar, starting, ending, denials)) continue;
    if (has('not', index)) deny(index, isListed(index, grammar) ? 'no' : 'not', grammar, starting, denials);
    else if (has('no', index)) deny(index, 'no', grammar, starting, denials);
    if (has('ruled_out', index)) denyBefore(index, REACH, grammar, ending, denials);
    else if (has('denied_after', index)) denyBefore(index, DENIED_WORDS, grammar, ending, denials);
  }
  return denials;

  /** "do not have", "no tengo": denies the following words like "no". */
  function isListed(index: number, { list }: Grammar): boolean {
    for (let next = index + 1; next <= index + 2 && next < list.length; next += 1) if (has('have', next)) return true;
    return false;
  }
}

/** "Setzen Sie die Tabletten nicht ab": the negation is in the gap of an entry. */
function denyAround(index: number, { signs }: Grammar, denials: Map<Sighting, Denial>): void {
  for (const sign of signs) {
    if (sign.isOpen !== true || sign.from >= index || sign.to <= index) continue;
    denials.set(sign, { denied: true, refused: FUNCTIONS.has(sign.concept) || (denials.get(sign)?.refused ?? false) });
  }
}

/** Denies the words after a negation within its reach. */
function deny(
  start: number,
  kind: 'no' | 'not' | 'inner',
  grammar: Grammar,
  starting: ReadonlyMap<number, readonly Sighting[]>,
  denials: Map<Sighting, Denial>,
): void {
  const { words } = grammar;
  const end = endOfReach(start, grammar);
  let isNext = true;
  let isComplaint = false;
  let hasVerb = false;
  for (let index = start + 1; index < end; index += 1) {
    // "Never had difficulty breathing": denies the difficulty, not the breath.
    isComplaint ||= index <= start + COMPLAINT_REACH && words.get('complaint')?.has(index) === true;
    const isVerb = starting.get(index)?.some(({ concept }) => FUNCTIONS.has(concept)) ?? false;
    // "Shows no fracture and moves well": a verb after "and" needs a negation of its own.
    if (isVerb && !hasVerb && index > start + 2 && words.get('and')?.has(index - 1)) return;
    hasVerb ||= isVerb;
    for (const sign of starting.get(index) ?? []) {
      const isFunction = FUNCTIONS.has(sign.concept) && !(kind !== 'inner' && isPartOfComplaint(sign, starting));
      const isVerbs = kind !== 'no' && isFunction && !isComplaint && index - start <= VERB_REACH;
      const refused =
        (isNext && LIFE_SIGNS.has(sign.concept) && !isPartOfComplaint(sign, starting)) ||
        isVerbs ||
        (denials.get(sign)?.refused ?? false);
      if (refused || kind !== 'inner') denials.set(sign, { denied: true, refused });
    }
    isNext = words.get('or')?.has(index) === true || (isNext && !starting.has(index));
    // The verb takes the negation: in "cannot move her arm" the arm is not denied.
    const verb = kind !== 'no' && !isComplaint && starting.get(index)?.find((sign) => FUNCTIONS.has(sign.concept));
    if (verb && !words.get('or')?.has(verb.to + 1)) return;
  }
}

/** True for the "breath" of "short of breath": the denial applies to the whole. */
function isPartOfComplaint(sign: Sighting, starting: ReadonlyMap<number, readonly Sighting[]>): boolean {
  for (let from = sign.from; from >= sign.from - 3; from -= 1) {
    const around = starting.get(from) ?? [];
    if (around.some((one) => WHOLE_COMPLAINTS.has(one.concept) && one.to >= sign.to && one.to > one.from)) return true;
  }
  return false;
}

/** First word outside of a negation's reach. */
function endOfReach(start: number, { list, words }: Grammar): number {
  let end = start + 1;
  for (; end < list.length && end <= start + REACH; end += 1) {
    const token = list[end];
    if (token?.before === '.' || words.get('but')?.has(end)) return end;
    if (token?.before === ',' && end > start + 1) {
      const last = endOfList(end, { list, words });
      return last ?? end;
    }
    const isNewClause = words.get('and')?.has(end) && (words.get('subject')?.has(end + 1) ?? false);
    if (isNewClause) return end;
  }
  return end;
}

/** End of a list "…, b, c or d" that continues at a comma; undefined if there is no list. */
function endOfList(comma: number, { list, words }: Pick<Grammar, 'list' | 'words'>): number | undefined {
  let item = 0;
  let isClosing = false;
  for (let index = comma; index <= list.length && index < comma + 24; index += 1) {
    const token = list[index];
    if (token === undefined || (token.before === '.' && index > comma)) return isClosing ? index : undefined;
    if (token.before === ',' && index > comma) {
      if (isClosing) return index;
      item = 0;
    }
    if (words.get('subject')?.has(index)) return undefined;
    if (words.get('or')?.has(index) || words.get('and')?.has(index)) {
      isClosing = true;
      item = 0;
      continue;
    }
    item += 1;
    if (item > LIST_ITEM_WORDS) return undefined;
  }
  return undefined;
}

/**
 * Handles negations after their verb ("Er atmet nicht", "elle respire plus"), between its parts ("hört nicht auf"), or
 * after the denied word ("Fieber hat sie nicht"). Returns true if it found one.
 */
function lookAround(
  index: number,
  { list, words }: Grammar,
  starting: ReadonlyMap<number, readonly Sighting[]>,
  ending: ReadonlyMap<number, readonly Sighting[]>,
  denials: Map<Sighting, Denial>,
): boolean {
  const isOwn = ({ concept }: Sighting) => FUNCTIONS.has(concept) || LIFE_SIGNS.has(concept);
  const refuse = (signs: readonly Sighting[]) => {
    for (const sign of signs) denials.set(sign, { denied: true, refused: true });
    return signs.length > 0;
  };
  let nearest: readonly Sighting[] = [];
  let isBare = true;
  for (let before = index - 1; before >= 0 && before >= index - VERB_REACH; before -= 1) {
    if (list[before + 1]?.before !== '') break;
    const signs = ending.get(before) ?? [];
    if (refuse(signs.filter(isOwn))) return true;
    if (isBare && signs.length > 0) nearest = [...nearest, ...signs];
    isBare &&=
      signs.length > 0 || (words.get('have')?.has(before) ?? false) || (words.get('subject')?.has(before) ?? false);
  }
  for (let after = index + 1; after <= index + VERB_REACH && list[after]?.before === ''; after += 1) {
    const signs = starting.get(after) ?? [];
    if (words.get('complaint')?.has(after)) break;
    if (refuse(signs.filter(isOwn))) return true;
    if (signs.length > 0 && after > index + 1) break;
  }
  for (const sign of nearest) denials.set(sign, { denied: true, refused: false });
  return nearest.length > 0;
}

/** "Chest pain: no", "chest pain is absent", "a stroke was ruled out". */
function denyBefore(
  index: number,
  reach: number,
  { list }: Grammar,
  ending: ReadonlyMap<number, readonly Sighting[]>,
  denials: Map<Sighting, Denial>,
): void {
  const isLast = list[index + 1] === undefined || list[index + 1]?.before !== '';
  if (!isLast && reach < REACH) return;
  for (let before = index - 1; before >= 0 && before >= index - reach; before -= 1) {
    if (reach === REACH && list[before + 1]?.before === '.') return;
    for (const sign of ending.get(before) ?? []) denials.set(sign, { denied: true, refused: false });
  }
}

function groupBy<Key>(
  signs: readonly Sighting[],
  keyOf: (sign: Sighting) => Key,
): ReadonlyMap<Key, readonly Sighting[]> {
  const groups = new Map<Key, Sighting[]>();
  for (const sign of signs) {
    const key = keyOf(sign);
    const group = groups.get(key);
    if (group) group.push(sign);
    else groups.set(key, [sign]);
  }
  return groups;
}

/** Denial of a sighting. */
function denialOf(denials: ReadonlyMap<Sighting, Denial>, sign: Sighting): Denial {
  return denials.get(sign) ?? NONE;
}
