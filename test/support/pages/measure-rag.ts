import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Database, openIndex } from '../../../plugins/agents/rag/database.ts';
import { type Hit, searchPassages } from '../../../plugins/agents/rag/retrieve.ts';
import { EVERYTHING, openTestIndex, type TestIndex } from '../agents/rag-index.ts';

export const RAG_LANGUAGES = Object.freeze(['en', 'de', 'fr', 'zh', 'ja'] as const);
export type RagLanguage = (typeof RAG_LANGUAGES)[number];

interface Judged {
  readonly query: string;
  /** Relevant documents: 2 for an answer to the query, 1 for the same topic. */
  readonly relevant: Readonly<Record<string, number>>;
}

interface JudgedSet {
  readonly language: RagLanguage;
  readonly documents: readonly { readonly id: string; readonly title: string; readonly text: string }[];
  /** Queries that were used to develop the search. */
  readonly queries: readonly Judged[];
  /** Queries for measurement only; the search was not changed because of them. */
  readonly held: readonly Judged[];
}

/** Query with its quality, nDCG@10, in the current search and in that of index version 2. */
export interface MeasuredQuery extends Judged {
  readonly language: RagLanguage;
  readonly isHeld: boolean;
  readonly before: number;
  readonly now: number;
  readonly found: readonly string[];
}

const DEPTH = 10;

/** Measures the judged set of `test/fixtures/rag`, with all languages in one index and without embeddings. */
export async function measureRag(folder: string): Promise<readonly MeasuredQuery[]> {
  const sets = RAG_LANGUAGES.map(readSet);
  const index = await openJudgedIndex(path.join(folder, 'now'));
  const former = await openIndex(path.join(folder, 'former'), 1000);
  try {
    const searchBefore = createFormerSearch(former, sets);
    return sets.flatMap(({ language, queries, held }) =>
      [...queries, ...held].map((judged) => {
        const found = searchPassages(index.reader, judged.query, DEPTH, EVERYTHING, undefined).map(
          ({ source }) => source,
        );
        const gainOf = (source: string): number =>
          judged.relevant[source.replace(`${language}/`, '').replace('.md', '')] ?? 0;
        const ideal = Object.values(judged.relevant);
        return {
          ...judged,
          language,
          isHeld: held.includes(judged),
          found,
          before: ndcg(searchBefore(judged.query).map(gainOf), ideal),
          now: ndcg(found.map(gainOf), ideal),
        };
      }),
    );
  } finally {
    index.close();
    former.close();
  }
}

/** Index of all documents in the judged set. */
export async function openJudgedIndex(folder: string): Promise<TestIndex> {
  const index = await openTestIndex(folder);
  for (const { language, documents } of RAG_LANGUAGES.map(readSet))
    index.write(
      Object.fromEntries(documents.map(({ id, title, text }) => [`${language}/${id}.md`, `# ${title}\n\n${text}\n`])),
    );
  await index.update();
  return index;
}

/** Word that is in no document, and the documents that it finds all the same. */
export interface AbsentWord {
  readonly language: RagLanguage;
  readonly word: string;
  readonly isHeld: boolean;
  readonly found: readonly Hit[];
}

/** Searches the judged set for the words of `test/fixtures/rag/absent.json`. */
export function measureAbsent(index: TestIndex): readonly AbsentWord[] {
  const words: Readonly<Record<RagLanguage, Readonly<Record<'made' | 'held', readonly string[]>>>> = JSON.parse(
    readFileSync(new URL('../../fixtures/rag/absent.json', import.meta.url), 'utf8'),
  );
  return RAG_LANGUAGES.flatMap((language) =>
    (['made', 'held'] as const).flatMap((part) =>
      words[language][part].map((word) => ({
        language,
        word,
        isHeld: part === 'held',
        found: searchPassages(index.reader, word, DEPTH, EVERYTHING, undefined),
      })),
    ),
  );
}

/** Words and questions of three words that are in no document, and those that find something all the same. */
export interface DrawnTexts {
  readonly words: readonly string[];
  readonly questions: readonly string[];
  readonly finding: readonly string[];
}

