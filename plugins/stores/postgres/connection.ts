import { randomUUID } from 'node:crypto';
import pg, { type Pool } from 'pg';
import { explainSchemaVersion } from '../kit/failure.ts';
import { within } from '../kit/guard.ts';
import {
  connectServer,
  type ServerConnection,
  type ServerDriver,
  type ServerOptions,
} from '../kit/server-connection.ts';
import { SCHEMA, VERSION } from './schema.ts';
import { FUNCTIONS, LATE } from './schema-ledger.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | null | readonly (string | number | null)[];

interface ConnectionOptions extends ServerOptions {
  readonly url: string;
  /** How many connections this process may open. */
  readonly connections: number;
}

/** A pool of connections that is replaced when the server was away. */
export interface Connection extends Pick<ServerConnection<Pool>, 'health' | 'close'> {
  /** Runs a query that only reads; the statement is prepared under its name, once per connection, or each time without one. */
  read(name: string, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /** Calls a function of the schema that changes something; it does nothing when it arrives after its bound. */
  write(name: string, values: readonly Value[]): Promise<Row>;
}

const GREET = `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS time,
  (SELECT value FROM tollgate.meta WHERE name = 'epoch') AS epoch`;

const CONNECT_MS = 2000;
/** An arbitrary number: a process that makes the schema waits for this lock. */
const SCHEMA_LOCK = 7_070_655_083;

/** SQLSTATEs at connecting that stay until somebody changes the configuration: user, password, database, rights. */
const FATAL: ReadonlySet<string> = new Set(['28000', '28P01', '3D000', '42501', '3F000']);

/**
 * Connects to Postgres and makes the schema. Resolves also while the server is away (everything is refused
 * until it answers); rejects when it refuses the user, the database or the making of the schema, or holds another one.
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const server = await connectServer(createDriver(options), options);
  return {
    read: (name, text, values) => server.run(async (pool) => (await pool.query({ name, text, values })).rows),
    write: (name, values) => {
      const places = ['', ...values].map((_, index) => `$${index + 1}`).join(', ');
      const text = `SELECT * FROM tollgate.${name}(${places}) AS result`;
      return server.runInTime(async (pool, deadline) => {
        const { rows } = await pool.query({ name, text, values: [deadline, ...values] });
        return rows[0] ?? {};
      });
    },
    health: server.health,
    close: server.close,
  };
}

function createDriver(options: ConnectionOptions): ServerDriver<Pool> {
  return {
    kind: 'postgres',
    greetMs: CONNECT_MS,
    open() {
      const pool = makePool(options);
      // Idle connections fail too; without a listener that would end this process. The pool drops them by itself.
      pool.on('error', (error) => options.log?.debug({ store: 'postgres', err: error }, 'an idle connection ended'));
      return pool;
    },
    prepare: async (pool, isFirst) => isFirst && (await within(MAKE_MS, makeSchema(pool))),
    async greet(pool) {
      const { rows } = await pool.query({ text: GREET });
      return { timeMs: Number(rows[0]?.['time']), epoch: String(rows[0]?.['epoch'] ?? '') };
    },
    close: (pool) => pool.end(),
    destroy: (pool) => void pool.end().catch(() => undefined),
    isOutage,
    findRefusal,
    findLateTime: (error) => (sqlState(error) === LATE ? readDetail(error) : undefined),
  };
}

function makePool({ url, connections, timeoutMs }: ConnectionOptions): Pool {
  return new pg.Pool({
    connectionString: url,
    application_name: 'tollgate',
    max: connections,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 30_000,
    // The server stops when the caller does; the caller's own bound also covers a server that does nothing at all.
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + 100,
    idle_in_transaction_session_timeout: 5000,
  });
}

/** The SQLSTATE of a schema that this version cannot read; its detail is that version. */
const UNREADABLE = 'TG002';
const WORDS = { kind: 'postgres', place: 'database', remedy: 'set store to a new database' } as const;
/** How long making the schema may take, waiting for another starter included. */
const MAKE_MS = 60_000;
export const FIND_META = "SELECT to_regclass('tollgate.meta') IS NOT NULL AS found";
export const FIND_VERSION = "SELECT value FROM tollgate.meta WHERE name = 'version'";

/**
 * Makes the schema in one transaction, unless it is there; a second starter waits for the first. One of another version
 * stays as it is: the transaction fails.
 */
async function makeSchema(pool: Pool): Promise<void> {
  const known = await pool.query({ text: FIND_META }).then(({ rows }) => rows[0]?.['found']);
  const version = known ? await pool.query({ text: FIND_VERSION }).then(({ rows }) => rows[0]?.['value']) : undefined;
  if (version === String(VERSION)) return;
  await pool.query({
    query_timeout: MAKE_MS,
    text: `SET statement_timeout = ${MAKE_MS}; BEGIN; SELECT pg_advisory_xact_lock(${SCHEMA_LOCK});
      CREATE SCHEMA IF NOT EXISTS tollgate;
      CREATE TABLE IF NOT EXISTS tollgate.meta (name text PRIMARY KEY, value text NOT NULL);
      INSERT INTO tollgate.meta VALUES ('epoch', '${randomUUID()}') ON CONFLICT DO NOTHING;
      DO $check$ DECLARE found text := (SELECT value FROM tollgate.meta WHERE name = 'version'); BEGIN
        IF found::int <> ${VERSION} THEN
          RAISE EXCEPTION 'unreadable version' USING ERRCODE = '${UNREADABLE}', DETAIL = found;
        END IF;
      END $check$;
      ${SCHEMA} ${FUNCTIONS} ${PART_FUNCTIONS}
      INSERT INTO tollgate.meta VALUES ('version', '${VERSION}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;
      COMMIT; SET statement_timeout = DEFAULT;`,
  });
}

/** The SQLSTATE of an error of the server; undefined for errors of sockets and of the driver. */
function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** The number in the detail of an error that a function of the schema raised. */
function readDetail(error: unknown): number {
  return Number((error as { readonly detail?: string }).detail);
}

/** Why a schema of this version cannot be read. */
export function explainSchemaOf(version: number): string {
  return explainSchemaVersion(WORDS, version, VERSION) ?? '';
}

/** Why Postgres refuses this gateway until its operator changes something; undefined when that is not it. */
export function findRefusal(error: unknown): string | undefined {
  const state = sqlState(error);
  if (state === UNREADABLE) return explainSchemaVersion(WORDS, readDetail(error), VERSION);
  if (state === undefined || !FATAL.has(state)) return undefined;
  return 'The postgres store refuses the user, password or database of its URL, or the right to make its schema.';
}

/** Whether the server is away: no response at all, or one of the classes 08, 53, 57P and "read-only" (a failover). */
function isOutage(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || /^(08|53|57P|25006)/.test(state);
}

/** Functions of documents, sets and counters; see `schema.ts`, whose functions are those of the ledger. */
const PART_FUNCTIONS = `
CREATE OR REPLACE FUNCTION tollgate.put_document(deadline double precision, key_ text, value_ text, expires_ bigint)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.documents VALUES (key_, value_, expires_)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.drop_document(deadline double precision, key_ text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.documents WHERE key = key_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.add_member(deadline double precision, name_ text, member_ text, max_ bigint)
  RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  IF max_ IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('tollgate set ' || name_, 0));
    IF EXISTS (SELECT FROM tollgate.members WHERE name = name_ AND member = member_) THEN RETURN 'present'; END IF;
    IF (SELECT count(*) FROM tollgate.members WHERE name = name_) >= max_ THEN RETURN 'full'; END IF;
  END IF;
  INSERT INTO tollgate.members VALUES (name_, member_) ON CONFLICT DO NOTHING;
  RETURN CASE WHEN FOUND THEN 'added' ELSE 'present' END;
END $$;

CREATE OR REPLACE FUNCTION tollgate.drop_member(deadline double precision, name_ text, member_ text)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.members WHERE name = name_ AND member = member_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.take(deadline double precision, now_ bigint, keys text[], limits bigint[],
  lengths bigint[], amounts bigint[], OUT refused int, OUT used_ bigint[], OUT ends bigint[]) LANGUAGE plpgsql AS $$
DECLARE w tollgate.windows; used_by jsonb := '{}'; ends_by jsonb := '{}'; before jsonb;
BEGIN
  PERFORM tollgate.in_time(deadline);
  -- Makes, restarts and locks all windows, in order of their keys: calls that share some wait instead of deadlocking.
  FOR w IN INSERT INTO tollgate.windows AS old
      SELECT k, 0, now_ + length FROM (SELECT DISTINCT ON (k) k COLLATE "C" AS k, length FROM unnest(keys, lengths) AS u (k, length)) AS wanted
      ORDER BY k
      ON CONFLICT (key) DO UPDATE SET used = CASE WHEN old.resets_at > now_ THEN old.used ELSE 0 END,
        resets_at = CASE WHEN old.resets_at > now_ THEN old.resets_at ELSE excluded.resets_at END RETURNING * LOOP
    used_by := used_by || jsonb_build_object(w.key, w.used);
    ends_by := ends_by || jsonb_build_object(w.key, w.resets_at);
  END LOOP;
  before := used_by;
  refused := 0;
  FOR i IN 1 .. cardinality(keys) LOOP
    IF (used_by ->> keys[i])::bigint + amounts[i] > limits[i] THEN refused := i; EXIT; END IF;
    used_by := used_by || jsonb_build_object(keys[i], (used_by ->> keys[i])::bigint + amounts[i]);
  END LOOP;
  IF refused > 0 THEN used_by := before; END IF;
  FOR i IN 1 .. cardinality(keys) LOOP
    used_[i] := (used_by ->> keys[i])::bigint;
    ends[i] := (ends_by ->> keys[i])::bigint;
    IF refused = 0 AND amounts[i] <> 0 THEN UPDATE tollgate.windows SET used = used_[i] WHERE key = keys[i]; END IF;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION tollgate.adjust(deadline double precision, now_ bigint, key_ text, delta bigint)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  UPDATE tollgate.windows SET used = greatest(0, used + delta) WHERE key = key_ AND resets_at > now_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.lease(deadline double precision, now_ bigint, key_ text, id_ text, limit_ bigint,
  ttl bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM pg_advisory_xact_lock(hashtextextended('tollgate lease ' || key_, 0));
  DELETE FROM tollgate.leases WHERE key = key_ AND expires_at <= now_;
  UPDATE tollgate.leases SET expires_at = now_ + ttl WHERE key = key_ AND id = id_;
  IF FOUND THEN RETURN true; END IF;
  IF (SELECT count(*) FROM tollgate.leases WHERE key = key_) >= limit_ THEN RETURN false; END IF;
  INSERT INTO tollgate.leases VALUES (key_, id_, now_ + ttl);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.end_lease(deadline double precision, key_ text, id_ text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.leases WHERE key = key_ AND id = id_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.next(deadline double precision, key_ text, by_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.numbers AS n VALUES (key_, by_) ON CONFLICT (key) DO UPDATE SET value = n.value + by_ RETURNING value INTO result;
  RETURN result;
END $$;
`;
