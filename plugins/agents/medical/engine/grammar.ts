import type { Token } from './tokens.ts';

/** Concepts of sentence structure: no rule uses them, and they cannot be denied. */
export const GRAMMAR: ReadonlySet<string> = new Set(
  'no not not_after denied_after ruled_out have but or and subject pseudo idiom now what_to_do past well topic fiction cites supposed as_if asks person kin kin_many once of_family heredity about_me call_help complaint if would fear sometime animal by_animal vet human over habit lively paperwork planned'.split(
    ' ',
  ),
);

/**
 * Body functions: their absence is the sign. "Does not breathe" is one, "no difficulty breathing" is not, so only a
 * negated verb counts for these.
 */
export const FUNCTIONS: ReadonlySet<string> = new Set(
  'breathe wake respond move speak see feel stand swallow stop feed pee help understand fade open bend smile obey push bear cry shiver let_go'.split(
    ' ',
  ),
);

/** Instructions: "setzen Sie es nicht ab" is not a change. A complaint may well have its negation in the gap. */
export const INSTRUCTIONS: ReadonlySet<string> = new Set(['change', 'dose_verb', 'again_after', 'start', 'intake']);

/** Names of illnesses: a question with such a name and no person asks for information. */
export const ILLNESSES: ReadonlySet<string> = new Set(
  'heart_attack stroke sepsis meningitis anaphylaxis heatstroke hypothermia aneurysm overdose'.split(' '),
);

/** Illnesses mentioned about families: {@link ILLNESSES} and recurring ones. */
const FAMILY_ILLNESSES: ReadonlySet<string> = new Set([...ILLNESSES, 'seizure', 'diabetic', 'asthma', 'allergy']);

/** Concepts of time or mood; a clause without one has the setting of its sentence. */
export const SAYS_WHEN: ReadonlySet<string> = new Set(['now', 'what_to_do', 'past', 'topic', 'fiction', 'supposed']);

/** Vital properties of a body: "no pulse" is a sign too. */
export const LIFE_SIGNS: ReadonlySet<string> = new Set('pulse air strength feeling kicks urine wet_nappy'.split(' '));

/** Complaints whose names contain a word of the body. */
export const WHOLE_COMPLAINTS: ReadonlySet<string> = new Set(['short_breath', 'difficulty']);

/** Concepts that mark a clause as being about the family, or about a possible future. */
const NAMES_OF_ASIDES = ['of_family', 'kin_many', 'kin', 'once', 'now', 'sometime', 'human'] as const;

/** Possible patients of a sentence that names an animal too. */
const PEOPLE: ReadonlySet<string> = new Set('human by_animal kin child baby infant bitten'.split(' '));

/** Concept with the word at which it begins. */
interface Placed {
  readonly concept: string;
  readonly from: number;
}

/**
 * Clause number of every word. A clause ends at a comma, at "but", and at every "and", or one that another person or
 * time follows.
 */
function clausesOf(list: readonly Token[], sightings: readonly Placed[], endsAtEveryAnd: boolean): readonly number[] {
  const placesOf = (...kinds: readonly string[]) =>
    new Set(sightings.flatMap(({ concept, from }) => (kinds.includes(concept) ? [from] : [])));
  const turns = placesOf('but');
  const ands = placesOf('and');
  const begins = placesOf('subject', 'have', 'now', 'human', 'person');
  let clause = 0;
  return list.map(({ before }, index) => {
    const isNew = before !== '' || turns.has(index) || (ands.has(index) && (endsAtEveryAnd || begins.has(index + 1)));
    if (isNew) clause += 1;
    return clause;
  });
}

/**
 * Returns a test for illnesses of the family or of a possible future. They are in a clause that says so ("died of",
 * "runs in our family", "afraid that one day"). They may also be in one about several relatives with the name of an
 * illness. A clause about a relative's past counts too if the text asks about heredity, or about steps for the writer
 * and not for the relative. Clauses about the writer count as usual.
 */
