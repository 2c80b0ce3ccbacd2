import KeyvPostgres from '@keyv/postgres';
import type { KeyvStoreAdapter } from 'keyv';
import pg from 'pg';
import {
  type Counters,
  definePlugin,
  type Log,
  type Sets,
  type Store,
  type StoreWatcher,
  type Window,
  type WindowState,
} from '../../../contract/index.ts';
import { checkMember, digest, finite, pageLimit, storeKey } from '../kit/check.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeUnavailable } from '../kit/failure.ts';
import { JournalMover } from '../kit/journal-mover.ts';
import { KEPT_OPTION, withStored } from '../kit/kept.ts';
import { readTimeout, TIMEOUT_OPTION } from '../kit/server-connection.ts';
import { timeOperations } from '../kit/timed.ts';
import { watchWrites } from '../kit/write-watch.ts';
import {
  type Connection,
  connect,
  explainSchemaOf,
  FIND_META,
  FIND_VERSION,
  findRefusal,
  type Value,
} from './connection.ts';
import { createJournal, createPostgresLedger } from './ledger.ts';
import { OLDEST_VERSION, VERSION } from './schema.ts';
import { createPostgresTransfer } from './transfer.ts';

const PAGE = 100;
const HAS_DOCUMENT = 'SELECT 1 FROM tollgate.documents WHERE key = $1 AND (expires IS NULL OR expires > $2)';
/** `;` follows `:`, so all keys that begin with `namespace:` are between the two bounds. */
const LIST_DOCUMENTS = `SELECT key, value FROM tollgate.documents WHERE key > $1 AND key < $2 AND (expires IS NULL OR expires > $3)
  ORDER BY key LIMIT ${PAGE}`;

/**
 * Creates Keyv adapters: one `@keyv/postgres` per namespace, all on the guarded pool of the connection. By default,
 * `@keyv/postgres` shares a pool within the process, and fails with it. The adapter reads and clears. Functions with a
 * deadline change documents, and store the expiry in a column for purges.
 */
export function createPostgresDocuments(connection: Connection): (namespace: string) => KeyvStoreAdapter {
  class Reader extends KeyvPostgres {
    override async connect() {
      return async (sql: string, values: Value[] = []) => {
        // The table is created with the rest of the schema.
        if (sql.startsWith('CREATE')) return [];
        return [...(await connection.read(`keyv_${digest(sql).slice(0, 20)}`, sql, values))];
      };
    }
  }

  return (namespace) => {
    const inner = new Reader({ schema: 'tollgate', table: 'documents' });
    inner.on('error', () => undefined);
    const current = (): string => adapter.namespace ?? namespace;
    const keyOf = (key: string): string => `${current()}:${storeKey(key)}`;
    const has = async (key: string): Promise<boolean> =>
      (await connection.read('has_document', HAS_DOCUMENT, [keyOf(key), Date.now()])).length > 0;

    const adapter: KeyvStoreAdapter = {
      opts: { dialect: 'postgres', url: 'postgres:' },
      /** Keyv also sets it to its own namespace. */
      namespace,
      on: () => adapter,
      get: (key) => inner.get(keyOf(key)),
      getMany: (keys) => inner.getMany(keys.map(keyOf)),
      has,
      hasMany: (keys) => Promise.all(keys.map(has)),
      set: async (key, value: string, ttlMs) => {
        const expires = ttlMs === undefined ? null : Math.ceil(Date.now() + ttlMs);
        await connection.write('put_document', [keyOf(key), value, expires]);
      },
      delete: async (key) => (await connection.write('drop_document', [keyOf(key)]))['result'] === true,
      clear: () => {
        inner.namespace = current();
        return inner.clear();
      },
      async *iterator<Value>() {
        for (let after: string | undefined = `${current()}:`; after !== undefined; ) {
          const rows = await connection.read('list_documents', LIST_DOCUMENTS, [after, `${current()};`, Date.now()]);
          for (const row of rows)
            yield [String(row['key']).slice(current().length + 1), row['value'] as Awaited<Value>];
          after = rows.length < PAGE ? undefined : String(rows.at(-1)?.['key']);
        }
      },
    };
    return adapter;
  };
}

const NUMBER = 'SELECT value FROM tollgate.numbers WHERE key = $1';

/** Windows, leases and numbers in Postgres. */
function createPostgresCounters(connection: Connection): Counters {
  const take = async (windows: readonly Window[], now: number) => {
    if (windows.length === 0) return { refused: undefined, states: [] };
    const { refused, used_, ends } = await connection.write('take', [
      now,
      windows.map(({ key }) => storeKey(key)),
      windows.map(({ limit }) => finite(limit)),
      windows.map(({ windowMs }) => windowMs),
      windows.map(({ amount }) => amount),
    ]);
    const states = windows.map(({ limit }, index): WindowState => {
      const used = Number((used_ as readonly string[])[index]);
      return { remaining: Math.max(0, limit - used), resetMs: Number((ends as readonly string[])[index]) - now };
    });
    return { refused: refused === 0 ? undefined : Number(refused) - 1, states };
  };

  return {
    take,
    adjust: async (key, _windowMs, delta, now) => {
      await connection.write('adjust', [now, storeKey(key), delta]);
    },
    lease: async (key, id, limit, ttlMs, now) =>
      (await connection.write('lease', [now, storeKey(key), storeKey(id), finite(limit), ttlMs]))['result'] === true,
    release: async (key, id) => {
      await connection.write('end_lease', [storeKey(key), storeKey(id)]);
    },
    next: async (key, by = 1) => {
      if (by !== 0) return Number((await connection.write('next', [storeKey(key), by]))['result']);
      return Number((await connection.read('number', NUMBER, [storeKey(key)]))[0]?.['value'] ?? 0);
    },
  };
}

