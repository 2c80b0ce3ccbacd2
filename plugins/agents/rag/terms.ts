/** Scripts without spaces between words: their characters are indexed one by one, and searched as phrases. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]/u;
const EACH_UNSPACED = new RegExp(UNSPACED, 'gu');
const RUNS = new RegExp(`${UNSPACED.source}+|[^${UNSPACED.source.slice(1, -1)}]+`, 'gu');

/** Characters with a meaning of their own. */
const HAN = /\p{sc=Han}/u;

const HIRAGANA = /^\p{sc=Hiragana}+$/u;
/** A single character of a syllabary, which is in nearly every text. */
const ONE_KANA = /^[\p{sc=Hiragana}\p{sc=Katakana}ー]$/u;

/** Maximum words of a query, and parts of them. */
const MAX_WORDS = 64;
const MAX_PARTS = 128;

/**
 * Words in nearly every passage: they distinguish nothing, and are slow to search. English, German, French, Spanish,
 * Italian (without those with a meaning in another of these languages), Chinese, Japanese.
 */
const STOP_WORDS: ReadonlySet<string> = new Set(
  [
    'a an and are as at be but by can do does for from has have how i if in into is it its of on or that the their there these they this to was were what when where which who why will with you your',
    'der das den dem ein eine einen einem einer eines und oder ist sind im zum zur beim mit von für auf aus bei nach ich du er wir ihr mir mich dir dich mein meine meinen meinem meiner wie wo wer wann warum welche welcher welches muss kann soll darf habe haben hat wird werden nicht auch es sich',
    'le la les un une des du de et ou est sont au aux dans par sur avec je tu il elle nous vous mon ma mes votre vos que qui quoi quel quelle quels quelles comment combien quand où pourquoi ce cette ces se sa ses ne pas faut peut',
    'el los las una unos unas del al y es son en para por con yo tú mi mis su sus que qué quién cómo cuánto cuántos cuándo dónde cuál se no lo hay puedo debo tengo',
    'il lo gli i uno dei delle della dello degli nel nella e è sono per con su io mio mia miei che chi cosa come quanto quanti quando dove quale perché si non devo posso ho',
    '的 了 是 在 和 吗 呢 我 你 要 有 也 就 都 很 与 及 或 把 被 这 那 什么 怎么 怎样 如何 多少 哪 哪里 哪个 几 可以 能',
    'の は に を が で と も へ や か た て です ます ました ません でした する した して し から まで こと もの とき いる ある ない なる どこ いつ なに どう どの いくら 何 れる られる たい',
  ].flatMap((words) => words.split(' ')),
);

/** Word of a query. */
export interface QueryWord {
  /** Word after {@link withoutAccents}. */
  readonly word: string;
  /** FTS5 phrase, quoted, so that it contains no syntax. */
  readonly phrase: string;
  /** Phrases of the word's parts, which find longer words that contain it, and shorter ones within it. */
  readonly parts: readonly string[];
}

/** Converts a text for the full-text index. */
export function indexText(text: string): string {
  return text.normalize('NFKC').replace(EACH_UNSPACED, ' $& ');
}

/** Parts of a text's words for the full-text index. */
export function indexParts(text: string): string {
  return wordsOf(text)
    .filter((word) => !UNSPACED.test(word))
    .flatMap(partsOf)
    .join(' ');
}

/** Relevant words of a query. Common words count only if there are no others. */
export function toQueryWords(query: string): readonly QueryWord[] {
  const words = [...new Set(wordsOf(query).flatMap(splitRuns))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  let left = MAX_PARTS;
  return (telling.length > 0 ? telling : words).slice(0, MAX_WORDS).map((word) => {
    const parts = queryParts(word).slice(0, left);
    left -= parts.length;
    return { word: withoutAccents(word), phrase: toPhrase(word), parts };
  });
}

function wordsOf(text: string): readonly string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  );
}

let segmenter: Intl.Segmenter | undefined;

/** Splits a run of characters without spaces into words. */
function splitRuns(word: string): readonly string[] {
  if (!UNSPACED.test(word)) return [word];
  return (word.match(RUNS) ?? []).flatMap((run) => {
    if (!UNSPACED.test(run)) return [run];
    segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
    const words = [...segmenter.segment(run)].map(({ segment }) => segment);
    // The dictionary cuts a word that it does not know into single characters.
    return HIRAGANA.test(run) && words.some((each) => ONE_KANA.test(each)) ? [run] : words;
  });
}

/** Pairs of a run's characters; for a single pair, characters with a meaning of their own. */
function queryParts(word: string): readonly string[] {
  if (!UNSPACED.test(word)) return partsOf(word).map((part) => `parts : "${part}"`);
  const characters = [...word];
  if (characters.length === 2) return characters.filter((character) => HAN.test(character)).map(toPhrase);
  return characters.slice(1).map((character, at) => toPhrase(`${characters[at]}${character}`));
}

function toPhrase(word: string): string {
  return `{title headings text} : "${indexText(word).trim()}"`;
}

/** Letters of a part; syllables for Hangul. */
const LETTERS = 4;
const SYLLABLES = 2;

