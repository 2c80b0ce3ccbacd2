import { FREQUENT, type Language } from './language.ts';
import type { Atom } from './phrases.ts';
import type { Token } from './tokens.ts';

type Respelling = readonly (readonly [pattern: RegExp, by: string])[];

/** Unifies spellings that sound alike in a language, which people confuse when they write as they speak. */
const RESPELLINGS: Readonly<Record<Language, Respelling>> = Object.freeze({
  en: [
    [/ph/g, 'f'],
    [/ck|q|c(?![eiyh])/g, 'k'],
    [/c(?=[eiy])/g, 's'],
    [/y/g, 'i'],
    [/z/g, 's'],
    [/ea|ie|ei/g, 'e'],
  ],
  de: [
    [/ae/g, 'a'],
    [/oe/g, 'o'],
    [/ue/g, 'u'],
    [/ph|v/g, 'f'],
    [/th|dt|d(?=$|[^aeiouy])/g, 't'],
    [/ck|c(?!h)|q/g, 'k'],
    [/tz/g, 'z'],
    [/y/g, 'i'],
    [/ie/g, 'i'],
    [/(?<=[aeiou])h(?=[^aeiou]|$)/g, ''],
  ],
  fr: [
    [/ph/g, 'f'],
    [/qu|q|c(?![eiyh])|k/g, 'k'],
    [/c(?=[eiy])/g, 's'],
    [/eau|au/g, 'o'],
    [/ai|ei/g, 'e'],
    [/y/g, 'i'],
    [/e[mn](?=[^aeiou])/g, 'an'],
    [/(?<=[aeiou])m(?=[bp])/g, 'n'],
    [/(?<!c)h/g, ''],
    [/(?:er|ez|ent)$/, 'e'],
    [/(?<=.{3})(?:es?|[stdxzp])$/, ''],
    [/z/g, 's'],
  ],
  es: [
    [/ll/g, 'i'],
    [/v/g, 'b'],
    [/qu|k|q|c(?![eih])/g, 'k'],
    [/c(?=[ei])|z|x/g, 's'],
    [/(?<!c)h/g, ''],
    [/g(?=[ei])/g, 'j'],
    [/y/g, 'i'],
    [/m(?=[bp])/g, 'n'],
    [/(?<=ad)o$/g, 'o'],
  ],
  it: [
    [/ch|qu|k|q|c(?![ei])/g, 'k'],
    [/h/g, ''],
    [/j|y/g, 'i'],
    [/gli/g, 'li'],
    [/m(?=[bp])/g, 'n'],
  ],
});

/** Approximate sound of a word: words with the same key count as the same word. */
function soundOf(word: string, language: Language): string {
  let key = word;
  for (const [pattern, by] of RESPELLINGS[language]) key = key.replace(pattern, by);
  return key.replace(/(.)\1+/g, '$1');
}

/** Number of misspelt letters allowed in a word of this length. */
function slipsAllowed(length: number): 0 | 1 | 2 {
  return length >= 9 ? 2 : length >= 5 ? 1 : 0;
}

/** Letters of a word as bits: a fast test that two words differ too much. */
function lettersOf(word: string): number {
  let mask = 0;
  for (let index = 0; index < word.length; index += 1) mask |= 1 << ((word.charCodeAt(index) - 97) % 32);
  return mask;
}

