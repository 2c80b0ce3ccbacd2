import { definePlugin, type Log, type Store, type StoreWatcher } from '../../../core/index.ts';
import { createDocuments } from '../kit/documents.ts';
import { readTimeout, TIMEOUT_OPTION } from '../kit/server-connection.ts';
import { timeOperations } from '../kit/timed.ts';
import { connect } from './connection.ts';
import { createRedisCounters } from './counters.ts';
import { createRedisDocuments } from './documents.ts';
import { createKeys } from './keys.ts';
import { createRedisLedger } from './ledger.ts';
import { probeRedis } from './probe.ts';
import { createRedisSets } from './sets.ts';

export interface RedisOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` for TLS. */
  readonly url: string;
  /** Speaks the cluster protocol; `url` is then one node of it. */
  readonly cluster?: boolean;
  /** What all keys begin with; `tollgate` by default, so that gateways may share a server. */
  readonly prefix?: string;
  /** The longest an operation may take; 500 by default. */
  readonly timeoutMs?: number;
  /** How many entries an account keeps; the oldest beyond that become one line. 100,000 by default. */
  readonly keepEntries?: number;
  readonly log?: Log;
}

/**
 * Opens a store on a Redis server or cluster, version 6.2 or later. Resolves also while the server is away (then
 * everything is refused until it answers); rejects when it refuses the password or database of the URL.
 */
export async function openRedis(options: RedisOptions, observe?: StoreWatcher): Promise<Store> {
  const { url, cluster = false, prefix = 'tollgate', timeoutMs = 500, keepEntries = 100_000, log } = options;
  const connection = await connect({ url, cluster, prefix, timeoutMs, log });
  const keys = createKeys(prefix);
  return {
    kind: 'redis',
    keyv: createDocuments(createRedisDocuments(connection, keys), observe),
    ledger: timeOperations(createRedisLedger(connection, keys, keepEntries), 'ledger', observe),
    sets: timeOperations(createRedisSets(connection, keys), 'sets', observe),
    counters: timeOperations(createRedisCounters(connection, keys, cluster), 'counters', observe),
    health: connection.health,
    close: connection.close,
  };
}

export default definePlugin({
  name: 'redis',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    examples: ['redis://host:6379'],
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        pattern: '^rediss?://',
        secret: true,
        description: 'redis://user:password@host:port/database, or rediss:// for TLS.',
      },
      cluster: { type: 'boolean', description: 'Speaks the cluster protocol; the URL is then one node of it.' },
      prefix: { type: 'string', pattern: '^[a-z0-9-]{1,40}$', description: 'What all keys begin with.' },
      timeout: TIMEOUT_OPTION,
      keepEntries: { type: 'integer', minimum: 100, description: 'How many ledger entries an account keeps.' },
    },
  },
  setup(api, { timeout, ...rest }) {
    const options = rest as RedisOptions;
    api.store(
      (observe) => openRedis({ ...options, ...readTimeout(timeout), log: api.log }, observe),
      () => probeRedis({ prefix: 'tollgate', ...options }),
    );
  },
});
