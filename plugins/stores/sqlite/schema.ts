import { GatewayError } from '../../../contract/index.ts';
import { explainSchemaVersion } from '../kit/failure.ts';
import type { Database } from './driver.ts';

/** Schema migration: `sql` changes a file from the previous version to `version` (SQLite's `user_version`). */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/**
 * All migrations in ascending order; the first one creates a new file. To change the schema, append a migration with
 * the next version, and a test that migrates a file with rows of the previous version. Never edit a released migration.
 * Versions before 7 belong to unreleased builds, and their files are rejected.
 */
export const MIGRATIONS: readonly Migration[] = Object.freeze([
  {
    version: 7,
    sql: `
  CREATE TABLE documents (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires INTEGER,
    PRIMARY KEY (namespace, key)) WITHOUT ROWID;
  CREATE INDEX documents_expires ON documents (expires) WHERE expires IS NOT NULL;

  -- Sums of accounts and budgets (kind is 'account' or 'budget'), in one table so that one statement writes all changes of a
  -- turn. name is the account's name as JSON if its id is a hash of it; until is the end of a budget.
  CREATE TABLE sums (kind TEXT NOT NULL, id TEXT NOT NULL, balance INTEGER NOT NULL, held INTEGER NOT NULL,
    spent INTEGER NOT NULL, credited INTEGER NOT NULL, last_entry INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    until INTEGER, name TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID;
  -- Requests with a hold ('held'), requests charged by the sweeper that a late settlement may still correct ('swept'), and
  -- ended requests and credits ('ended'; until is NULL: forever), so that none is applied twice.
  CREATE TABLE requests (ref TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, amount INTEGER,
    budgets TEXT, facts TEXT, swept_at INTEGER, counted_at INTEGER, until INTEGER, PRIMARY KEY (ref, account, kind)) WITHOUT ROWID;
  CREATE INDEX requests_held ON requests (until) WHERE state = 'held';
  -- Rows of all accounts are appended; each refers to the previous entry of its account. An index by account would write one
  -- more page per charge, and pages are the main cost of a commit.
  CREATE TABLE entries (n INTEGER PRIMARY KEY, before INTEGER NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL,
    ref TEXT NOT NULL, amount INTEGER NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL);

  -- Dimensions of calls. Rows are few and permanent: the rollup and the records refer to their numbers.
  CREATE TABLE call_groups (id INTEGER PRIMARY KEY, account TEXT NOT NULL, user TEXT NOT NULL, key TEXT NOT NULL,
    tags TEXT NOT NULL, operation TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    UNIQUE (account, user, key, tags, operation, provider, model));
  -- The hour comes first, so that current rows are adjacent.
  CREATE TABLE rollup (hour INTEGER NOT NULL, group_id INTEGER NOT NULL, requests INTEGER NOT NULL, errors INTEGER NOT NULL,
    estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    characters INTEGER NOT NULL, cost INTEGER NOT NULL, saved INTEGER NOT NULL,
    PRIMARY KEY (hour, group_id)) WITHOUT ROWID;
  -- One table ordered by time. Lists by account, user, key, session or request read only matching records by an index; each
  -- index entry ends with the table's key.
  CREATE TABLE calls (at INTEGER NOT NULL, tie TEXT NOT NULL, group_id INTEGER NOT NULL, session TEXT, outcome TEXT NOT NULL,
    errors INTEGER NOT NULL, estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    characters INTEGER NOT NULL, cost INTEGER NOT NULL, saved INTEGER NOT NULL, facts TEXT NOT NULL, account TEXT NOT NULL,
    user TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, counted_at INTEGER NOT NULL, PRIMARY KEY (at, tie)) WITHOUT ROWID;
  CREATE INDEX calls_account ON calls (account, at, tie);
  CREATE INDEX calls_user ON calls (user, at, tie);
  CREATE INDEX calls_key ON calls (key, at, tie);
  CREATE INDEX calls_session ON calls (session, at, tie) WHERE session IS NOT NULL;
  CREATE INDEX calls_request ON calls (request, at, tie);
  CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

  CREATE TABLE members (name TEXT NOT NULL, member TEXT NOT NULL, PRIMARY KEY (name, member)) WITHOUT ROWID;

  CREATE TABLE windows (key TEXT PRIMARY KEY, used INTEGER NOT NULL, resets_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE leases (key TEXT NOT NULL, id TEXT NOT NULL, expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, id)) WITHOUT ROWID;
  CREATE TABLE numbers (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  `,
  },
  {
    version: 8,
    sql: `
  -- Accounts, users and keys of calls by number. Rows are few and permanent.
  CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  INSERT INTO names (name) SELECT account FROM calls UNION SELECT user FROM calls UNION SELECT key FROM calls
    UNION SELECT tie ->> '$[1]' FROM calls;
  -- Records ordered by time; n is unique and orders records of the same time. owner is the account's key, account its name in
  -- lists: the same number in most records.
  CREATE TABLE new_calls (at INTEGER NOT NULL, n INTEGER NOT NULL, ref TEXT NOT NULL, owner INTEGER NOT NULL,
    group_id INTEGER NOT NULL, account INTEGER NOT NULL, user INTEGER NOT NULL, key INTEGER NOT NULL, request TEXT NOT NULL,
    session TEXT, outcome TEXT NOT NULL, facts TEXT NOT NULL, counted_at INTEGER NOT NULL, errors INTEGER NOT NULL,
    estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL, characters INTEGER NOT NULL, cost INTEGER NOT NULL,
    saved INTEGER NOT NULL, PRIMARY KEY (at, n)) WITHOUT ROWID;
  INSERT INTO new_calls SELECT c.at, row_number() OVER (ORDER BY c.at, c.tie), c.tie ->> '$[0]', o.id, c.group_id, a.id, u.id, k.id,
      c.request, c.session, c.outcome, c.facts, c.counted_at, c.errors, c.estimated, c.unpriced, c.prompt_tokens,
      c.completion_tokens, c.cached_tokens, c.reasoning_tokens, c.characters, c.cost, c.saved
    FROM calls AS c JOIN names AS o ON o.name = c.tie ->> '$[1]' JOIN names AS a ON a.name = c.account
      JOIN names AS u ON u.name = c.user JOIN names AS k ON k.name = c.key;
  INSERT INTO marks SELECT 'calls_written', count(*) + 1 FROM calls;
  DROP TABLE calls;
  ALTER TABLE new_calls RENAME TO calls;
  CREATE INDEX calls_account ON calls (account, at, n);
  CREATE INDEX calls_user ON calls (user, at, n);
  CREATE INDEX calls_key ON calls (key, at, n);
  CREATE INDEX calls_session ON calls (session, at, n) WHERE session IS NOT NULL;
  CREATE INDEX calls_request ON calls (request, at, n);
  -- Requests with a hold, and those charged by the sweeper. There are few rows, so no index. An ended request stays as a row
  -- with the state 'ended' until it is moved to the table ended.
  CREATE TABLE holds (ref TEXT NOT NULL, account TEXT NOT NULL, state TEXT NOT NULL, until INTEGER NOT NULL, amount INTEGER,
    budgets TEXT, facts TEXT, swept_at INTEGER, counted_at INTEGER, PRIMARY KEY (ref, account)) WITHOUT ROWID;
  INSERT INTO holds SELECT ref, account, state, until, amount, budgets, facts, swept_at, counted_at FROM requests
    WHERE kind = 'charge' AND state <> 'ended';
  -- Ended requests and credits (until is NULL: forever), so that none is applied twice.
  CREATE TABLE ended (ref TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, until INTEGER,
    PRIMARY KEY (ref, account, kind)) WITHOUT ROWID;
  INSERT INTO ended SELECT ref, account, kind, until FROM requests WHERE state = 'ended';
  DROP TABLE requests;
  -- Ends of calls that are in the sums but not yet in entries, calls and rollup: one row per commit.
  CREATE TABLE journal (n INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, data TEXT NOT NULL);
  -- Unreadable rows of the journal.
  CREATE TABLE damaged_journal (n INTEGER PRIMARY KEY, found_at INTEGER NOT NULL, checksum, data);
  `,
  },
  {
    version: 9,
    sql: `
  -- Parts of a day with a record that has a term, a hash of one of its values. Records before the mark terms_from have none.
  CREATE TABLE call_terms (day INTEGER NOT NULL, term INTEGER NOT NULL, part INTEGER NOT NULL,
    PRIMARY KEY (day, term, part)) WITHOUT ROWID;
  INSERT INTO marks SELECT 'terms_from', coalesce(max(at) + 1, 0) FROM calls;
  -- Few records, which operators look for most.
  CREATE INDEX calls_failed ON calls (at, n) WHERE outcome <> 'ok';
  -- Sums of all groups of an hour.
  CREATE TABLE hours (hour INTEGER PRIMARY KEY, requests INTEGER NOT NULL, errors INTEGER NOT NULL,
    estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    characters INTEGER NOT NULL, cost INTEGER NOT NULL, saved INTEGER NOT NULL);
  INSERT INTO hours SELECT hour, sum(requests), sum(errors), sum(estimated), sum(unpriced), sum(prompt_tokens),
    sum(completion_tokens), sum(cached_tokens), sum(reasoning_tokens), sum(characters), sum(cost), sum(saved)
    FROM rollup GROUP BY hour;
  `,
  },
]);

const WORDS = { kind: 'sqlite', place: 'folder', remedy: 'set store to a new folder' } as const;

/**
 * Migrates the file to the newest version in one transaction, so that several processes may start concurrently. Throws
 * `store_unavailable` and changes nothing if the file is older than the first migration or newer than the last.
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

/** Version 0 is a new, empty file. Versions from the first to the last migration are migrated. */
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
    // On a full disk, SQLite has already rolled back itself.
  }
}
