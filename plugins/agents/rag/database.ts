import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';

/** What of `node:sqlite` the index uses; `@photostructure/sqlite` has the same API for Node before 22.13. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

type Value = string | number | null | Uint8Array;

export interface Statement {
  run(...values: Value[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
  get(...values: Value[]): Readonly<Record<string, unknown>> | undefined;
  all(...values: Value[]): readonly Readonly<Record<string, unknown>>[];
}

/** Changes with the tables below: another version is dropped and made anew, for the index is derived data. */
const VERSION = 2;

// Ids are never given twice (AUTOINCREMENT): a reader's list of hits may be older than the rows.
const TABLES = `
CREATE TABLE IF NOT EXISTS files (source TEXT PRIMARY KEY, stamp TEXT NOT NULL, hash TEXT NOT NULL, recipe TEXT NOT NULL, fault TEXT) STRICT;
CREATE TABLE IF NOT EXISTS chunks (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, nth INTEGER NOT NULL, title TEXT NOT NULL, location TEXT NOT NULL, text TEXT NOT NULL, vector TEXT) STRICT;
CREATE INDEX IF NOT EXISTS chunks_by_source ON chunks (source);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(title, headings, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS vectors (hash TEXT PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

const FILE = 'rag.db';

/** Opens the index file, which processes share. `busyMs` is how long a write waits for another process's. */
export async function openIndex(folder: string, busyMs: number): Promise<Database> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, FILE);
  // It holds what the documents hold: for its owner alone.
  await (await open(file, 'a', 0o600)).close();
  const { DatabaseSync } = await importSqlite();
  const database = new DatabaseSync(file);
  database.exec('PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL');
  if (versionOf(database) !== VERSION)
    inTransaction(database, () => {
      if (versionOf(database) === VERSION) return;
      for (const table of ['files', 'chunks', 'words', 'vectors', 'facts'])
        database.exec(`DROP TABLE IF EXISTS ${table}`);
      database.exec(`${TABLES} PRAGMA user_version=${VERSION}`);
    });
  database.exec(`PRAGMA busy_timeout=${busyMs}`);
  return database;
}

function versionOf(database: Database): unknown {
  return database.prepare('PRAGMA user_version').get()?.['user_version'];
}

async function importSqlite(): Promise<{ readonly DatabaseSync: new (file: string) => Database }> {
  const builtin: string = 'node:sqlite';
  try {
    return await import(builtin);
  } catch {
    return await import('@photostructure/sqlite');
  }
}

/** Runs work in one transaction. */
export function inTransaction<T>(database: Database, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}
