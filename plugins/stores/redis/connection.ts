import { createHash, randomUUID } from 'node:crypto';
import { createClient, createCluster } from '@keyv/redis';
import { GatewayError, isGatewayError, type Log } from '../../../contract/index.ts';
import { explainSchemaVersion } from '../kit/failure.ts';
import { within } from '../kit/guard.ts';
import {
  connectServer,
  type ServerConnection,
  type ServerDriver,
  type ServerOptions,
} from '../kit/server-connection.ts';

/** Client of a server or of a cluster. */
type RedisClient = ReturnType<typeof makeClient>;

/** Single server, for scanning its keys. */
interface RedisNode {
  scan(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ readonly cursor: string; readonly keys: readonly string[] }>;
  scanIterator(options: { MATCH: string; COUNT: number }): AsyncIterable<readonly string[]>;
}

/** Lua script and its name in Redis. */
interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Connection to Redis that is replaced when it hangs or breaks. */
export interface Connection extends Pick<ServerConnection<RedisClient>, 'reconnected' | 'now' | 'health' | 'close'> {
  read<T>(command: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Runs a script that changes data. The script does nothing after its deadline. */
  write(script: Script, keys: string[], args: readonly (string | number)[]): Promise<unknown>;
}

export interface ClientOptions {
  readonly url: string;
  /** Uses the cluster protocol; `url` is then one of its nodes. */
  readonly cluster?: boolean;
}

const CONNECT_MS = 1000;
/** Maximum number of commands that wait for a response; further ones are rejected. */
const MAX_WAITING = 20_000;

/**
 * Creates a client without unlimited waits. It rejects commands while disconnected, instead of queueing them (the
 * default). It does not reconnect itself; the connection's guard does.
 */
export function makeClient({ url, cluster = false }: ClientOptions) {
  const limits = { disableOfflineQueue: true, commandsQueueMaxLength: MAX_WAITING };
  if (!cluster)
    return createClient({ url, ...limits, socket: { connectTimeout: CONNECT_MS, reconnectStrategy: false } });
  const { username, password } = new URL(url);
  return createCluster({
    rootNodes: [{ url }],
    defaults: {
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...limits,
      socket: {
        connectTimeout: CONNECT_MS,
        // A cluster survives the loss of a node. Its clients reconnect themselves, and commands for the node fail at
        // once meanwhile.
        reconnectStrategy: (retries: number) => Math.min(1000, 50 * 2 ** retries),
      },
    },
  });
}

/** Returns the servers with keys: the single server, or all masters of a cluster. */
export async function nodesOf(client: RedisClient): Promise<readonly RedisNode[]> {
  return 'masters' in client ? Promise.all(client.masters.map((node) => client.nodeClient(node))) : [client];
}

/** Keys that one SCAN looks at. */
const SCAN_PAGE = 500;

/** Scans all keys with a prefix, each once, in pages. */
export async function* scanKeys(
  { read }: Pick<Connection, 'read'>,
  beginning: string,
): AsyncGenerator<readonly string[]> {
  const seen = new Set<string>();
  for (const node of await read(nodesOf)) {
    let cursor = '0';
    do {
      const from = cursor;
      const reply = await read(() => node.scan(from, { MATCH: `${beginning}*`, COUNT: SCAN_PAGE }));
      const fresh = reply.keys.filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      if (fresh.length > 0) yield fresh;
      cursor = reply.cursor;
    } while (cursor !== '0');
  }
}

/** Names a script by its SHA-1, as Redis does. */
export function defineScript(text: string): Script {
  return Object.freeze({ text, sha: createHash('sha1').update(text).digest('hex') });
}

/**
 * Prefix of every script that writes. ARGV[1] is the caller's deadline in milliseconds of Redis's clock. A server that
 * was paused still reads old commands from its socket, and must not run them.
 */
const DEADLINE = `
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now_ms > tonumber(ARGV[1]) then return redis.error_reply('LATE ' .. string.format('%.0f', now_ms)) end
`;

/** Defines a script that changes data. Its own arguments begin at ARGV[2]. */
export function defineWrite(text: string): Script {
  return defineScript(DEADLINE + text);
}

/** Runs a script by its name; sends the text if the server does not know it yet. */
export async function runScript(client: RedisClient, script: Script, keys: string[], args: string[]): Promise<unknown> {
  try {
    return await client.evalSha(script.sha, { keys, arguments: args });
  } catch (error) {
    if (!isReply(error, 'NOSCRIPT')) throw error;
    return await client.eval(script.text, { keys, arguments: args });
  }
}

/** Checks for an error reply of Redis that begins with one of these words. */
export function isReply(error: unknown, ...words: readonly string[]): boolean {
  return error instanceof Error && words.some((word) => error.message.startsWith(word));
}

/**
 * Version of the keys and their contents. A change that earlier gateways cannot read increases it, with a migration of
 * the previous version and a test. Versions before {@link OLDEST_VERSION} belong to unreleased builds and are rejected.
 */
export const SCHEMA_VERSION = 7;
/** Oldest version that a start migrates. Version 7 adds the journal; keys of version 6 stay unchanged. */
const OLDEST_VERSION = 6;

/** The first build wrote other keys, without a version. */
const FIRST_BUILD = 1;

const WORDS = { kind: 'redis', place: 'prefix', remedy: 'set prefix to a new one' } as const;
/** Number of keys that the server scans before it serves other clients. */
const SCAN_COUNT = 1000;
/**
 * Time limit for a prefix without a version. All keys of the server are then scanned: ten million in about three
 * seconds.
 */
const LOOK_MS = 30_000;

/**
 * Marks an empty prefix with this version, migrates the previous version, and rejects keys of other versions. Several
 * gateways may do this concurrently: each writes the version before any other key.
 */
async function checkSchema(client: RedisClient, prefix: string): Promise<void> {
  let version = await within(LOOK_MS, findVersion(client, prefix));
  if (version !== null && isMigrated(Number(version))) version = await within(LOOK_MS, migrate(client, prefix));
  const refusal = explainSchemaVersion(WORDS, version === null ? FIRST_BUILD : Number(version), SCHEMA_VERSION);
  if (refusal !== undefined) throw new GatewayError('store_unavailable', refusal);
}

/** Checks if a start migrates keys of this version. */
export function isMigrated(version: number): boolean {
  return version >= OLDEST_VERSION && version < SCHEMA_VERSION;
}

/** KEYS: schema mark. ARGV: current version, new version. Returns the resulting version. */
const RAISE = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
`);

/**
 * Migrates keys of the previous version. After the ledger's mark is written, changes by gateways of that version are
 * rejected.
 */
async function migrate(client: RedisClient, prefix: string): Promise<string> {
  let version = '';
  for (const key of [ledgerSchemaKey(prefix), schemaKey(prefix)])
    version = String(await runScript(client, RAISE, [key], [String(OLDEST_VERSION), String(SCHEMA_VERSION)]));
  return version;
}

/** Finds the version of the keys; marks an empty prefix with this version. */
async function findVersion(client: RedisClient, prefix: string): Promise<string | null> {
  const key = schemaKey(prefix);
  const version = await client.get(key);
  if (version !== null) return version;
  const isEmpty = await isPrefixEmpty(client, prefix);
  if (isEmpty) await markSchema(client, prefix);
  // Another gateway may have marked the prefix meanwhile, and the found keys may be its own.
  return client.get(key);
}

/**
 * Returns the version mark of a prefix; undefined if it has no keys, {@link FIRST_BUILD} if it has keys but no mark.
 */
export async function readSchemaVersion(client: RedisClient, prefix: string): Promise<number | undefined> {
  const version = await client.get(schemaKey(prefix));
  if (version !== null) return Number(version);
  return (await isPrefixEmpty(client, prefix)) ? undefined : FIRST_BUILD;
}

/** Explains why this version cannot read keys of a version; undefined if a start can read them. */
export function explainSchema(version: number): string | undefined {
  return explainSchemaVersion(WORDS, version, SCHEMA_VERSION);
}

/** Marks a prefix whose keys are all of this version, if it is unmarked. */
async function markSchema(client: RedisClient, prefix: string): Promise<void> {
  for (const key of [schemaKey(prefix), ledgerSchemaKey(prefix)])
    await client.set(key, String(SCHEMA_VERSION), { condition: 'NX' });
}

function schemaKey(prefix: string): string {
  return `${prefix}:schema`;
}

/** Schema mark for ledger scripts, on the ledger's node of a cluster. */
export function ledgerSchemaKey(prefix: string): string {
  return `${prefix}:{ledger}:schema`;
}

/** Scans all keys of the server, or of every master of a cluster. Only a prefix without a version needs it. */
async function isPrefixEmpty(client: RedisClient, prefix: string): Promise<boolean> {
  const options = { MATCH: `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`, COUNT: SCAN_COUNT };
  for (const node of await nodesOf(client)) {
    for await (const keys of node.scanIterator(options)) if (keys.length > 0) return false;
  }
  return true;
}

interface ConnectionOptions extends ClientOptions, ServerOptions {
  /** Prefix of all keys. */
  readonly prefix: string;
}

/** Returns the time and the id of the data. Creates the id if there is no data yet. */
const GREET = defineScript(`
local clock = redis.call('TIME')
local epoch = redis.call('GET', KEYS[1])
if not epoch and ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
  epoch = ARGV[1]
end
return { string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)), epoch or '' }
`);

/** Maximum duration of a connection attempt, and of a greeting. */
const GREET_MS = 1500;

/** Error replies that mean an outage of the whole server. */
const OUTAGE_REPLIES = ['LOADING', 'MASTERDOWN', 'READONLY', 'CLUSTERDOWN', 'MISCONF', 'BUSY'] as const;
/** Error replies at connection that need a configuration change. */
const FATAL_REPLIES = [
  'WRONGPASS',
  'NOAUTH',
  'NOPERM',
  'ERR invalid password',
  'ERR AUTH',
  'ERR DB index',
  'ERR invalid DB',
] as const;

/**
 * Connects to Redis. Also resolves while the server is unavailable; operations are then rejected until it responds.
 * Rejects if the server rejects the password or database of the URL, or has keys of another schema version.
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const server = await connectServer(createDriver(options), options);
  if (!options.cluster && options.log) await logAdvice(server, options.log);
  return {
    read: server.run,
    write: (script, keys, args) => {
      const texts = args.map(String);
      return server.runInTime((client, deadline) => runScript(client, script, keys, [String(deadline), ...texts]));
    },
    reconnected: server.reconnected,
    now: server.now,
    health: server.health,
    close: server.close,
  };
}

function createDriver(options: ConnectionOptions): ServerDriver<RedisClient> {
  const { prefix, cluster = false } = options;
  return {
    kind: 'redis',
    greetMs: GREET_MS,
    open(onBreak) {
      const client = makeClient(options);
      // The Keyv adapter of every namespace adds a listener.
      client.setMaxListeners(0);
      // A cluster client reports errors of each node, and reconnects itself.
      client.on('error', (error) => cluster || onBreak(error));
      return client;
    },
    async prepare(client, isFirst) {
      await within(GREET_MS, Promise.resolve(client.connect()));
      if (!isFirst) return;
      if (!cluster) await refuseNode(client);
      await checkSchema(client, prefix);
    },
    async greet(client, isFirst) {
      const reply = await runScript(client, GREET, [`${prefix}:epoch`], [isFirst ? randomUUID() : '']);
      const [time, epoch = ''] = reply as readonly string[];
      // The data is lost, and so is the version mark. Without a new mark, the next start would reject the keys written
      // from now on.
      if (epoch === '') await markSchema(client, prefix);
      return { timeMs: Number(time), epoch };
    },
    close: (client) => Promise.resolve(client.close()),
    destroy: destroyClient,
    isOutage: (error) => isReply(error, ...OUTAGE_REPLIES) || (!cluster && !isReplyError(error)),
    // The error of a script contains more text.
    explain: (error) =>
      error instanceof Error && /\bOOM\b/.test(error.message)
        ? 'The redis store is full: it reached its maxmemory and rejects writes. Raise maxmemory.'
        : undefined,
    findRefusal,
    findLateTime: (error) => (isReply(error, 'LATE') ? Number(/\d+/.exec((error as Error).message)?.[0]) : undefined),
  };
}

/** Rejects a cluster node used as a single server: keys of other nodes would be missing. */
async function refuseNode(client: RedisClient): Promise<void> {
  // INFO may be forbidden.
  const info = 'info' in client ? await client.info('cluster').catch(() => '') : '';
  if (info.includes('cluster_enabled:1'))
    throw new GatewayError(
      'store_unavailable',
      'The redis store is a cluster node. Set "cluster" of the store to true.',
    );
}

/** Explains why Redis rejects this gateway until its operator acts; undefined for other errors. */
export function findRefusal(error: unknown): string | undefined {
  // Error of the schema check.
  if (isGatewayError(error)) return error.message;
  // A new client writes only before the first response of the server. After a later failover, the gateway waits for the
  // server.
  if (isReply(error, 'READONLY'))
    return 'The redis store is a replica, which rejects writes. Set the URL of its primary.';
  return isReply(error, ...FATAL_REPLIES)
    ? 'The redis store rejects the user, password or database of its URL.'
    : undefined;
}

/**
 * Warns of settings that may lose money. Does nothing if the server does not report them, because INFO may be
 * forbidden.
 */
async function logAdvice(server: ServerConnection<RedisClient>, log: Log): Promise<void> {
  try {
    const info = await server.run(async (client) => ('info' in client ? client.info() : ''));
    for (const advice of adviseOn(info)) log.warn({ store: 'redis' }, advice);
  } catch (error) {
    log.debug({ store: 'redis', err: error }, 'the store does not return its settings');
  }
}

/** Destroys a client, even if it is already closed. */
export function destroyClient(client: RedisClient): void {
  try {
    client.destroy();
  } catch {
    // The client was closed already.
  }
}

/** Detects an error reply of Redis, `WORD text`. All other errors (sockets, clients) mean that there was no reply. */
function isReplyError(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{2,}\b/.test(error.message);
}

/** Returns warnings about a Redis that stores money, from its INFO: one sentence per risk. */
export function adviseOn(info: string): readonly string[] {
  const facts = new Map(
    info.split(/\r?\n/).map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const),
  );
  const advice: string[] = [];
  const policy = facts.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction' && facts.get('maxmemory') !== '0') {
    advice.push(
      `maxmemory-policy is ${policy}, so Redis can delete keys and balances when it is full; set it to noeviction`,
    );
  }
  if (facts.get('aof_enabled') === '0') {
    advice.push('appendonly is off, so a crash of Redis loses charges and keys since its last snapshot; set it to yes');
  }
  return advice;
}
