import type { Language } from './language.ts';
import { FREQUENT } from './language.ts';
import type { Atom } from './phrases.ts';
import { countBits, distance, lettersOf, slipsAllowed, soundOf } from './spelling.ts';
import type { Token } from './tokens.ts';

interface Spelt {
  readonly sound: string;
  readonly letters: number;
  readonly slips: number;
  readonly isPrefix: boolean;
  readonly ids: number[];
}

/** Letters that stand for a clitic when the apostrophe is missing ("jarrive", "dasthme"). */
const CLITICS: Partial<Record<Language, RegExp>> = { fr: /^(?:qu|[jdlsmntc])(?=.{3})/, it: /^(?:un|[dlmtsc])(?=.{3})/ };

/** Finds which words of a lexicon a word of a text stands for, slips of the pen included. */
export class WordIndex {
  readonly #language: Language;
  readonly #words = new Map<string, number[]>();
  readonly #prefixes = new Map<string, number[]>();
  readonly #suffixes = new Map<string, number[]>();
  readonly #parts: (readonly [text: string, id: number])[] = [];
  readonly #numbers: (readonly [atom: Extract<Atom, { kind: 'number' }>, id: number])[] = [];
  readonly #sounds = new Map<string, number[]>();
  readonly #spelt = new Map<string, Spelt>();
  /** By first letter and length, and beginnings of words by first letter. */
  #wordsBy: ReadonlyMap<string, readonly Spelt[]> = new Map();
  #prefixesBy: ReadonlyMap<string, readonly Spelt[]> = new Map();
  readonly #plain: ReadonlySet<string>;
  readonly #ids = new Map<string, number>();
  /** Words that are an entry by themselves: they are never taken for a slip of another. */
  readonly #whole = new Set<string>();

  constructor(language: Language, plain: string) {
    this.#language = language;
    this.#plain = new Set(plain.split(/[\s,]+/));
  }

  /** The number of an atom; the same for the same atom. `isWhole` says that it is an entry by itself. */
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
    else this.#addSpelt(atom.kind, atom.text, id, isExact);
    return id;
  }

  #addSpelt(kind: 'word' | 'prefix', text: string, id: number, isExact: boolean): void {
    const isPrefix = kind === 'prefix';
    push(isPrefix ? this.#prefixes : this.#words, text, id);
    if (isExact) return;
    const sound = soundOf(text, this.#language);
    if (!isPrefix && sound.length >= 3) push(this.#sounds, sound, id);
    const key = `${kind}:${sound}`;
    const spelt = this.#spelt.get(key);
    if (spelt) spelt.ids.push(id);
    else {
      const slips = sound.length === 4 && !isPrefix ? 0.5 : slipsAllowed(isPrefix ? sound.length - 2 : sound.length);
      this.#spelt.set(key, { sound, letters: lettersOf(sound), slips, isPrefix, ids: [id] });
    }
  }

  /** To be called once after the last `add`. */
  finish(): this {
    const words = new Map<string, Spelt[]>();
    const prefixes = new Map<string, Spelt[]>();
    for (const spelt of this.#spelt.values()) {
      if (spelt.slips === 0) continue;
      if (spelt.isPrefix) push(prefixes, spelt.sound.slice(0, 1), spelt);
      else push(words, `${spelt.sound[0]}${spelt.sound.length}`, spelt);
    }
    this.#wordsBy = words;
    this.#prefixesBy = prefixes;
    return this;
  }

  /** The atoms that a word stands for: as written, else by sound, else by its closest spelling. */
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
    // The beginning of a long word may be known and its end misspelt ("blutzuker").
    return text.length > (ids.length > 0 ? 7 : 3) ? [...ids, ...this.#closest(sound, ids.length > 0)] : ids;
  }

  /** Whether a word stands in the lexicon as it is written. */
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
    // Slips happen inside a word: its first letter is right, or has changed places with the second.
    for (const first of new Set(sound.slice(0, 2))) {
      for (let length = Math.max(sound.length - 2, 4); length <= sound.length + 2; length += 1) {
        for (const spelt of this.#wordsBy.get(`${first}${length}`) ?? []) {
          if (Math.abs(length - sound.length) > Math.ceil(spelt.slips) || !beginsAlike(spelt.sound, sound)) continue;
          // A word of four letters is only forgiven letters that changed places or came twice.
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
