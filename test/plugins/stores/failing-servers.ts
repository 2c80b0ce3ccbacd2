import pg from 'pg';
import type { Log, Store } from '../../../contract/index.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import type { TestServer } from '../../support/processes/server-process.ts';
import { startPostgresServer } from '../../support/stores/postgres-server.ts';
import { sendToRedis, startRedisServer } from '../../support/stores/redis-server.ts';

/** Kind of server, and operations that damage its data behind the store's back. */
export interface FailingServer {
  start(): Promise<TestServer>;
  open(url: string, log?: Log, timeoutMs?: number): Promise<Store>;
  /** Deletes all data. */
  empty(server: TestServer): Promise<void>;
  /** Rejects writes, as a primary that became a replica does. */
  setReadOnly(server: TestServer, isReadOnly: boolean): Promise<void>;
  /** Writes unreadable bytes into every document and account. */
  spoil(server: TestServer): Promise<void>;
}

const TIMEOUT_MS = 300;

export const FAILING_REDIS: FailingServer = {
  start: () => startRedisServer(),
  open: (url, log, timeoutMs = TIMEOUT_MS) => openRedis({ url, timeoutMs, ...(log && { log }) }),
  empty: async (server) => void (await sendToRedis(server.port, 'FLUSHALL')),
  setReadOnly: async (server, isReadOnly) =>
    void (await sendToRedis(server.port, 'REPLICAOF', ...(isReadOnly ? ['127.0.0.1', '1'] : ['NO', 'ONE']))),
  spoil: async (server) => {
    const script = `for _, key in ipairs(redis.call('KEYS', 'tollgate:*')) do
      if string.find(key, ':doc:') then redis.call('SET', key, '{"value":') end
      if string.find(key, ':account:') then redis.call('SET', key, 'v {"balance":') end
      if string.find(key, ':set:') then redis.call('SET', key, 'no set') end
    end`;
    await sendToRedis(server.port, 'EVAL', script, '0');
  },
};

export const FAILING_POSTGRES: FailingServer = {
  start: () => startPostgresServer(),
  open: (url, log, timeoutMs = TIMEOUT_MS) => openPostgres({ url, timeoutMs, ...(log && { log }) }),
  empty: (server) => runSql(server, 'DROP SCHEMA tollgate CASCADE'),
  setReadOnly: async (server, isReadOnly) => {
    await runSql(server, `ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`, isReadOnly);
    await runSql(server, 'SELECT pg_reload_conf()');
  },
  spoil: (server) =>
    runSql(server, `UPDATE tollgate.documents SET value = '{"value":'; UPDATE tollgate.ledger SET row = '{"balance":'`),
};

async function runSql(server: TestServer, text: string, isFirst = false): Promise<void> {
  const pool = new pg.Pool({ connectionString: server.url, max: 1 });
  pool.on('error', () => undefined);
  try {
    // A read-only server also rejects the change back, unless the session overrides the setting.
    if (!isFirst) await pool.query({ text: 'SET default_transaction_read_only = off' });
    await pool.query({ text });
  } finally {
    await pool.end();
  }
}
