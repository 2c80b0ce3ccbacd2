import { SUM_NAMES } from '../kit/call-rows.ts';

/**
 * Everything is in the schema `tollgate`. Atomic operations are functions: one round trip, one transaction, and rows
 * locked in a fixed order. Calls therefore wait for each other and never deadlock.
 */

/**
 * Version of {@link SCHEMA} and {@link FUNCTIONS}. A change of either increases it, with a migration of the previous
 * version and a test. Versions before {@link OLDEST_VERSION} belong to unreleased builds and are rejected.
 */
export const VERSION = 8;
/** Oldest version that a start migrates. */
export const OLDEST_VERSION = 6;

/** Maximum clock difference of gateways. */
export const SKEW_MS = 60_000;

const SUMS = SUM_NAMES.map((name) => `${name} bigint NOT NULL`).join(', ');
const BALANCES = ['balance', 'held', 'spent', 'credited', 'last_entry', 'updated_at'];
const columnsOf = (names: readonly string[]): string =>
  names.map((name) => `(row::json ->> '${name}')::bigint AS ${name}`).join(', ');

/**
 * Tables, created once. Windows and leases are unlogged: a server crash may lose the calls of the last minute. The key
 * of a rollup row is a hash of its dimensions, because an index limits the length of texts.
 */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS tollgate.documents (key varchar(255) COLLATE "C" PRIMARY KEY, value text, expires bigint);
CREATE INDEX IF NOT EXISTS documents_expires ON tollgate.documents (expires) WHERE expires IS NOT NULL;

-- Accounts, budgets and requests, as kit/versioned-ledger.ts writes them.
CREATE TABLE IF NOT EXISTS tollgate.ledger (id text COLLATE "C" PRIMARY KEY, version text NOT NULL, row text NOT NULL,
  -- Time of the sweep; time from which it may be deleted.
  due bigint, until bigint) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS ledger_due ON tollgate.ledger (due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS ledger_until ON tollgate.ledger (until) WHERE until IS NOT NULL;
CREATE OR REPLACE VIEW tollgate.accounts AS SELECT substr(id, 9) AS id, row::json ->> 'name' AS name, ${columnsOf(BALANCES)}
  FROM tollgate.ledger WHERE id > 'account:' AND id < 'account;';
CREATE OR REPLACE VIEW tollgate.budgets AS SELECT substr(id, 8) AS id, ${columnsOf(['spent', 'held'])}, until
  FROM tollgate.ledger WHERE id > 'budget:' AND id < 'budget;';
CREATE TABLE IF NOT EXISTS tollgate.entries (account text, n bigint, kind text NOT NULL, ref text NOT NULL,
  amount bigint NOT NULL, reason text NOT NULL, at bigint NOT NULL, PRIMARY KEY (account, n));

CREATE TABLE IF NOT EXISTS tollgate.calls (account text, ref text, at bigint NOT NULL, counted_at bigint NOT NULL,
  n bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL, user_id text NOT NULL, key text NOT NULL, tags text NOT NULL,
  operation text NOT NULL, provider text NOT NULL, model text NOT NULL, request_id text NOT NULL, session text, outcome text NOT NULL,
  sums bigint[] NOT NULL, facts text NOT NULL, PRIMARY KEY (account, ref));
CREATE INDEX IF NOT EXISTS calls_at ON tollgate.calls (at, n);
CREATE INDEX IF NOT EXISTS calls_counted ON tollgate.calls (counted_at);
-- One index per filter: a list reads only matching records.
CREATE INDEX IF NOT EXISTS calls_of_account ON tollgate.calls (name, at, n);
CREATE INDEX IF NOT EXISTS calls_of_user ON tollgate.calls (user_id, at, n);
CREATE INDEX IF NOT EXISTS calls_of_key ON tollgate.calls (key, at, n);
CREATE INDEX IF NOT EXISTS calls_of_session ON tollgate.calls (session, at, n) WHERE session IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_of_request ON tollgate.calls (request_id, at, n);
-- Few records, which operators look for most.
CREATE INDEX IF NOT EXISTS calls_failed ON tollgate.calls (at, n) WHERE outcome <> 'ok';
-- Parts of a day with a record that has a term, a hash of one of its values. Records before terms_from in meta have none.
CREATE TABLE IF NOT EXISTS tollgate.call_terms (day int, term bigint, part int, PRIMARY KEY (day, term, part));
-- Sums of all groups of an hour.
CREATE TABLE IF NOT EXISTS tollgate.hours (hour bigint PRIMARY KEY, ${SUMS}) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS tollgate.rollup (hour bigint, id text, account text NOT NULL, user_id text NOT NULL,
  key text NOT NULL, tags text NOT NULL, operation text NOT NULL, provider text NOT NULL, model text NOT NULL,
  ${SUMS}, PRIMARY KEY (hour, id));

-- Ends of calls that are in the ledger but not yet in entries, calls and rollup: one row per transaction. Rows are
-- short-lived, so vacuum runs by their number.
CREATE TABLE IF NOT EXISTS tollgate.journal (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, checksum bytea NOT NULL,
  data text NOT NULL) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- Unreadable rows of the journal.
CREATE TABLE IF NOT EXISTS tollgate.damaged_journal (n bigint PRIMARY KEY, found_at bigint NOT NULL, checksum bytea, data text);

-- The process that has the turn to write to the ledger, and its end in Unix milliseconds; at most one row.
CREATE UNLOGGED TABLE IF NOT EXISTS tollgate.turn (id boolean PRIMARY KEY DEFAULT true CHECK (id), owner text NOT NULL,
  until double precision NOT NULL);

CREATE TABLE IF NOT EXISTS tollgate.members (name text, member text COLLATE "C", PRIMARY KEY (name, member));
CREATE UNLOGGED TABLE IF NOT EXISTS tollgate.windows (key text COLLATE "C" PRIMARY KEY, used bigint NOT NULL,
  resets_at bigint NOT NULL) WITH (fillfactor = 50);
CREATE UNLOGGED TABLE IF NOT EXISTS tollgate.leases (key text, id text, expires_at bigint NOT NULL, PRIMARY KEY (key, id));
CREATE TABLE IF NOT EXISTS tollgate.numbers (key text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 50);
`;

/** Fills the tables of schema 8 from an earlier one, while no process moves the journal. */
export const FILL_8 = `
INSERT INTO tollgate.hours SELECT hour, ${SUM_NAMES.map((name) => `sum(${name})`).join(', ')} FROM tollgate.rollup
  GROUP BY hour ON CONFLICT DO NOTHING;
INSERT INTO tollgate.meta VALUES ('terms_from', (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${SKEW_MS})::text)
  ON CONFLICT DO NOTHING;
`;
