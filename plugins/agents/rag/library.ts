import type { Chunk } from './chunk.ts';
import { type Database, inTransaction } from './database.ts';
import type { FoundFile } from './files.ts';
import type { Location } from './section.ts';

/** A passage of the index. */
export interface Passage extends Chunk {
  /** Such as `policies/refunds.md#3`. */
  readonly id: string;
  readonly source: string;
}

/** What is indexed, over the database. */
export interface Library {
  known(source: string): { readonly hash: string; readonly size: number; readonly modifiedMs: number } | undefined;
  sources(): readonly string[];
  /** Replaces everything of a file; `vectors` are the hashes of the passages' embeddings. */
  put(
    file: FoundFile,
    hash: string,
    words: number,
    chunks: readonly Chunk[],
    vectors: readonly string[] | undefined,
  ): void;
  /** Notes that a file was touched and is the same. */
  touch(file: FoundFile): void;
  remove(source: string): void;
  passage(id: number): Passage | undefined;
  /** Row ids by BM25 of the words, best first. */
  searchWords(match: string, limit: number): readonly number[];
  count(): number;
  /** Grows with every change, by whichever process. */
  revision(): number;
  knownVectors(hashes: readonly string[]): ReadonlySet<string>;
  putVectors(vectors: readonly { readonly hash: string; readonly vector: Float32Array }[]): void;
  /** Every passage that has an embedding. */
  vectors(): readonly { readonly id: number; readonly vector: Float32Array }[];
  /** Drops embeddings that no passage has any more. */
  dropUnused(): void;
}

export function createLibrary(database: Database): Library {
  const sql = {
    known: database.prepare('SELECT hash, size, modified FROM files WHERE source = ?'),
    sources: database.prepare('SELECT source FROM files ORDER BY source'),
    putFile: database.prepare('INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)'),
    touch: database.prepare('UPDATE files SET size = ?, modified = ? WHERE source = ?'),
    putChunk: database.prepare(
      'INSERT INTO chunks (source, nth, title, location, text, vector) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    putWords: database.prepare('INSERT INTO words (rowid, title, headings, text) VALUES (?, ?, ?, ?)'),
    dropWords: database.prepare('DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE source = ?)'),
    dropChunks: database.prepare('DELETE FROM chunks WHERE source = ?'),
    dropFile: database.prepare('DELETE FROM files WHERE source = ?'),
    passage: database.prepare('SELECT source, nth, title, location, text FROM chunks WHERE id = ?'),
    // A hit in the title or the headings says more than one in the text.
    search: database.prepare(
      'SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY bm25(words, 4.0, 2.0, 1.0) LIMIT ?',
    ),
    count: database.prepare('SELECT count(*) AS n FROM chunks'),
    revision: database.prepare("SELECT value FROM facts WHERE name = 'revision'"),
    nextRevision: database.prepare(
      "INSERT INTO facts VALUES ('revision', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)",
    ),
    vectorKnown: database.prepare('SELECT 1 AS one FROM vectors WHERE hash = ?'),
    putVector: database.prepare('INSERT OR IGNORE INTO vectors VALUES (?, ?)'),
    vectors: database.prepare(
      'SELECT chunks.id AS id, vectors.vector AS vector FROM chunks JOIN vectors ON vectors.hash = chunks.vector ORDER BY chunks.id',
    ),
    dropUnused: database.prepare(
      'DELETE FROM vectors WHERE hash NOT IN (SELECT vector FROM chunks WHERE vector IS NOT NULL)',
    ),
  };
  const drop = (source: string): void => {
    sql.dropWords.run(source);
    sql.dropChunks.run(source);
    sql.dropFile.run(source);
  };
  return {
    known(source) {
      const row = sql.known.get(source);
      return row && { hash: String(row['hash']), size: Number(row['size']), modifiedMs: Number(row['modified']) };
    },
    sources: () => sql.sources.all().map((row) => String(row['source'])),
    put(file, hash, words, chunks, vectors) {
      inTransaction(database, () => {
        drop(file.source);
        sql.putFile.run(file.source, hash, file.size, file.modifiedMs, words);
        for (const [at, { title, location, text }] of chunks.entries()) {
          const { lastInsertRowid } = sql.putChunk.run(
            file.source,
            at,
            title,
            JSON.stringify(location),
            text,
            vectors?.[at] ?? null,
          );
          sql.putWords.run(Number(lastInsertRowid), title, (location.headings ?? []).join(' '), text);
        }
        sql.nextRevision.run();
      });
    },
    touch: ({ source, size, modifiedMs }) => void sql.touch.run(size, modifiedMs, source),
    remove(source) {
      inTransaction(database, () => {
        drop(source);
        sql.nextRevision.run();
      });
    },
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
    count: () => Number(sql.count.get()?.['n'] ?? 0),
    revision: () => Number(sql.revision.get()?.['value'] ?? 0),
    knownVectors: (hashes) => new Set(hashes.filter((hash) => sql.vectorKnown.get(hash) !== undefined)),
    putVectors(vectors) {
      inTransaction(database, () => {
        for (const { hash, vector } of vectors)
          sql.putVector.run(hash, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength));
      });
    },
    vectors: () =>
      sql.vectors.all().map((row) => ({ id: Number(row['id']), vector: toFloats(row['vector'] as Uint8Array) })),
    dropUnused: () => void sql.dropUnused.run(),
  };
}

/** A copy, because a blob of the driver need not be aligned for floats. */
function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
