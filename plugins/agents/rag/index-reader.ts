import type { Chunk } from './chunk-file.ts';
import type { Database } from './database.ts';
import type { Location } from './section.ts';

/** A passage of the index. */
export interface Passage extends Chunk {
  /** Such as `policies/refunds.md#3`. */
  readonly id: string;
  readonly source: string;
}

/** What is known of a file. */
export interface KnownFile {
  /** Its size and times when it was read. */
  readonly stamp: string;
  readonly hash: string;
  /** How it was read: another recipe reads it again. */
  readonly recipe: string;
  /** Why it has no passages. */
  readonly error?: string;
}

/** The index, to read from. Every process may, at any time. */
export interface IndexReader {
  files(): ReadonlyMap<string, KnownFile>;
  passage(id: number): Passage | undefined;
  /** Row ids by BM25 of the words, best first. */
  searchWords(match: string, limit: number): readonly number[];
  /** How many passages there are; of one file, when it is named. */
  count(source?: string): number;
  /** Grows with every change, by whichever process. */
  revision(): number;
  /** Up to `limit` passages above an id that have an embedding of this model, in the order of their ids. */
  vectors(
    model: string,
    above: number,
    limit: number,
  ): readonly { readonly id: number; readonly vector: Float32Array }[];
  /** Whether passages wait for their embedding. */
  isUnembedded(): boolean;
}

export function createIndexReader(database: Database): IndexReader {
  const sql = {
    files: database.prepare('SELECT source, stamp, hash, recipe, fault FROM files'),
    passage: database.prepare('SELECT source, nth, title, location, text FROM chunks WHERE id = ?'),
    // A hit in the title or the headings says more than one in the text.
    search: database.prepare(
      'SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY bm25(words, 4.0, 2.0, 1.0) LIMIT ?',
    ),
    count: database.prepare('SELECT count(*) AS n FROM chunks'),
    countOf: database.prepare('SELECT count(*) AS n FROM chunks WHERE source = ?'),
    fact: database.prepare('SELECT value FROM facts WHERE name = ?'),
    vectors: database.prepare(
      'SELECT chunks.id AS id, vectors.vector AS vector FROM chunks JOIN vectors ON vectors.hash = chunks.vector WHERE chunks.id > ? AND vectors.model = ? AND length(vectors.vector) > 0 ORDER BY chunks.id LIMIT ?',
    ),
  };
  return {
    files: () =>
      new Map(
        sql.files.all().map(({ source, stamp, hash, recipe, fault }) => [
          String(source),
          {
            stamp: String(stamp),
            hash: String(hash),
            recipe: String(recipe),
            ...(typeof fault === 'string' && { error: fault }),
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
    searchWords: (match, limit) => sql.search.all(match, limit).map((row) => Number(row['id'])),
    count: (source) => Number((source === undefined ? sql.count.get() : sql.countOf.get(source))?.['n'] ?? 0),
    revision: () => Number(sql.fact.get('revision')?.['value'] ?? 0),
    vectors: (model, above, limit) =>
      sql.vectors
        .all(above, model, limit)
        .map((row) => ({ id: Number(row['id']), vector: toFloats(row['vector'] as Uint8Array) })),
    isUnembedded: () => sql.fact.get('unembedded')?.['value'] === '1',
  };
}

/** A copy, because a blob of the driver need not be aligned for floats. */
function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