/**
 * Searches the judged set for the texts of `test/fixtures/rag/drawn.json`: drawn by a seed from word lists that npm
 * packages ship, of those that stand in no document, also as another form with the same stem.
 */
export function measureDrawn(index: TestIndex): DrawnTexts {
  const drawn: { readonly words: Readonly<Record<string, readonly string[]>>; readonly questions: readonly string[] } =
    JSON.parse(readFileSync(new URL('../../fixtures/rag/drawn.json', import.meta.url), 'utf8'));
  const words = Object.values(drawn.words).flat();
  const finds = (text: string): boolean => searchPassages(index.reader, text, DEPTH, EVERYTHING, undefined).length > 0;
  return { words, questions: drawn.questions, finding: [...words, ...drawn.questions].filter(finds) };
}

function readSet(language: RagLanguage): JudgedSet {
  return JSON.parse(readFileSync(new URL(`../../fixtures/rag/${language}.json`, import.meta.url), 'utf8')) as JudgedSet;
}

/** Normalised discounted cumulative gain of the first ten. */
function ndcg(grades: readonly number[], relevant: readonly number[]): number {
  const sum = (list: readonly number[]): number =>
    list.slice(0, DEPTH).reduce((total, grade, at) => total + (2 ** grade - 1) / Math.log2(at + 2), 0);
  return sum(grades) / sum(relevant.toSorted((a, b) => b - a));
}

export function meanOf(measured: readonly MeasuredQuery[], which: 'before' | 'now'): number {
  return measured.reduce((sum, one) => sum + one[which], 0) / measured.length;
}

const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

/** Search of index version 2, for comparison: unchanged words, pairs of characters in scripts without spaces. */
function createFormerSearch(database: Database, sets: readonly JudgedSet[]): (query: string) => readonly string[] {
  const spread = (text: string): string => text.normalize('NFKC').replace(new RegExp(UNSPACED, 'gu'), ' $& ');
  database.exec(
    "CREATE VIRTUAL TABLE former USING fts5(title, headings, text, tokenize='porter unicode61 remove_diacritics 2')",
  );
  const put = database.prepare('INSERT INTO former (rowid, title, headings, text) VALUES (?, ?, ?, ?)');
  const sources = sets.flatMap(({ language, documents }) => documents.map((document) => ({ language, ...document })));
  for (const [at, { title, text }] of sources.entries()) put.run(at, spread(title), spread(title), spread(text));
  const search = database.prepare(
    'SELECT rowid AS id FROM former WHERE former MATCH ? ORDER BY bm25(former, 4.0, 2.0, 1.0) LIMIT ?',
  );
  const termsOf = (word: string): readonly string[] => {
    if (!UNSPACED.test(word)) return [`"${word}"`];
    const parts = spread(word).match(/\S+/gu) ?? [];
    return parts.flatMap((part, at) => {
      const next = parts[at + 1];
      if (!UNSPACED.test(part)) return [`"${part}"`];
      if (next !== undefined && UNSPACED.test(next)) return [`"${part} ${next}"`];
      return parts.length === 1 ? [`"${part}"`] : [];
    });
  };
  return (query) => {
    const words =
      query
        .normalize('NFKC')
        .toLowerCase()
        .match(/[\p{L}\p{N}]+/gu) ?? [];
    const telling = words.filter((word) => !FORMER_STOP_WORDS.has(word));
    const terms = new Set((telling.length > 0 ? telling : words).flatMap(termsOf));
    return search.all([...terms].join(' OR '), DEPTH).map(({ id }) => {
      const { language, id: name } = sources[Number(id)] ?? { language: '', id: '' };
      return `${language}/${name}.md`;
    });
  };
}

const FORMER_STOP_WORDS: ReadonlySet<string> = new Set(
  'a an and are as at be but by can do does for from has have how i if in into is it its of on or that the their there these they this to was were what when where which who why will with you your'.split(
    ' ',
  ),
);
