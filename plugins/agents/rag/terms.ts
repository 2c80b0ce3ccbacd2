/** Scripts that put no space between words: their characters are indexed one by one, and looked up as phrases. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]/u;
const EACH_UNSPACED = new RegExp(UNSPACED, 'gu');
const RUNS = new RegExp(`${UNSPACED.source}+|[^${UNSPACED.source.slice(1, -1)}]+`, 'gu');

/** Characters that mean something by themselves. */
const HAN = /\p{sc=Han}/u;

/** The most words of a query that count, and the most parts of them. */
const MAX_WORDS = 64;
const MAX_PARTS = 128;

/** Words that nearly every passage has: they find nothing, and cost a walk over all of it. English, Chinese, Japanese. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  [
    'a an and are as at be but by can do does for from has have how i if in into is it its of on or that the their there these they this to was were what when where which who why will with you your',
    '的 了 是 在 和 吗 呢 我 你 要 有 也 就 都 很 与 及 或 把 被 这 那 什么 怎么 怎样 如何 多少 哪 哪里 哪个 几 可以 能',
    'の は に を が で と も へ や か た て です ます ました ません でした する した して し から まで こと もの とき いる ある ない なる どこ いつ なに どう どの いくら 何 れる られる たい',
  ].flatMap((words) => words.split(' ')),
);

/** A word of a query. */
export interface QueryWord {
  /** An FTS5 phrase, quoted: nothing in it is syntax. */
  readonly phrase: string;
  /** Phrases of parts of the word, by which it finds longer words that hold it, and shorter ones that it holds. */
  readonly parts: readonly string[];
}

/** A text as it goes into the full-text index. */
export function indexText(text: string): string {
  return text.normalize('NFKC').replace(EACH_UNSPACED, ' $& ');
}

/** The parts of a text's words, as they go into the full-text index. */
export function indexParts(text: string): string {
  return wordsOf(text)
    .filter((word) => !UNSPACED.test(word))
    .flatMap(partsOf)
    .join(' ');
}

/** The words of a query that count. Common ones count only where there are no others. */
export function toQueryWords(query: string): readonly QueryWord[] {
  const words = [...new Set(wordsOf(query).flatMap(splitRuns))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  let left = MAX_PARTS;
  return (telling.length > 0 ? telling : words).slice(0, MAX_WORDS).map((word) => {
    const parts = queryParts(word).slice(0, left);
    left -= parts.length;
    return { phrase: toPhrase(word), parts };
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

/** A run of characters without spaces, as its words. */
function splitRuns(word: string): readonly string[] {
  if (!UNSPACED.test(word)) return [word];
  return (word.match(RUNS) ?? []).flatMap((run) => {
    if (!UNSPACED.test(run)) return [run];
    segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
    return [...segmenter.segment(run)].map(({ segment }) => segment);
  });
}

/** The pairs of a run's characters; of a pair, what its characters mean alone. */
function queryParts(word: string): readonly string[] {
  if (!UNSPACED.test(word)) return partsOf(word).map((part) => `parts : "${part}"`);
  const characters = [...word];
  if (characters.length === 2) return characters.filter((character) => HAN.test(character)).map(toPhrase);
  return characters.slice(1).map((character, at) => toPhrase(`${characters[at]}${character}`));
}

function toPhrase(word: string): string {
  return `{title headings text} : "${indexText(word).trim()}"`;
}

/** How many letters a part has; of Hangul, syllables. */
const LETTERS = 4;
const SYLLABLES = 2;

const HANGUL = /^\p{sc=Hangul}+$/u;

/**
 * The parts of a word: all runs of a few letters in it; a shorter word has none. Words that are written together
 * (Krankenversicherungsbeitrag), that carry particles (학교에서) or that end in another way (chevaux) share parts with the word that is
 * looked for. No dictionary is needed, and no knowledge of the language.
 */
function partsOf(word: string): readonly string[] {
  const letters = [...word];
  const length = HANGUL.test(word) ? SYLLABLES : LETTERS;
  return Array.from({ length: Math.max(0, letters.length - length + 1) }, (_, at) =>
    letters.slice(at, at + length).join(''),
  );
}
