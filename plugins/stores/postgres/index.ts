import { definePlugin, type Log, type Store, type StoreWatcher } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { readTimeout, TIMEOUT_OPTION } from '../kit/server-connection.ts';
import { timeOperations } from '../kit/timed.ts';
import { type Connection, connect } from './connection.ts';
import { createPostgresCounters } from './counters.ts';
import { createPostgresDocuments } from './documents.ts';
import { createPostgresLedger } from './ledger.ts';
import { probePostgres } from './probe.ts';
import { createPostgresSets } from './sets.ts';

interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  readonly url: string;
  /** How many connections this process may open; 10 by default. */
  readonly connections?: number;
  /** The longest an operation may take; 500 by default. */
  readonly timeoutMs?: number;
  readonly log?: Log;
}

/**
 * Opens a store on a Postgres server, version 13 or later, in the schema `tollgate`, which it makes. Resolves also while
 * the server is away (then everything is refused until it answers); rejects when it refuses the user, the database or
 * the making of the schema.
 */
export async function openPostgres(
  { url, connections = 10, timeoutMs = 500, log }: PostgresOptions,
  observe?: StoreWatcher,
): Promise<Store> {
  const connection = await connect({ url, connections, timeoutMs, log });
  const stopPurge = startPurge(connection);
  return {
    kind: 'postgres',
    keyv: createDocuments(createPostgresDocuments(connection), observe),
    ledger: timeOperations(createPostgresLedger(connection), 'ledger', observe),
    sets: timeOperations(createPostgresSets(connection), 'sets', observe),
    counters: timeOperations(createPostgresCounters(connection), 'counters', observe),
    health: connection.health,
    close: () => {
      stopPurge();
      return connection.close();
    },
  };
}

export default definePlugin({
  name: 'postgres',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    examples: ['postgres://user@host/database'],
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        pattern: '^postgres(ql)?://',
        secret: true,
        description: 'postgres://user:password@host:port/database?sslmode=verify-full.',
      },
      connections: {
        type: 'integer',
        minimum: 1,
        maximum: 200,
        description: 'How many connections each process may open.',
      },
      timeout: TIMEOUT_OPTION,
    },
  },
  setup(api, { timeout, ...rest }) {
    const options = rest as PostgresOptions;
    api.store(
      (observe) => openPostgres({ ...options, ...readTimeout(timeout), log: api.log }, observe),
      () => probePostgres(options.url),
    );
  },
});

const EVERY_MS = 60_000;

/** Deletes at most a thousand expired rows of a table; rows that change meanwhile have another ctid and stay. */
function purgeOf(table: string, column: string): string {
  return `DELETE FROM tollgate.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.${table} WHERE ${column} < $1 LIMIT 1000))`;
}

const PURGES = Object.freeze({
  documents: purgeOf('documents', 'expires'),
  released: purgeOf('released', 'until'),
  swept: purgeOf('swept', 'until'),
  budgets: purgeOf('budgets', 'until'),
  windows: purgeOf('windows', 'resets_at'),
  leases: purgeOf('leases', 'expires_at'),
});

/** Deletes what expired, a little every minute; returns what stops it. */
function startPurge(connection: Connection): () => void {
  const purge = async (): Promise<void> => {
    for (const [table, text] of Object.entries(PURGES)) await connection.read(`purge_${table}`, text, [Date.now()]);
  };
  const timer = setInterval(() => {
    // A store that cannot purge now says so to those who use it; the next round tries again.
    purge().catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