/** Number of set bits. */
function countBits(mask: number): number {
  let bits = mask - ((mask >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

/** Rows before the current one, reused because words are short and this runs often. */
const rows = [new Uint8Array(64), new Uint8Array(64), new Uint8Array(64)] as const;

/**
 * Damerau-Levenshtein distance (a missing, added, changed or swapped letter counts one), or `limit + 1` if it exceeds
 * `limit`. With `prefix` the rest of `text` after the closest prefix is free.
 */
function distance(word: string, text: string, limit: number, prefix = false): number {
  const { length } = text;
  if (length > 60 || word.length > 60) return limit + 1;
  let [older, last, row]: readonly [Uint8Array, Uint8Array, Uint8Array] = rows;
  for (let column = 0; column <= length; column += 1) last[column] = column;
  for (let line = 1; line <= word.length; line += 1) {
    row[0] = line;
    let best = line;
    for (let column = 1; column <= length; column += 1) {
      const isSame = word[line - 1] === text[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (row[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwap =
        line > 1 && column > 1 && word[line - 1] === text[column - 2] && word[line - 2] === text[column - 1];
      if (isSwap) cost = Math.min(cost, (older[column - 2] ?? 0) + 1);
      row[column] = cost;
      if (cost < best) best = cost;
    }
    if (best > limit) return limit + 1;
    [older, last, row] = [last, row, older];
  }
  if (!prefix) return last[length] ?? limit + 1;
  let best = limit + 1;
  for (let column = 1; column <= length; column += 1) best = Math.min(best, last[column] ?? best);
  return best;
}

interface Spelt {
  readonly sound: string;
  readonly letters: number;
  readonly slips: number;
  readonly isPrefix: boolean;
  readonly ids: number[];
}

/** Clitics without their apostrophe ("jarrive", "dasthme"). */
const CLITICS: Partial<Record<Language, RegExp>> = { fr: /^(?:qu|[jdlsmntc])(?=.{3})/, it: /^(?:un|[dlmtsc])(?=.{3})/ };

/** Finds the lexicon words for a word of a text, including misspellings. */
export class WordIndex {
  readonly #language: Language;
  readonly #words = new Map<string, number[]>();
  readonly #prefixes = new Map<string, number[]>();
  readonly #suffixes = new Map<string, number[]>();
  readonly #parts: (readonly [text: string, id: number])[] = [];
  readonly #numbers: (readonly [atom: Extract<Atom, { kind: 'number' }>, id: number])[] = [];
  readonly #sounds = new Map<string, number[]>();
  readonly #spellings = new Map<string, Spelt>();
  /** Words by first letter and length, prefixes by first letter. */
  #wordsBy: ReadonlyMap<string, readonly Spelt[]> = new Map();
  #prefixesBy: ReadonlyMap<string, readonly Spelt[]> = new Map();
  readonly #plain: ReadonlySet<string>;
  readonly #ids = new Map<string, number>();
  /** Words that are complete entries: they are never read as a misspelling of another. */
  readonly #whole = new Set<string>();

  constructor(language: Language, plain: string) {
    this.#language = language;
    this.#plain = new Set(plain.split(/[\s,]+/));
  }

  /** Number of an atom; equal atoms have the same. `isWhole` marks a complete entry. */
  add(atom: Exclude<Atom, { kind: 'gap' }>, isExact: boolean, isWhole: boolean): number {
    if (isWhole && atom.kind === 'word') this.#whole.add(atom.text);
    const name = atom.kind === 'number' ? JSON.stringify(atom.ranges) : `${atom.kind}:${atom.text}:${isExact}`;
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const id = this.#ids.size;
    this.#ids.set(name, id);
    if (atom.kind === 'number') this.#numbers.push([atom, id]);
    else if (atom.kind === 'part') this.#parts.push([atom.text, id]);
    else if (atom.kind === 'suffix') push(this.#suffixes, atom.text, id);
    else this.#addSpelling(atom.kind, atom.text, id, isExact);
    return id;
  }

  #addSpelling(kind: 'word' | 'prefix', text: string, id: number, isExact: boolean): void {
    const isPrefix = kind === 'prefix';
    push(isPrefix ? this.#prefixes : this.#words, text, id);
    if (isExact) return;
    const sound = soundOf(text, this.#language);
    if (!isPrefix && sound.length >= 3) push(this.#sounds, sound, id);
    const key = `${kind}:${sound}`;
    const spelt = this.#spellings.get(key);
    if (spelt) spelt.ids.push(id);
    else {
      const slips = sound.length === 4 && !isPrefix ? 0.5 : slipsAllowed(isPrefix ? sound.length - 2 : sound.length);
      this.#spellings.set(key, { sound, letters: lettersOf(sound), slips, isPrefix, ids: [id] });
    }
  }

  /** Call it once after the last `add`. */
  finish(): this {
    const words = new Map<string, Spelt[]>();
    const prefixes = new Map<string, Spelt[]>();
    for (const spelt of this.#spellings.values()) {
      if (spelt.slips === 0) continue;
      if (spelt.isPrefix) push(prefixes, spelt.sound.slice(0, 1), spelt);
      else push(words, `${spelt.sound[0]}${spelt.sound.length}`, spelt);
    }
    this.#wordsBy = words;
    this.#prefixesBy = prefixes;
    return this;
  }

  /** Atoms that match a word: exactly, else by sound, else by its closest spelling. */
  find({ text, value }: Token, withSlips: boolean): readonly number[] {
    const ids = this.#exact(text);
    for (const [{ ranges }, id] of value === undefined ? [] : this.#numbers) {
      if (value !== undefined && ranges.some(([low, high]) => value >= low && value <= high)) ids.push(id);
    }
    const isWord = this.#whole.has(text) || value !== undefined || text.length < 3;
    if (isWord || !withSlips || this.#plain.has(text) || FREQUENT[this.#language].has(text)) return ids;
    const sound = soundOf(text, this.#language);
    const alike = (this.#sounds.get(sound) ?? this.#withoutClitic(text) ?? []).filter((id) => !ids.includes(id));
    if (alike.length > 0) return [...ids, ...alike];
    // The start of a long word may be known and its end misspelt ("blutzuker").
    return text.length > (ids.length > 0 ? 7 : 3) ? [...ids, ...this.#closest(sound, ids.length > 0)] : ids;
  }

  /** True if a word is in the lexicon exactly. */
  knows(text: string): boolean {
    return this.#words.has(text);
  }

  #exact(text: string): number[] {
    const ids = [...(this.#words.get(text) ?? [])];
    for (let length = 2; length <= text.length; length += 1) {
      const found = this.#prefixes.get(text.slice(0, length));
      if (found) ids.push(...found);
      const ending = this.#suffixes.get(text.slice(-length));
      if (ending) ids.push(...ending);
    }
    for (const [part, id] of this.#parts) if (text.includes(part)) ids.push(id);
    return ids;
  }

  #withoutClitic(text: string): readonly number[] | undefined {
    const clitic = CLITICS[this.#language];
    const rest = clitic === undefined ? text : text.replace(clitic, '');
    if (rest === text) return undefined;
    const ids = this.#exact(rest);
    return ids.length > 0 ? ids : this.#sounds.get(soundOf(rest, this.#language));
  }

  #closest(sound: string, isKnown: boolean): readonly number[] {
    const letters = lettersOf(sound);
    let best = 3;
    let ids: number[] = [];
    const look = (spelt: Spelt, far: number) => {
      if (far > Math.ceil(spelt.slips) || far > best || (isKnown && far === 0)) return;
      if (far < best) ids = [];
      best = far;
      ids.push(...spelt.ids);
    };
    // Misspellings occur inside a word: the first letter is right, or swapped with the second.
    for (const first of new Set(sound.slice(0, 2))) {
      for (let length = Math.max(sound.length - 2, 4); length <= sound.length + 2; length += 1) {
        for (const spelt of this.#wordsBy.get(`${first}${length}`) ?? []) {
          if (Math.abs(length - sound.length) > Math.ceil(spelt.slips) || !beginsAlike(spelt.sound, sound)) continue;
          // In a word of four letters only swapped or repeated letters are allowed.
          const apart = countBits(spelt.letters ^ letters);
          if (apart > (spelt.slips < 1 ? 0 : 2 * spelt.slips)) continue;
          look(spelt, distance(spelt.sound, sound, Math.ceil(spelt.slips)));
        }
      }
      for (const spelt of this.#prefixesBy.get(first) ?? []) {
        if (spelt.sound.length > sound.length + 1 || !beginsAlike(spelt.sound, sound)) continue;
        if (countBits(spelt.letters & ~letters) > spelt.slips) continue;
        look(spelt, distance(spelt.sound, sound, spelt.slips, true));
      }
    }
    return ids;
  }
}

function beginsAlike(one: string, other: string): boolean {
  return one[0] === other[0] || (one[0] === other[1] && one[1] === other[0]);
}

function push<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}
