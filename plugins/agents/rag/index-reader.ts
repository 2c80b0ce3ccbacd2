import type { Chunk } from './chunk-file.ts';
import type { Database, Statement } from './database.ts';
import type { Location } from './section.ts';
import type { QueryWord } from './terms.ts';
import { wordTable } from './word-tables.ts';

/** Passage of the index. */
export interface Passage extends Chunk {
  /** Example: `policies/refunds.md#3`. */
  readonly id: string;
  readonly source: string;
}

/** Index entry of a file. */
export interface KnownFile {
  /** Size and times at the last read. */
  readonly stamp: string;
  readonly hash: string;
  /** Options of the last read: the file is read again if they change. */
  readonly recipe: string;
  /** Reason for missing passages. */
  readonly error?: string;
}

/** Embedding of a passage, and the folder whose rule applied at indexing. */
export interface VectorRow {
  readonly id: number;
  readonly folder: string;
  readonly vector: Float32Array;
}

/** Read access to the index, for every process at any time. */
export interface IndexReader {
  files(): ReadonlyMap<string, KnownFile>;
  passage(id: number): Passage | undefined;
  readonly searchWords: SearchWords;
  /** Number of passages, of one file if named. */
  count(source?: string): number;
  /** Increases with every change by any process. */
  revision(): number;
  /** Up to `limit` passages above an id that have an embedding of this model, by id. */
  vectors(model: string, above: number, limit: number): readonly VectorRow[];
  /** True if passages wait for their embedding. */
  isUnembedded(): boolean;
}

export function createIndexReader(database: Database): IndexReader {
  const sql = {
    files: database.prepare('SELECT source, stamp, hash, recipe, fault AS error FROM files'),
    passage: database.prepare('SELECT source, nth, title, location, text FROM chunks WHERE id = ?'),
    count: database.prepare('SELECT count(*) AS n FROM chunks'),
    countOf: database.prepare('SELECT count(*) AS n FROM chunks WHERE source = ?'),
    fact: database.prepare('SELECT value FROM facts WHERE name = ?'),
    vectors: database.prepare(
      'SELECT chunks.id AS id, chunks.folder AS folder, vectors.vector AS vector FROM chunks JOIN vectors ON vectors.hash = chunks.vector WHERE chunks.id > ? AND vectors.model = ? AND length(vectors.vector) > 0 ORDER BY chunks.id LIMIT ?',
    ),
  };
  return {
    files: () =>
      new Map(
        sql.files.all().map(({ source, stamp, hash, recipe, error }) => [
          String(source),
          {
            stamp: String(stamp),
            hash: String(hash),
            recipe: String(recipe),
            ...(typeof error === 'string' && { error }),
          },
        ]),
      ),
    passage(id) {
      const row = sql.passage.get(id);
      if (!row) return undefined;
      const source = String(row['source']);
      return {
        id: `${source}#${String(row['nth'])}`,
        source,
        title: String(row['title']),
        text: String(row['text']),
        location: JSON.parse(String(row['location'])) as Location,
      };
    },
    searchWords: createWordSearch(database),
    count: (source) => Number((source === undefined ? sql.count.get() : sql.countOf.get(source))?.['n'] ?? 0),
    revision: () => Number(sql.fact.get('revision')?.['value'] ?? 0),
    vectors: (model, above, limit) =>
      sql.vectors.all(above, model, limit).map((row) => ({
        id: Number(row['id']),
        folder: String(row['folder']),
        vector: toFloats(row['vector'] as Uint8Array),
      })),
    isUnembedded: () => sql.fact.get('unembedded')?.['value'] === '1',
  };
}

/** Copies the bytes, because a blob of the driver may not be aligned for floats. */
function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}

/** Weight of all parts of a word together, relative to the word itself. */
const PARTS_WEIGHT = 0.5;

/**
 * Maximum hits of words and of parts, the rarest first. Skipped ones occur in most passages and distinguish little; a
 * long query on a large index would delay other requests.
 */
const MAX_HITS = Object.freeze({ words: 20_000, parts: 5000 });

/** Scores with a smaller difference are equal: passages then keep the order of indexing. */
const PRECISION = 1e9;

/** Word table of a folder, for search. */
interface SearchedTable {
  readonly count: Statement;
  readonly search: Statement;
  /** Number of its passages. */
  readonly size: number;
}

/** Phrase with the number of passages per table that contain it. */
interface CountedPhrase {
  readonly phrase: string;
  readonly weight: number;
  /** Position of the word in the query; undefined for a part of a word. */
  readonly word: number | undefined;
  readonly counts: readonly number[];
  /** Number of passages in all tables. */
  readonly having: number;
  /** Rarity over all tables. */
  readonly rarity: number;
}

