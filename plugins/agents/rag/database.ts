import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';

/** Subset of `node:sqlite` in use; `@photostructure/sqlite` has the same API for Node before 22.13. */
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

/** Changes with the tables below. Another version is dropped and rebuilt, since the index is derived data. */
export const INDEX_VERSION = 3;

// Ids are never reused (AUTOINCREMENT): a reader's list of hits may be older than the rows.
const TABLES = `
CREATE TABLE IF NOT EXISTS files (source TEXT PRIMARY KEY, stamp TEXT NOT NULL, hash TEXT NOT NULL, recipe TEXT NOT NULL, fault TEXT) STRICT;
CREATE TABLE IF NOT EXISTS chunks (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, nth INTEGER NOT NULL, title TEXT NOT NULL, location TEXT NOT NULL, text TEXT NOT NULL, vector TEXT, folder TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS chunks_by_source ON chunks (source);
CREATE INDEX IF NOT EXISTS chunks_by_folder ON chunks (folder);
CREATE TABLE IF NOT EXISTS folders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS vectors (hash TEXT PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

const FILE = 'rag.db';

/** Embeddings are compatible from this version on: they cost money, and are preserved. */
const VECTORS_SINCE = 2;

/**
 * Opens the index file, which processes share. `busyMs` is the wait of a write for another process's. `onDropped` gets
 * the version of an index that had to be dropped.
 */
export async function openIndex(
  folder: string,
  busyMs: number,
  onDropped: (version: number) => void = () => {},
): Promise<Database> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, FILE);
  // Readable by its owner alone: it contains the documents' text.
  await (await open(file, 'a', 0o600)).close();
  const { DatabaseSync } = await importSqlite();
  const database = new DatabaseSync(file);
  database.exec('PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL');
  const dropped = versionOf(database) === INDEX_VERSION ? 0 : makeTables(database);
  if (dropped > 0) onDropped(dropped);
  database.exec(`PRAGMA busy_timeout=${busyMs}`);
  return database;
}

function versionOf(database: Database): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

/** Creates the tables, in place of those of another version; returns that version, 0 for a new file. */
function makeTables(database: Database): number {
  return inTransaction(database, () => {
    const version = versionOf(database);
    if (version === INDEX_VERSION) return 0;
    const keepsVectors = version >= VECTORS_SINCE && version < INDEX_VERSION;
    for (const table of tablesOf(database))
      if (table !== 'vectors' || !keepsVectors) database.exec(`DROP TABLE IF EXISTS "${table}"`);
    database.exec(`${TABLES} PRAGMA user_version=${INDEX_VERSION}`);
    return version;
  });
}

/** All tables, virtual ones first: dropping these removes their backing tables. */
function tablesOf(database: Database): readonly string[] {
  return database
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC",
    )
    .all()
    .map(({ name }) => String(name));
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
