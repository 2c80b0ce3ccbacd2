import type { Sighting } from './sightings.ts';
import type { Tokens } from './tokens.ts';

/** How a sentence speaks of what it names: as it is now, as it was, or in general. */
export type Setting = 'present' | 'past' | 'general';

/**
 * The setting of every sentence. When in doubt it is the present: a word such as "now" or "since" wins over a year or "years
 * ago", unless the sentence says that all is well today.
 */
export function findSettings({ list, sentences }: Tokens, sightings: readonly Sighting[]): readonly Setting[] {
  const kinds = sentences.map(() => new Set<string>());
  const first = sentences.map(() => -1);
  for (const [index, { sentence }] of list.entries()) if (first[sentence] === -1) first[sentence] = index;
  for (const { concept, from } of sightings) {
    const sentence = list[from]?.sentence ?? 0;
    kinds[sentence]?.add(concept);
    if (concept === 'asks' && from - (first[sentence] ?? 0) <= 4) kinds[sentence]?.add('asks_first');
  }
  return sentences.map(({ isQuestion }, index) => settingOf(kinds[index] ?? new Set(), isQuestion));
}

function settingOf(kinds: ReadonlySet<string>, isQuestion: boolean): Setting {
  const isNow = kinds.has('now') && !kinds.has('well');
  if (kinds.has('fiction')) return 'general';
  if (kinds.has('topic') && !isNow) return 'general';
  if (kinds.has('asks_first') && isQuestion && !isNow && !kinds.has('person')) return 'general';
  if (kinds.has('past') && !isNow) return 'past';
  return 'present';
}
