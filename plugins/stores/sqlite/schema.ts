import { GatewayError } from '../../../core/index.ts';
import { explainSchemaVersion } from '../kit/failure.ts';
import type { Database } from './driver.ts';
import { STEP_4 } from './schema-step-4.ts';

/** One step of the schema: `sql` takes a file of the version before it to `version` (SQLite's `user_version`). */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/**
 * All steps, in ascending order; the first one makes a new file. To change the schema, append a step with the next
 * version and a test that takes a file with rows of the version before through it. A step that was released is never
 * edited. Version 1 was an unreleased build's, which also kept charges in a file of its own beside this one.
 */
export const MIGRATIONS: readonly Migration[] = Object.freeze([
  {
    version: 2,
    sql: `
  CREATE TABLE documents (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires INTEGER,
    PRIMARY KEY (namespace, key)) WITHOUT ROWID;
  CREATE INDEX documents_expires ON documents (expires) WHERE expires IS NOT NULL;

  CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, held INTEGER NOT NULL, spent INTEGER NOT NULL,
    credited INTEGER NOT NULL, last_entry INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE purses (account TEXT NOT NULL, id TEXT NOT NULL, spent INTEGER NOT NULL, held INTEGER NOT NULL,
    PRIMARY KEY (account, id)) WITHOUT ROWID;
  CREATE TABLE holds (account TEXT NOT NULL, ref TEXT NOT NULL, amount INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    purse TEXT, facts TEXT NOT NULL, PRIMARY KEY (account, ref)) WITHOUT ROWID;
  -- Requests that have ended and credits that were given (until is NULL: for ever), so that neither happens twice.
  CREATE TABLE finished (ref TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, until INTEGER,
    PRIMARY KEY (ref, account, kind)) WITHOUT ROWID;
  -- Rows are appended whatever their account is; each one names the account's entry before it. An index by account
  -- would write one more page for every charge, and pages are what a commit costs most.
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
  },
  {
    version: 3,
    sql: `
  -- Requests that the sweeper has charged, for as long as a late settlement may correct them.
  CREATE TABLE swept (ref TEXT NOT NULL, account TEXT NOT NULL, amount INTEGER NOT NULL, purse TEXT, facts TEXT NOT NULL,
    at INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (ref, account)) WITHOUT ROWID;
  `,
  },
  { version: 4, sql: STEP_4 },
  {
    version: 5,
    sql: `
  -- A list of one of these reads its own records, however many others there are. Each entry ends with the table's key.
  ALTER TABLE calls ADD COLUMN account TEXT NOT NULL DEFAULT '-';
  ALTER TABLE calls ADD COLUMN user TEXT NOT NULL DEFAULT '-';
  ALTER TABLE calls ADD COLUMN key TEXT NOT NULL DEFAULT '-';
  ALTER TABLE calls ADD COLUMN request TEXT NOT NULL DEFAULT '-';
  UPDATE calls SET (account, user, key) = (SELECT account, user, key FROM call_groups WHERE id = group_id),
    request = coalesce(json_extract(facts, '$.requestId'), '-');
  CREATE INDEX calls_account ON calls (account, at, tie);
  CREATE INDEX calls_user ON calls (user, at, tie);
  CREATE INDEX calls_key ON calls (key, at, tie);
  CREATE INDEX calls_session ON calls (session, at, tie) WHERE session IS NOT NULL;
  CREATE INDEX calls_request ON calls (request, at, tie);
  `,
  },
]);

const WORDS = { kind: 'sqlite', place: 'folder', remedy: 'set store to a new folder' } as const;

/**
 * Brings the file to the newest version in one transaction, so that several processes may start at once. Throws
 * `store_unavailable`, and changes nothing, when the file is older than the first step or newer than the last one.
 */
export function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    checkVersion(version, migrations);
    for (const step of migrations) {
      if (step.version <= version) continue;
      database.exec(step.sql);
      database.exec(`PRAGMA user_version=${step.version}`);
    }
    database.exec('COMMIT');
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** Version 0 is a new, empty file; what is between the first step and the last one is taken further. */
export function checkVersion(version: number, migrations: readonly Migration[]): void {
  const first = migrations[0]?.version ?? 0;
  const last = migrations.at(-1)?.version ?? 0;
  if (version === 0 || (version >= first && version <= last)) return;
  const refusal = explainSchemaVersion(WORDS, version, last);
  if (refusal !== undefined) throw new GatewayError('store_unavailable', refusal);
}

function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // A full disk makes SQLite roll back by itself: then nothing is left to roll back.
  }
}