/** Result of a word search. */
export interface WordRanking {
  /** Passages by BM25, best first, with the query words that each contains, by position in the query. */
  readonly hits: readonly { readonly id: number; readonly whole: ReadonlySet<number> }[];
  /** Weight of each query word by rarity; 0 for one that was not searched. */
  readonly weights: readonly number[];
}

/** Searches the words of these folders alone. */
type SearchWords = (words: readonly QueryWord[], folders: ReadonlySet<string>, limit: number) => WordRanking;

/**
 * SQLite's bm25() weighs a phrase by its rarity in one table. Here the rarity is over all searched tables, so that a
 * passage's rank depends on these alone.
 */
function createWordSearch(database: Database): SearchWords {
  const openTable = createTableOpener(database);
  return (words, folders, limit) => {
    const tables = [...folders].flatMap(openTable);
    const all = tables.reduce((sum, { size }) => sum + size, 0);
    const found = new Map<number, { sum: number; readonly whole: Set<number> }>();
    const add = ({ phrase, weight, counts, rarity, word }: CountedPhrase): void => {
      for (const [at, { search, size }] of tables.entries()) {
        const ofTable = counts[at] ?? 0;
        if (ofTable === 0) continue;
        const factor = (weight * rarity) / rarityInTable(size, ofTable);
        for (const row of search.all(phrase)) {
          const id = Number(row['id']);
          const hit = found.get(id) ?? { sum: 0, whole: new Set() };
          hit.sum += Number(row['score']) * factor;
          if (word !== undefined) hit.whole.add(word);
          found.set(id, hit);
        }
      }
    };
    const count = (phrase: string, weight: number, word?: number): CountedPhrase => {
      const counts = tables.map((table) => Number(table.count.get(phrase)?.['n'] ?? 0));
      const having = counts.reduce((sum, n) => sum + n, 0);
      return { phrase, weight, word, counts, having, rarity: Math.log(1 + (all - having + 0.5) / (having + 0.5)) };
    };
    const ofWords = words.map(({ phrase }, at) => count(phrase, 1, at));
    const ofParts = words.flatMap(({ parts }) => parts.map((part) => count(part, PARTS_WEIGHT / parts.length)));
    const looked = rarest(ofWords, MAX_HITS.words);
    for (const counted of [...looked, ...rarest(ofParts, MAX_HITS.parts)]) add(counted);
    const hits = [...found]
      .map(([id, { sum, whole }]) => ({ id, whole, sum: Math.round(sum * PRECISION) }))
      .sort((a, b) => b.sum - a.sum || a.id - b.id)
      .slice(0, limit);
    return {
      hits,
      weights: ofWords.map((counted) => (counted.having === 0 || looked.includes(counted) ? counted.rarity : 0)),
    };
  };
}

/** Rarest phrases within a total number of hits; at least one. */
function rarest(phrases: readonly CountedPhrase[], hits: number): readonly CountedPhrase[] {
  const sorted = phrases.filter(({ having }) => having > 0).toSorted((a, b) => a.having - b.having);
  let left = hits;
  return sorted.filter(({ having }, at) => {
    left -= having;
    return at === 0 || left >= 0;
  });
}

/** Weight of a phrase in SQLite's bm25(), never less than this. See https://sqlite.org/fts5.html#the_bm25_function */
function rarityInTable(size: number, having: number): number {
  return Math.max(1e-6, Math.log((size - having + 0.5) / (having + 0.5)));
}

/** Opens a folder's table; empty while nothing of the folder is indexed. */
function createTableOpener(database: Database): (folder: string) => readonly SearchedTable[] {
  const find = database.prepare('SELECT id FROM folders WHERE name = ?');
  const sizeOf = database.prepare('SELECT count(*) AS n FROM chunks WHERE folder = ?');
  const statements = new Map<number, Omit<SearchedTable, 'size'>>();
  const prepare = (id: number): Omit<SearchedTable, 'size'> => {
    const table = wordTable(id);
    return {
      count: database.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${table} MATCH ?`),
      // A hit in the title or the headings counts more than one in the text.
      search: database.prepare(
        `SELECT rowid AS id, -bm25(${table}, 4.0, 2.0, 1.0, 1.0) AS score FROM ${table} WHERE ${table} MATCH ?`,
      ),
    };
  };
  return (folder) => {
    const id = find.get(folder)?.['id'];
    if (typeof id !== 'number') return [];
    const known = statements.get(id) ?? prepare(id);
    statements.set(id, known);
    return [{ ...known, size: Number(sizeOf.get(folder)?.['n'] ?? 0) }];
  };
}
