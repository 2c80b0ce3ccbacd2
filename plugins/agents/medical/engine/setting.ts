import type { Sighting } from './sightings.ts';
import type { Tokens } from './tokens.ts';

/** How a part of a sentence speaks of what it names: as it is now, as it was, or in general. */
export type Setting = 'present' | 'past' | 'general';

/** Names of illnesses: in a question that speaks of nobody, who asks wants to know something. */
const ILLNESSES: ReadonlySet<string> = new Set(
  'heart_attack stroke sepsis meningitis anaphylaxis heatstroke hypothermia aneurysm overdose'.split(' '),
);

/** A question word counts as one only at the beginning. */
const FIRST_WORDS = 4;

/** Concepts that say when or how; a clause without one speaks as its sentence does. */
const SAYS_WHEN: ReadonlySet<string> = new Set(['now', 'past', 'topic', 'fiction']);

/** The setting of a concept where it stands. */
export type SettingOf = (sighting: Sighting) => Setting;

interface Part {
  readonly kinds: Set<string>;
  readonly isQuestion: boolean;
  readonly from: number;
  /** The whole sentence, or what stands before or after "but". */
  readonly whole: Set<string>;
}

/**
 * The setting of every word. A sentence has one, or one before and one after "but"; a clause after a colon, a semicolon or a
 * bracket has its own where it says one. When in doubt it is the present: a word such as "now" or "since" wins over a year
 * or "years ago", unless it is said that all is well today.
 */
export function findSettings({ list, sentences }: Tokens, sightings: readonly Sighting[]): SettingOf {
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
  // "L'aspirine aide-t-elle": that "elle" is part of the question, and no person.
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
  return ({ concept, from }) => {
    const known = settings[partOf[from] ?? 0] ?? 'present';
    if (known === 'asked') return ILLNESSES.has(concept) ? 'general' : 'present';
    return known;
  };
}

function settingOf(kinds: ReadonlySet<string>, isQuestion: boolean): Setting | 'asked' {
  const isNow = kinds.has('now') && !kinds.has('well');
  if (kinds.has('fiction')) return 'general';
  if (kinds.has('topic') && !isNow) return 'general';
  if (kinds.has('asks_first') && isQuestion && !isNow && !kinds.has('person')) return 'general';
  if (kinds.has('past') && !isNow) return 'past';
  return isQuestion && !isNow && !kinds.has('person') ? 'asked' : 'present';
}
