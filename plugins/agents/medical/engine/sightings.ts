import { setImmediate } from 'node:timers/promises';
import { FUNCTIONS, GRAMMAR, INSTRUCTIONS } from './grammar.ts';
import { LANGUAGES, type Language } from './language.ts';
import { normalise } from './normalise.ts';
import { GAP_WORDS, type Lexicon, type Phrase, parsePhrases } from './phrases.ts';
import type { Token, Tokens } from './tokens.ts';
import { WordIndex } from './word-index.ts';

/** Concept of the lexicon at a position in a text. */
export interface Sighting {
  readonly concept: string;
  /** First and last word. */
  readonly from: number;
  readonly to: number;
  /**
   * True for an instruction or body function whose entry has a gap and no negation: a negation in the gap denies it.
   */
  readonly isOpen?: boolean;
}

/** Numbers of atoms; undefined means a gap. */
type Pattern = readonly (number | undefined)[];

interface Entry {
  readonly concept: string;
  readonly isFirst: boolean;
  readonly pattern: Pattern;
  readonly isOpen: boolean;
}

/** Lexicon prepared for search. */
export interface CompiledLexicon {
  readonly lexicon: Lexicon;
  readonly aliases: ReadonlyMap<string, string>;
  readonly index: WordIndex;
  readonly byFirst: ReadonlyMap<number, readonly Entry[]>;
}

/** Concepts that deny nearby words. */
const NEGATIONS: ReadonlySet<string> = new Set(['no', 'not', 'not_after']);

function textsOf(atoms: Phrase['atoms']): readonly string[] {
  return atoms.flatMap((atom) => ('text' in atom ? [atom.text] : []));
}

/** Lexicons of all languages for one purpose, prepared for search once per process. */
export interface CompiledLexicons {
  /** Returns a prepared lexicon; preparing one takes a fifth of a second. */
  of(language: Language): CompiledLexicon;
  isReady(language: Language): boolean;
  /** Prepares all lexicons in slices, so that other work is not delayed for long. */
  prepare(): Promise<void>;
}

/** Longest slice of preparation, in milliseconds. */
const SLICE_MS = 10;

export function compileLexicons(lexicons: Readonly<Record<Language, Lexicon>>): CompiledLexicons {
  const compiled = new Map<Language, CompiledLexicon>();
  return {
    of(language) {
      const known = compiled.get(language);
      if (known) return known;
      const steps = compileInSteps(lexicons[language]);
      let step = steps.next();
      while (!step.done) step = steps.next();
      compiled.set(language, step.value);
      return step.value;
    },
    isReady: (language) => compiled.has(language),
    async prepare() {
      let sliceEndsAt = performance.now() + SLICE_MS;
      for (const language of LANGUAGES) {
        const steps = compileInSteps(lexicons[language]);
        let step = compiled.has(language) ? undefined : steps.next();
        while (step && !step.done) {
          if (performance.now() > sliceEndsAt) {
            await setImmediate();
            sliceEndsAt = performance.now() + SLICE_MS;
          }
          step = steps.next();
        }
        if (step && !compiled.has(language)) compiled.set(language, step.value);
      }
    },
  };
}

/** Entries prepared in one step. */
const STEP = 100;

function* compileInSteps(lexicon: Lexicon): Generator<undefined, CompiledLexicon, undefined> {
  const index = new WordIndex(lexicon.language, lexicon.plain);
  const byFirst = new Map<number, Entry[]>();
  const phrases: Phrase[] = [];
  for (const concept of Object.keys(lexicon.concepts)) {
    phrases.push(...parsePhrases(lexicon, concept));
    yield;
  }
  const negations = new Set(
    phrases.flatMap(({ concept, atoms }) => (NEGATIONS.has(concept) && atoms.length === 1 ? textsOf(atoms) : [])),
  );
  for (const [at, phrase] of phrases.entries()) {
    if (at % STEP === 0) yield;
    const pattern = patternOf(phrase, index);
    const [first] = pattern;
    if (first === undefined) throw new TypeError(`an entry of "${phrase.concept}" begins with a gap or is empty`);
    const others = byFirst.get(first);
    const isOpen =
      (INSTRUCTIONS.has(phrase.concept) || FUNCTIONS.has(phrase.concept)) &&
      pattern.includes(undefined) &&
      !textsOf(phrase.atoms).some((text) => negations.has(text));
    const entry = { concept: phrase.concept, isFirst: phrase.isFirst, pattern, isOpen };
    if (others) others.push(entry);
    else byFirst.set(first, [entry]);
  }
  return { lexicon, aliases: readAliases(lexicon.aliases), index: index.finish(), byFirst };
}

function readAliases(aliases: string): ReadonlyMap<string, string> {
  const pairs = aliases.split(/\s+/).filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      // Normalise like the words of a message: with its accent, "niño" would match no lexicon.
      const [short = '', long = ''] = normalise(pair).split('=');
      return [short, long.replaceAll('_', ' ')];
    }),
  );
}

/** Grammar words are short and decisive: they are never inferred from a misspelling. */
function patternOf({ concept, atoms }: Phrase, index: WordIndex): Pattern {
  return atoms.map((atom) =>
    atom.kind === 'gap' ? undefined : index.add(atom, GRAMMAR.has(concept), atoms.length === 1),
  );
}

/** Finds every concept in a text, each phrase at each position. */
export function findSightings({ list }: Tokens, compiled: CompiledLexicon, withSlips: boolean): readonly Sighting[] {
  const known = new Map<string, ReadonlySet<number>>();
  const atoms = list.map((token) => atomsOf(token, compiled.index, withSlips, known));
  const found = new Map<string, Sighting>();
  for (let from = 0; from < list.length; from += 1) {
    for (const first of atoms[from] ?? []) {
      for (const { concept, isFirst, pattern, isOpen } of compiled.byFirst.get(first) ?? []) {
        if (isFirst && list[from]?.before === '') continue;
        const to = matchFrom(pattern, 1, from + 1, atoms, list);
        if (to === undefined) continue;
        const key = `${concept}:${from}`;
        const longer = found.get(key);
        if (longer === undefined || longer.to < to) found.set(key, { concept, from, to, isOpen });
      }
    }
  }
  return [...found.values()];
}

/** Atoms of a token, cached by word. */
function atomsOf(
  token: Token,
  index: WordIndex,
  withSlips: boolean,
  known: Map<string, ReadonlySet<number>>,
): ReadonlySet<number> {
  const key = `${token.text} ${token.value}`;
  const before = known.get(key);
  if (before) return before;
  const ids = new Set(index.find(token, withSlips));
  known.set(key, ids);
  return ids;
}

/** Last word of a match for the rest of a pattern, or undefined. A phrase does not cross the end of a sentence. */
function matchFrom(
  pattern: Pattern,
  place: number,
  start: number,
  atoms: readonly ReadonlySet<number>[],
  list: readonly Token[],
): number | undefined {
  let at = start;
  for (let index = place; index < pattern.length; index += 1) {
    const atom = pattern[index];
    if (atom === undefined) {
      for (let skip = 0; skip <= GAP_WORDS; skip += 1) {
        const to = matchFrom(pattern, index + 1, at + skip, atoms, list);
        if (to !== undefined) return to;
      }
      return undefined;
    }
    if (!atoms[at]?.has(atom) || list[at]?.sentence !== list[start - 1]?.sentence) return undefined;
    at += 1;
  }
  return at - 1;
}
