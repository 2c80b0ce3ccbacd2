import { openIndex } from '../../../plugins/agents/rag/database.ts';

/** The tables of index version 2. */
const FORMER_TABLES = `
CREATE TABLE files (source TEXT PRIMARY KEY, stamp TEXT NOT NULL, hash TEXT NOT NULL, recipe TEXT NOT NULL, fault TEXT) STRICT;
CREATE TABLE chunks (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, nth INTEGER NOT NULL, title TEXT NOT NULL, location TEXT NOT NULL, text TEXT NOT NULL, vector TEXT) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE VIRTUAL TABLE words USING fts5(title, headings, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE vectors (hash TEXT PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO files VALUES ('old.md', 's', 'h', 'r', NULL);
INSERT INTO chunks (source, nth, title, location, text) VALUES ('old.md', 0, 'Old', '{}', 'what an older version indexed');
INSERT INTO words (rowid, title, headings, text) VALUES (1, 'Old', '', 'what an older version indexed');
INSERT INTO facts VALUES ('revision', '7');
`;

interface FormerVector {
  readonly hash: string;
  readonly model: string;
  readonly vector: Float32Array;
}

/** An index as version 2 of it was, with one passage, and any number in its place of the version. */
export async function makeFormerIndex(
  folder: string,
  version: number,
  vectors: readonly FormerVector[] = [],
): Promise<void> {
  const database = await openIndex(folder, 1000);
  for (const table of ['files', 'chunks', 'folders', 'vectors', 'facts']) database.exec(`DROP TABLE ${table}`);
  database.exec(`${FORMER_TABLES} PRAGMA user_version=${version}`);
  const put = database.prepare('INSERT INTO vectors VALUES (?, ?, ?)');
  for (const { hash, model, vector } of vectors) put.run(hash, model, new Uint8Array(vector.buffer));
  database.close();
}