const HANGUL = /^\p{sc=Hangul}+$/u;

/**
 * Parts of a word: all sequences of a few letters; shorter words have no parts. Compounds
 * (Krankenversicherungsbeitrag), words with particles (학교에서) and inflected words (chevaux) share parts with the query
 * word. Needs no dictionary and no knowledge of the language.
 */
function partsOf(word: string): readonly string[] {
  const letters = [...word];
  const length = HANGUL.test(word) ? SYLLABLES : LETTERS;
  return Array.from({ length: Math.max(0, letters.length - length + 1) }, (_, at) =>
    letters.slice(at, at + length).join(''),
  );
}

/** Removes the accents that the index ignores too. */
function withoutAccents(word: string): string {
  return word
    .normalize('NFD')
    .replace(/[\u0300-\u036F]/g, '')
    .normalize('NFC');
}

/** Text prepared for finding words similar to those of a query. */
export interface ComparedText {
  readonly text: string;
  /** Words with their parts. */
  readonly words: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Prepares a text for {@link likeness}. */
export function toComparedText(text: string): ComparedText {
  const compared = withoutAccents(text.normalize('NFKC').toLowerCase());
  const words = new Map<string, Set<string>>();
  for (const word of new Set(wordsOf(compared)))
    for (const part of partsOf(word)) words.set(part, (words.get(part) ?? new Set()).add(word));
  return { text: compared, words };
}

/** Share of a query's word in a text, 0 to 1, and whether it suffices to call the text relevant. */
export interface Likeness {
  readonly share: number;
  readonly isLike: boolean;
}

const UNLIKE: Likeness = Object.freeze({ share: 0, isLike: false });

/** Least share of a query word's parts for a similar word. */
const MIN_SHARED = 0.5;

/** Least share of the pairs of a word without spaces and without characters that have a meaning of their own. */
const MIN_SOUNDS = 0.6;

/** Least share and number of parts for a word that is contained in the query's word. */
const INSIDE = Object.freeze({ share: 0.6, parts: 4 });

/** Least number of common first parts of words that begin alike. */
const BEGINNING = 3;

/** Least number of common parts of a word and another one within it. */
const WITHIN = 3;

/** Least length of what stands before a word within another one: `ge`kündigt, but not `p`article. */
const MIN_BEFORE = 2;

/**
 * Share of a query's word in one word of the text. Parts spread over several words do not count, since nearly every
 * word would match.
 */
export function likeness(word: string, { text, words }: ComparedText): Likeness {
  if (UNSPACED.test(word)) return likenessUnspaced(word, text);
  const parts = partsOf(word);
  const own = new Set(parts);
  const beginning = parts.slice(0, BEGINNING);
  const shares = new Map<string, number>();
  for (const part of own) for (const other of words.get(part) ?? []) shares.set(other, (shares.get(other) ?? 0) + 1);
  let best = UNLIKE;
  for (const [other, shared] of shares) {
    const others = partsOf(other);
    const share = shared / own.size;
    const isLike = HANGUL.test(word)
      ? share >= MIN_SHARED
      : isSimilar({ word, parts, other, others, shared }) ||
        (beginning.length === BEGINNING && beginning.every((part, at) => others[at] === part));
    if (isLike === best.isLike ? share > best.share : isLike) best = { share, isLike };
  }
  return best;
}

/**
 * Words are similar if they begin alike, or if one begins within the other: inflections and compounds. Common parts at
 * other places are a coincidence: picture and facture, mother and others.
 */
function isSimilar({
  word,
  parts,
  other,
  others,
  shared,
}: {
  readonly word: string;
  readonly parts: readonly string[];
  readonly other: string;
  readonly others: readonly string[];
  readonly shared: number;
}): boolean {
  const [first = ''] = parts;
  const [otherFirst = ''] = others;
  const before = parts.indexOf(otherFirst);
  const isInside = shared >= INSIDE.parts && shared / others.length >= INSIDE.share && before >= MIN_BEFORE;
  if (isInside) return true;
  if (shared / new Set(parts).size < MIN_SHARED) return false;
  if (first === otherFirst) return shared > 1 || other.startsWith(word);
  if (other.includes(word)) return shared > 1 || other.endsWith(word);
  return shared >= WITHIN && (others.includes(first) || before >= MIN_BEFORE);
}

/**
 * Likeness of a word in a script without spaces: its pairs of characters; for a single pair, its characters with at
 * most two between them.
 */
function likenessUnspaced(word: string, text: string): Likeness {
  const characters = [...word];
  if (characters.length === 2) {
    const [first = '', second = ''] = characters.filter((character) => HAN.test(character));
    const isLike = second !== '' && new RegExp(`${first}.{0,2}${second}`, 'u').test(text);
    const has = [first, second].filter((character) => character !== '' && text.includes(character));
    return { share: has.length / 2, isLike };
  }
  const pairs = characters.slice(1).map((character, at) => `${characters[at]}${character}`);
  const share = pairs.filter((pair) => text.includes(pair)).length / Math.max(1, pairs.length);
  return { share, isLike: share >= (HAN.test(word) ? MIN_SHARED : MIN_SOUNDS) };
}
