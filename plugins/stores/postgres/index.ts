import { definePlugin, type Log, type Store } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { readTimeout, TIMEOUT_OPTION } from '../kit/timeout.ts';
import { connect } from './connection.ts';
import { createPostgresCounters } from './counters.ts';
import { createPostgresDocuments } from './documents.ts';
import { createPostgresLedger } from './ledger.ts';
import { startPurge } from './purge.ts';
import { createPostgresSets } from './sets.ts';

export interface PostgresOptions {
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
export async function openPostgres({ url, connections = 10, timeoutMs = 500, log }: PostgresOptions): Promise<Store> {
  const connection = await connect({ url, connections, timeoutMs, log });
  const stopPurge = startPurge(connection);
  return {
    kind: 'postgres',
    keyv: createDocuments(createPostgresDocuments(connection)),
    ledger: createPostgresLedger(connection),
    sets: createPostgresSets(connection),
    counters: createPostgresCounters(connection),
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
    api.store(() => openPostgres({ ...rest, ...readTimeout(timeout), log: api.log } as PostgresOptions));
  },
});
