import { mkdir } from 'node:fs/promises';
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
const VERSION = 1;

const TABLES = `
CREATE TABLE IF NOT EXISTS files (source TEXT PRIMARY KEY, hash TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, words INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS chunks (id INTEGER PRIMARY KEY, source TEXT NOT NULL, nth INTEGER NOT NULL, title TEXT NOT NULL, location TEXT NOT NULL, text TEXT NOT NULL, vector TEXT) STRICT;
CREATE INDEX IF NOT EXISTS chunks_by_source ON chunks (source);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(title, headings, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS vectors (hash TEXT PRIMARY KEY, vector BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

/** Opens the index file, which several workers may share: one of them writes at a time. */
export async function openIndex(folder: string): Promise<Database> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { DatabaseSync } = await importSqlite();
  const database = new DatabaseSync(path.join(folder, 'rag.db'));
  database.exec('PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL');
  const { user_version } = database.prepare('PRAGMA user_version').get() ?? {};
  if (user_version !== VERSION) {
    for (const table of ['files', 'chunks', 'words', 'vectors', 'facts'])
      database.exec(`DROP TABLE IF EXISTS ${table}`);
    database.exec(`PRAGMA user_version=${VERSION}`);
  }
  database.exec(TABLES);
  return database;
}

async function importSqlite(): Promise<{ readonly DatabaseSync: new (file: string) => Database }> {
  const builtin: string = 'node:sqlite';
  try {
    return await import(builtin);
  } catch {
    return (await import('@photostructure/sqlite')) as unknown as { DatabaseSync: new (file: string) => Database };
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

/** How long the right to index lasts without being renewed: a worker that died gives it back by that. */
const LEASE_MS = 30_000;

/** Takes or renews the right to index; one holder at a time over all processes. */
export function leaseIndexing(database: Database, holder: string, now: number): boolean {
  return inTransaction(database, () => {
    const row = database.prepare("SELECT value FROM facts WHERE name = 'indexer'").get();
    const held =
      typeof row?.['value'] === 'string' ? (JSON.parse(row['value']) as { holder: string; until: number }) : undefined;
    if (held && held.holder !== holder && held.until > now) return false;
    database
      .prepare("INSERT OR REPLACE INTO facts VALUES ('indexer', ?)")
      .run(JSON.stringify({ holder, until: now + LEASE_MS }));
    return true;
  });
}
