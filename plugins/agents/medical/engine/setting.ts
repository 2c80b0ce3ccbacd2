import type { Sighting } from './sightings.ts';
import type { Tokens } from './tokens.ts';

/** How a part of a sentence speaks of what it names: as it is now, as it was, or in general. */
export type Setting = 'present' | 'past' | 'general';

/** A question word counts as one only at the beginning. */
const FIRST_WORDS = 4;

/**
 * The setting of every word. A sentence has one, or one before and one after "but". When in doubt it is the present: a word
 * such as "now" or "since" wins over a year or "years ago", unless it is said that all is well today.
 */
export function findSettings({ list, sentences }: Tokens, sightings: readonly Sighting[]): readonly Setting[] {
  const turns = new Set(sightings.filter(({ concept }) => concept === 'but').map(({ from }) => from));
  const parts: { readonly kinds: Set<string>; readonly isQuestion: boolean; readonly from: number }[] = [];
  const partOf = list.map(({ sentence }, index) => {
    const isNew = index === 0 || list[index - 1]?.sentence !== sentence;
    if (isNew || turns.has(index)) {
      parts.push({ kinds: new Set(), isQuestion: sentences[sentence]?.isQuestion ?? false, from: index });
    }
    return parts.length - 1;
  });
  for (const { concept, from } of sightings) {
    const part = parts[partOf[from] ?? 0];
    part?.kinds.add(concept === 'asks' && from - part.from <= FIRST_WORDS ? 'asks_first' : concept);
  }
  const settings = parts.map(({ kinds, isQuestion }) => settingOf(kinds, isQuestion));
  return partOf.map((part) => settings[part] ?? 'present');
}

function settingOf(kinds: ReadonlySet<string>, isQuestion: boolean): Setting {
  const isNow = kinds.has('now') && !kinds.has('well');
  if (kinds.has('fiction')) return 'general';
  if (kinds.has('topic') && !isNow) return 'general';
  if (kinds.has('asks_first') && isQuestion && !isNow && !kinds.has('person')) return 'general';
  if (kinds.has('past') && !isNow) return 'past';
  return 'present';
}