export function findFamily(
  list: readonly Token[],
  sightings: readonly Placed[],
): (at: number, concept: string) => boolean {
  const clauseOf = clausesOf(list, sightings, false);
  const clausesWith = (kind: string) =>
    new Set(sightings.flatMap(({ concept, from }) => (concept === kind ? [clauseOf[from]] : [])));
  const [ofFamily, many, kin, once, now, sometime, human] = NAMES_OF_ASIDES.map(clausesWith);
  const kinIn = new Set(sightings.flatMap(({ concept, from }) => (concept === 'kin' ? [list[from]?.sentence] : [])));
  const has = (...kinds: readonly string[]) => sightings.some(({ concept }) => kinds.includes(concept));
  const isAboutMe = (has('heredity') || (has('about_me') && !has('now'))) && !has('what_to_do', 'call_help');
  const isFeared = has('fear');
  return (at, concept) => {
    const own = clauseOf[at];
    if (isFeared && sometime?.has(own)) return true;
    if (now?.has(own)) return false;
    if (ofFamily?.has(own) || (many?.has(own) && FAMILY_ILLNESSES.has(concept))) return true;
    const isOfKin = kin?.has(own) === true || (kinIn.has(list[at]?.sentence) && !human?.has(own));
    return isAboutMe && isOfKin && once?.has(own) === true;
  };
}

/**
 * Returns a test for positions within a citation: after "the leaflet says", "a film in which", "in a forum". It extends
 * to the end of the sentence, or to the first word about the writer and related people. "The leaflet says four and I
 * took twenty" is cited up to the "I".
 */
export function findCited(list: readonly Token[], sightings: readonly Placed[]): (at: number) => boolean {
  const cited = new Set<number>();
  const ends = new Set(
    sightings.flatMap(({ concept, from }) => (concept === 'human' || concept === 'now' ? [from] : [])),
  );
  for (const { concept, from } of sightings) {
    if (concept !== 'cites') continue;
    const { sentence } = list[from] ?? {};
    for (let at = from; at < list.length && list[at]?.sentence === sentence && !(at > from && ends.has(at)); at += 1)
      cited.add(at);
  }
  return (at) => cited.has(at);
}

/**
 * Returns a test for positions about an ill animal: after its name in a clause, or in a sentence that names a vet. No
 * person is named there, and the animal did nothing to one.
 */
export function findAnimals(list: readonly Token[], sightings: readonly Placed[]): (at: number) => boolean {
  const clauseOf = clausesOf(list, sightings, true);
  const sentenceOf = ({ from }: Placed) => list[from]?.sentence;
  const placesOf = (isOf: (concept: string) => boolean) => sightings.filter(({ concept }) => isOf(concept));
  const people = new Set(placesOf((concept) => PEOPLE.has(concept)).map(sentenceOf));
  const vets = new Set(placesOf((concept) => concept === 'vet').map(sentenceOf));
  const wideOf = clausesOf(list, sightings, false);
  const widely = new Set<number>();
  const first = new Map<number, number>();
  const inSentence = new Set<number>();
  for (const animal of placesOf((concept) => concept === 'animal')) {
    const sentence = sentenceOf(animal) ?? 0;
    const clause = clauseOf[animal.from] ?? 0;
    if (people.has(sentence)) continue;
    first.set(clause, Math.min(animal.from, first.get(clause) ?? animal.from));
    // "El caballo tiene una herida y sangra": the subject also has the verbs after "and", except when another subject
    // follows.
    if (clauseOf[animal.from - 2] !== clause) widely.add(wideOf[animal.from] ?? 0);
    if (vets.has(sentence)) inSentence.add(sentence);
  }
  return (at) =>
    (first.get(clauseOf[at] ?? 0) ?? Number.POSITIVE_INFINITY) <= at ||
    widely.has(wideOf[at] ?? 0) ||
    inSentence.has(list[at]?.sentence ?? 0);
}
