import type { Chunk } from './chunk-file.ts';
import type { Database } from './database.ts';
import type { Location } from './section.ts';
import { createWordSearch, type SearchWords } from './word-search.ts';

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

/** A passage's embedding, and the folder whose rule counted for it when it was indexed. */
export interface VectorRow {
  readonly id: number;
  readonly folder: string;
  readonly vector: Float32Array;
}

/** The index, to read from. Every process may, at any time. */
export interface IndexReader {
  files(): ReadonlyMap<string, KnownFile>;
  passage(id: number): Passage | undefined;
  readonly searchWords: SearchWords;
  /** How many passages there are; of one file, when it is named. */
  count(source?: string): number;
  /** Grows with every change, by whichever process. */
  revision(): number;
  /** Up to `limit` passages above an id that have an embedding of this model, in the order of their ids. */
  vectors(model: string, above: number, limit: number): readonly VectorRow[];
  /** Whether passages wait for their embedding. */
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

/** A copy, because a blob of the driver need not be aligned for floats. */
function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
