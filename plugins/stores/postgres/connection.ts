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
import { FUNCTIONS, FUNCTIONS_FOR_6, LATE, MOVE_LOCK, UNREADABLE } from './functions.ts';
import { FILL_8, OLDEST_VERSION, SCHEMA, VERSION } from './schema.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | null | readonly (string | number | null)[];

interface ConnectionOptions extends ServerOptions {
  readonly url: string;
  /** Maximum number of connections of this process. */
  readonly connections: number;
}

/** Connection pool that is replaced after an outage. */
export interface Connection extends Pick<ServerConnection<Pool>, 'reconnected' | 'now' | 'health' | 'close'> {
  /**
   * Runs a read-only query. With a name, the statement is prepared once per connection; without one, it is prepared
   * each time.
   */
  read(name: string, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /** Calls a function of the schema that changes data. The function does nothing after its deadline. */
  write(name: string, values: readonly Value[]): Promise<Row>;
}

const GREET = `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS time,
  (SELECT value FROM tollgate.meta WHERE name = 'epoch') AS epoch`;

const CONNECT_MS = 2000;
/** Arbitrary lock number. A process that creates the schema waits for this lock. */
const SCHEMA_LOCK = 7_070_655_083;

/** SQLSTATEs of connection errors that need a configuration change: user, password, database, privileges. */
const FATAL: ReadonlySet<string> = new Set(['28000', '28P01', '3D000', '42501', '3F000']);

/**
 * Connects to Postgres and creates the schema. Also resolves while the server is unavailable; operations are then
 * rejected until it responds. Rejects if the server rejects the user, the database or the creation of the schema, or if
 * the schema has another version.
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
    reconnected: server.reconnected,
    now: server.now,
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
      // Idle connections fail too; without a listener, their errors would end this process. The pool removes them
      // itself.
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
    // The server cancels statements at the caller's time limit. The caller's own limit covers a server that does not
    // respond.
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + 100,
    idle_in_transaction_session_timeout: 5000,
  });
}

const WORDS = { kind: 'postgres', place: 'database', remedy: 'set store to a new database' } as const;
/** Maximum duration of creating the schema, including the wait for another process. */
const MAKE_MS = 60_000;
/** All records of a new schema have terms. */
const FIRST_TERMS = "INSERT INTO tollgate.meta VALUES ('terms_from', '0') ON CONFLICT DO NOTHING;";
export const FIND_META = "SELECT to_regclass('tollgate.meta') IS NOT NULL AS found";
export const FIND_VERSION = "SELECT value FROM tollgate.meta WHERE name = 'version'";

/**
 * Creates the schema in one transaction if it is missing, or migrates the previous version. A second process waits for
 * the first. A schema of another version stays unchanged: the transaction fails.
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
        IF found::int NOT BETWEEN ${OLDEST_VERSION} AND ${VERSION} THEN
          RAISE EXCEPTION 'unreadable version' USING ERRCODE = '${UNREADABLE}', DETAIL = found;
        END IF;
      END $check$;
      ${SCHEMA}
      ${version === undefined ? FIRST_TERMS : `SELECT pg_advisory_xact_lock(${MOVE_LOCK}); ${FILL_8}`}
      ${FUNCTIONS} ${version === undefined ? '' : FUNCTIONS_FOR_6}
      INSERT INTO tollgate.meta VALUES ('version', '${VERSION}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;
      COMMIT; SET statement_timeout = DEFAULT;`,
  });
}

/** Returns the SQLSTATE of a server error; undefined for errors of sockets and of the driver. */
export function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** Reads the number in the detail of an error from a schema function. */
export function readDetail(error: unknown): number {
  return Number((error as { readonly detail?: string }).detail);
}

/** Explains why a schema of this version is unreadable. */
export function explainSchemaOf(version: number): string {
  return explainSchemaVersion(WORDS, version, VERSION) ?? '';
}

/** Explains why Postgres rejects this gateway until its operator acts; undefined for other errors. */
export function findRefusal(error: unknown): string | undefined {
  const state = sqlState(error);
  if (state === UNREADABLE) return explainSchemaVersion(WORDS, readDetail(error), VERSION);
  if (state === undefined || !FATAL.has(state)) return undefined;
  return 'The postgres store rejects the user, password or database of its URL, or the right to create its schema.';
}

/** Detects an outage: no response, or one of the classes 08, 53, 57P and "read-only" (a failover). */
function isOutage(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || /^(08|53|57P|25006)/.test(state);
}
