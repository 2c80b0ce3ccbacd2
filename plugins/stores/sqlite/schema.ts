import { storeUnavailable } from '../kit/failure.ts';
import type { Database } from './database.ts';

/** Each element takes the file from the version of its index to the next; only ever appended to. */
const MIGRATIONS: readonly string[] = Object.freeze([
  `
  CREATE TABLE documents (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires INTEGER,
    PRIMARY KEY (namespace, key)) WITHOUT ROWID;
  CREATE INDEX documents_expires ON documents (expires) WHERE expires IS NOT NULL;

  CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, held INTEGER NOT NULL, spent INTEGER NOT NULL,
    credited INTEGER NOT NULL, last_entry INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE purses (account TEXT NOT NULL, id TEXT NOT NULL, spent INTEGER NOT NULL, held INTEGER NOT NULL,
    PRIMARY KEY (account, id)) WITHOUT ROWID;
  CREATE TABLE holds (account TEXT NOT NULL, ref TEXT NOT NULL, amount INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    purse TEXT, facts TEXT NOT NULL, PRIMARY KEY (account, ref)) WITHOUT ROWID;
  -- Requests that are over and credits that were given (until is NULL: for ever), so that neither happens twice.
  CREATE TABLE finished (ref TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, until INTEGER,
    PRIMARY KEY (ref, account, kind)) WITHOUT ROWID;
  -- Appended at the end, whatever the account; an account's entries are a chain from its last one backwards. An index
  -- by account would dirty a page of its own for every charge, which is what a commit costs most.
  CREATE TABLE entries (n INTEGER PRIMARY KEY, before INTEGER NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL,
    ref TEXT NOT NULL, amount INTEGER NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL);
  -- The day comes first for the same reason: all rows that change today are neighbours.
  CREATE TABLE usage (day TEXT NOT NULL, account TEXT NOT NULL, operation TEXT NOT NULL, provider TEXT NOT NULL,
    model TEXT NOT NULL, key TEXT NOT NULL, requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, characters INTEGER NOT NULL, cost INTEGER NOT NULL,
    PRIMARY KEY (day, account, operation, provider, model, key)) WITHOUT ROWID;

  CREATE TABLE members (name TEXT NOT NULL, member TEXT NOT NULL, PRIMARY KEY (name, member)) WITHOUT ROWID;

  CREATE TABLE windows (key TEXT PRIMARY KEY, used INTEGER NOT NULL, resets_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE leases (key TEXT NOT NULL, id TEXT NOT NULL, expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, id)) WITHOUT ROWID;
  CREATE TABLE numbers (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  `,
]);

/** Brings the file to the newest version in one transaction; safe when several processes start at once. */
export function migrate(database: Database): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    if (version > MIGRATIONS.length) {
      throw storeUnavailable('The sqlite store was written by a newer version of this gateway: start that version.');
    }
    for (const sql of MIGRATIONS.slice(version)) database.exec(sql);
    if (version < MIGRATIONS.length) database.exec(`PRAGMA user_version=${MIGRATIONS.length}`);
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}
