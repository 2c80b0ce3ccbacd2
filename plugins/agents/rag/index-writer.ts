import type { Chunk } from './chunk-file.ts';
import type { Database } from './database.ts';
import type { KnownFile } from './index-reader.ts';
import type { Location } from './section.ts';
import { indexParts, indexText } from './terms.ts';
import { openWordTable, wordTable } from './word-tables.ts';

/** Passages of a file. */
export interface NewPassages {
  readonly chunks: readonly Chunk[];
  /** Folder whose rule applies to the file. */
  readonly folder: string;
  /** Hashes of the passages' embeddings, in order. */
  readonly vectors?: readonly string[];
}

/** Changes to the index, valid only inside `lock.write`. */
export interface IndexWriter {
  /** Replaces all entries of a file. */
  put(source: string, file: KnownFile, passages: NewPassages): void;
  /** Records that a file was touched without a change. */
  touch(source: string, stamp: string): void;
  remove(source: string): void;
  /** Passages above an id without an embedding, by id. */
  unembedded(
    above: number,
    limit: number,
  ): readonly { readonly id: number; readonly hash: string; readonly passage: Chunk }[];
  /** Stores vectors; an empty one means that the model refuses the text. */
  putVectors(model: string, vectors: readonly { readonly hash: string; readonly vector: Float32Array }[]): void;
  /** Records that no passage waits for an embedding, and drops unused embeddings. */
  finish(): void;
}

export function createIndexWriter(database: Database): IndexWriter {
  const sql = prepareWrites(database);
  const remove = (source: string): void => {
    for (const { id } of sql.tablesOf.all(source))
      database
        .prepare(`DELETE FROM ${wordTable(Number(id))} WHERE rowid IN (SELECT id FROM chunks WHERE source = ?)`)
        .run(source);
    sql.dropChunks.run(source);
    sql.dropFile.run(source);
    sql.nextRevision.run();
  };
  return {
    remove,
    touch: (source, stamp) => void sql.touch.run(stamp, source),
    put(source, { stamp, hash, recipe, error }, { chunks, folder, vectors }) {
      remove(source);
      sql.putFile.run(source, stamp, hash, recipe, error ?? null);
      if (chunks.length === 0) return;
      const table = openWordTable(database, folder);
      const putWords = database.prepare(
        `INSERT INTO ${table} (rowid, title, headings, text, parts) VALUES (?, ?, ?, ?, ?)`,
      );
      for (const [nth, { title, location, text }] of chunks.entries()) {
        const place = JSON.stringify(location);
        const { lastInsertRowid } = sql.putChunk.run(source, nth, title, place, text, vectors?.[nth] ?? null, folder);
        const headings = (location.headings ?? []).join(' ');
        const parts = indexParts(`${title}\n${headings}\n${text}`);
        putWords.run(Number(lastInsertRowid), indexText(title), indexText(headings), indexText(text), parts);
      }
      if (vectors && vectors.length > 0) sql.putFact.run('unembedded', '1');
    },
    unembedded: (above, limit) =>
      sql.unembedded.all(above, limit).map(({ id, hash, title, location, text }) => ({
        id: Number(id),
        hash: String(hash),
        passage: { title: String(title), text: String(text), location: JSON.parse(String(location)) as Location },
      })),
    putVectors(model, vectors) {
      for (const { hash, vector } of vectors)
        sql.putVector.run(hash, model, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength));
      sql.nextRevision.run();
    },
    finish() {
      sql.putFact.run('unembedded', '0');
      sql.dropUnused.run();
    },
  };
}

function prepareWrites(database: Database) {
  return {
    putFile: database.prepare('INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)'),
    touch: database.prepare('UPDATE files SET stamp = ? WHERE source = ?'),
    putChunk: database.prepare(
      'INSERT INTO chunks (source, nth, title, location, text, vector, folder) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    tablesOf: database.prepare('SELECT id FROM folders WHERE name IN (SELECT folder FROM chunks WHERE source = ?)'),
    dropChunks: database.prepare('DELETE FROM chunks WHERE source = ?'),
    dropFile: database.prepare('DELETE FROM files WHERE source = ?'),
    nextRevision: database.prepare(
      "INSERT INTO facts VALUES ('revision', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)",
    ),
    putFact: database.prepare('INSERT OR REPLACE INTO facts VALUES (?, ?)'),
    putVector: database.prepare('INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)'),
    unembedded: database.prepare(
      'SELECT id, vector AS hash, title, location, text FROM chunks WHERE id > ? AND vector IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vectors WHERE hash = chunks.vector) ORDER BY id LIMIT ?',
    ),
    dropUnused: database.prepare(
      'DELETE FROM vectors WHERE hash NOT IN (SELECT vector FROM chunks WHERE vector IS NOT NULL)',
    ),
  };
}
