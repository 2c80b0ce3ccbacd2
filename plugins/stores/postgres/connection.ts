import { randomUUID } from 'node:crypto';
import pg, { type Pool } from 'pg';
import type { Log } from '../../../core/index.ts';
import { storeClosed, storeUnavailable } from '../kit/failure.ts';
import { createGuard, within } from '../kit/guard.ts';
import { createServerClock, sendInTime } from '../kit/server-clock.ts';
import { FUNCTIONS, LATE, SCHEMA, VERSION } from './schema.ts';
import { PART_FUNCTIONS } from './schema-parts.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | null | readonly (string | number)[];

export interface ConnectionOptions {
  readonly url: string;
  /** How many connections this process may open. */
  readonly connections: number;
  readonly timeoutMs: number;
  readonly log?: Log | undefined;
}

/** A pool of connections, replaced when the server was away. */
export interface Connection {
  /** Runs a query that only reads; the statement is prepared under its name, once per connection. */
  read(name: string, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /** Calls a function of the schema that changes something; it does nothing when it arrives after its bound. */
  write(name: string, values: readonly Value[]): Promise<Row>;
  health(): Promise<void>;
  close(): Promise<void>;
}

const EMPTIED = 'the store lost its data while the gateway ran: keys and balances are gone';

const CONNECT_MS = 2000;
/** Any number: everybody who makes or changes the schema waits for this lock. */
const MIGRATION_LOCK = 7_070_655_083;

/** SQLSTATEs at connecting that no waiting mends: user, password, database, rights. */
const FATAL: ReadonlySet<string> = new Set(['28000', '28P01', '3D000', '42501', '3F000']);

/**
 * Connects to Postgres and makes or updates the schema. Resolves also while the server is away (everything is refused
 * until it answers); rejects when it refuses the user, the database or the making of the schema.
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { timeoutMs, log } = options;
  let pool: Pool | undefined;
  let epoch: string | undefined;
  let isClosed = false;
  const clock = createServerClock();

  const greet = async (to: Pool): Promise<string> => {
    const { rows } = await to.query({
      text: `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS time, (SELECT value FROM tollgate.meta WHERE name = 'epoch') AS epoch`,
    });
    clock.observe(Number(rows[0]?.['time']));
    return String(rows[0]?.['epoch'] ?? '');
  };

  const probe = async (): Promise<void> => {
    drop(pool);
    pool = undefined;
    const next = makePool(options);
    // Idle connections fail too; without a listener that would end this process. The pool drops them by itself.
    next.on('error', (error) => log?.debug({ store: 'postgres', err: error }, 'an idle connection ended'));
    try {
      if (epoch === undefined) await within(MIGRATE_MS, migrate(next));
      const found = await within(CONNECT_MS, greet(next));
      epoch ??= found;
      if (found !== epoch) log?.error({ store: 'postgres' }, EMPTIED);
      if (isClosed) throw storeClosed();
    } catch (error) {
      drop(next);
      throw error;
    }
    pool = next;
  };

  const guard = createGuard({ kind: 'postgres', timeoutMs, probe, isOutage, log });

  const current = (): Pool => {
    if (!pool) throw storeUnavailable('The postgres store does not answer.');
    return pool;
  };

  const write = (name: string, values: readonly Value[]): Promise<Row> => {
    const text = `SELECT * FROM tollgate.${name}(${['', ...values].map((_, index) => `$${index + 1}`).join(', ')}) AS result`;
    const send = async (deadline: number): Promise<Row> => {
      const { rows } = await current().query({ name, text, values: [deadline, ...values] });
      return rows[0] ?? {};
    };
    return sendInTime(clock, timeoutMs, send, lateAt);
  };

  const failure = await guard.start();
  const state = sqlState(failure);
  if (state !== undefined && (FATAL.has(state) || state === TOO_NEW)) {
    guard.close();
    throw storeUnavailable(
      state === TOO_NEW
        ? 'The postgres store was written by a newer version of this gateway: start that version.'
        : 'The postgres store refuses the user, password or database of its URL, or the right to make its schema.',
      failure,
    );
  }
  if (failure !== undefined) log?.warn({ store: 'postgres', err: failure }, 'the store does not answer yet');

  return {
    read: (name, text, values) => guard.run(async () => (await current().query({ name, text, values })).rows),
    write: (name, values) => guard.run(() => write(name, values)),
    health: async () => {
      const found = await guard.run(() => greet(current()));
      if (found !== epoch)
        throw storeUnavailable(
          'The postgres store lost its data: restore it, or restart the gateway to go on with an empty one.',
        );
    },
    close: async () => {
      isClosed = true;
      guard.close();
      const last = pool;
      pool = undefined;
      await within(timeoutMs, Promise.resolve(last?.end())).catch(() => undefined);
    },
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
    // The server gives up with the caller; the caller's own bound also covers a server that does nothing at all.
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs + 100,
    idle_in_transaction_session_timeout: 5000,
  });
}

/** Ends a pool without waiting: its server may never answer. */
function drop(pool: Pool | undefined): void {
  pool?.end().catch(() => undefined);
}

const TOO_NEW = 'TG002';
const MIGRATE_MS = 10_000;
const FIND_META = "SELECT to_regclass('tollgate.meta') IS NOT NULL AS found";
const FIND_VERSION = "SELECT value FROM tollgate.meta WHERE name = 'version'";

/** Makes or updates the schema in one transaction, unless it is there; a second starter waits for the first. */
async function migrate(pool: Pool): Promise<void> {
  const known = await pool.query({ text: FIND_META }).then(({ rows }) => rows[0]?.['found']);
  const version = known ? await pool.query({ text: FIND_VERSION }).then(({ rows }) => rows[0]?.['value']) : undefined;
  if (version === String(VERSION)) return;
  await pool.query({
    query_timeout: MIGRATE_MS,
    text: `SET statement_timeout = ${MIGRATE_MS}; BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK});
      CREATE SCHEMA IF NOT EXISTS tollgate;
      CREATE TABLE IF NOT EXISTS tollgate.meta (name text PRIMARY KEY, value text NOT NULL);
      INSERT INTO tollgate.meta VALUES ('epoch', '${randomUUID()}') ON CONFLICT DO NOTHING;
      DO $migrate$ BEGIN
        IF coalesce((SELECT value::int FROM tollgate.meta WHERE name = 'version'), 0) > ${VERSION} THEN
          RAISE EXCEPTION 'newer version' USING ERRCODE = '${TOO_NEW}';
        END IF;
      END $migrate$;
      ${SCHEMA} ${FUNCTIONS} ${PART_FUNCTIONS}
      INSERT INTO tollgate.meta VALUES ('version', '${VERSION}') ON CONFLICT (name) DO UPDATE SET value = excluded.value;
      COMMIT; SET statement_timeout = DEFAULT;`,
  });
}

/** The SQLSTATE of an error of the server; undefined for errors of sockets and of the driver. */
export function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** The server's time in the error of a call that came too late. */
function lateAt(error: unknown): number | undefined {
  return sqlState(error) === LATE ? Number((error as { readonly detail?: string }).detail) : undefined;
}

/** Whether the server is away: no answer at all, or one of the classes 08, 53, 57P and "read-only" (a failover). */
function isOutage(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || /^(08|53|57P|25006)/.test(state);
}