const HAS = 'SELECT 1 FROM tollgate.members WHERE name = $1 AND member = $2';
const LIST = 'SELECT member FROM tollgate.members WHERE name = $1 AND member > $2 ORDER BY member LIMIT $3';
const SIZE = 'SELECT count(*) AS size FROM tollgate.members WHERE name = $1';

/** Sets in Postgres: one row per member, sorted by bytes (collation "C"). */
function createPostgresSets(connection: Connection): Sets {
  return {
    add: async (set, member, max) => {
      checkMember(member);
      const { result } = await connection.write('add_member', [storeKey(set), member, max ?? null]);
      return result as 'added' | 'present' | 'full';
    },
    remove: async (set, member) => {
      if (member.includes('\0')) return false;
      return (await connection.write('drop_member', [storeKey(set), member]))['result'] === true;
    },
    has: async (set, member) => {
      if (member.includes('\0')) return false;
      return (await connection.read('has_member', HAS, [storeKey(set), member])).length > 0;
    },
    list: async (set, { limit, after = '' }) => {
      const rows = await connection.read('list_members', LIST, [
        storeKey(set),
        after.replaceAll('\0', ''),
        pageLimit(limit),
      ]);
      return rows.map((row) => String(row['member']));
    },
    size: async (set) => Number((await connection.read('count_members', SIZE, [storeKey(set)]))[0]?.['size'] ?? 0),
  };
}

const PROBE_MS = 5_000;

/** Checks that the server accepts the user and password and has a readable schema. Writes nothing. */
async function probePostgres(url: string): Promise<string> {
  const client = new pg.Pool({
    connectionString: url,
    application_name: 'tollgate check',
    max: 1,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  client.on('error', () => undefined);
  try {
    const known = (await client.query({ text: FIND_META })).rows[0]?.['found'];
    const version = known ? Number((await client.query({ text: FIND_VERSION })).rows[0]?.['value'] ?? 0) : 0;
    if (version === 0) return 'no schema of a gateway yet';
    if (version >= OLDEST_VERSION && version < VERSION) return `schema ${version}, which a start takes to ${VERSION}`;
    if (version !== VERSION) throw storeUnavailable(explainSchemaOf(version));
    return `schema ${version}`;
  } catch (cause) {
    throw storeUnavailable(findRefusal(cause) ?? 'The postgres store does not respond.', cause);
  } finally {
    await client.end().catch(() => undefined);
  }
}

interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  readonly url: string;
  /** Maximum number of connections of this process; 10 by default. */
  readonly connections?: number;
  /** Maximum duration of an operation; 500 by default. */
  readonly timeoutMs?: number;
  readonly keepPerAccount?: string | number;
  readonly log?: Log;
}

/**
 * Opens a store on a Postgres server, version 13 or later, in the schema `tollgate`, which it creates. Also resolves
 * while the server is unavailable; operations are then rejected until it responds. Rejects if the server rejects the
 * user, the database or the creation of the schema.
 */
export async function openPostgres(
  { url, connections = 10, timeoutMs = 500, keepPerAccount, log }: PostgresOptions,
  observe?: StoreWatcher,
): Promise<Store> {
  const connection = await connect({ url, connections, timeoutMs, log });
  const stopPurge = startPurge(connection);
  const writes = watchWrites(log);
  const { onFailure } = writes;
  const journal = new JournalMover(createJournal(connection), log);
  const ledger = createPostgresLedger(connection, timeoutMs, journal);
  return writes.over({
    kind: 'postgres',
    ...withStored(
      {
        keyv: createDocuments(createPostgresDocuments(connection), observe, onFailure),
        sets: timeOperations(createPostgresSets(connection), 'sets', observe, onFailure),
      },
      keepPerAccount,
    ),
    ledger: timeOperations(ledger, 'ledger', observe, onFailure),
    transfer: () => createPostgresTransfer(connection, timeoutMs, { ledger, journal }),
    counters: timeOperations(createPostgresCounters(connection), 'counters', observe, onFailure),
    health: async () => {
      await connection.health();
      await journal.check();
    },
    close: async () => {
      stopPurge();
      await journal.close();
      await connection.close();
    },
  });
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
        description: 'Maximum number of connections per process.',
      },
      timeout: TIMEOUT_OPTION,
      keepPerAccount: KEPT_OPTION,
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

/** Deletes at most 1,000 expired rows of a table. Rows that change concurrently get another ctid and stay. */
function purgeOf(table: string, column: string): string {
  return `DELETE FROM tollgate.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.${table} WHERE ${column} < $1 LIMIT 1000))`;
}

const PURGES = Object.freeze({
  documents: purgeOf('documents', 'expires'),
  ledger: purgeOf('ledger', 'until'),
  windows: purgeOf('windows', 'resets_at'),
  leases: purgeOf('leases', 'expires_at'),
});

/** Deletes some expired rows every minute; returns a function that stops it. */
function startPurge(connection: Connection): () => void {
  const purge = async (): Promise<void> => {
    for (const [table, text] of Object.entries(PURGES))
      await connection.read(`purge_${table}`, text, [table === 'ledger' ? connection.now() : Date.now()]);
  };
  const timer = setInterval(() => {
    // Callers notice a failing store themselves; the next interval tries again.
    purge().catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
