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

/** A client of a server or of a cluster. */
type RedisClient = ReturnType<typeof makeClient>;

/** One server of them, to look through its keys. */
interface RedisNode {
  scan(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ readonly cursor: string; readonly keys: readonly string[] }>;
  scanIterator(options: { MATCH: string; COUNT: number }): AsyncIterable<readonly string[]>;
}

/** A Lua script and the name Redis keeps it under. */
interface Script {
  readonly text: string;
  readonly sha: string;
}

/** A connection to Redis that is replaced when it hangs or breaks. */
export interface Connection extends Pick<ServerConnection<RedisClient>, 'reconnected' | 'now' | 'health' | 'close'> {
  read<T>(command: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Runs a script that changes something; it does nothing when it reaches Redis after its bound. */
  write(script: Script, keys: string[], args: readonly (string | number)[]): Promise<unknown>;
}

export interface ClientOptions {
  readonly url: string;
  /** Speaks the cluster protocol; `url` is then one node of it. */
  readonly cluster?: boolean;
}

const CONNECT_MS = 1000;
/** How many commands may wait for a response; more are refused. */
const MAX_WAITING = 20_000;

/**
 * Makes a client that waits for nothing without a bound: commands are refused while it is not connected, instead of being
 * queued and sent later (the default), and it does not connect again by itself: the connection's guard does.
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
        // A cluster outlives the loss of a node: its clients reconnect by themselves, commands for it fail at once meanwhile.
        reconnectStrategy: (retries: number) => Math.min(1000, 50 * 2 ** retries),
      },
    },
  });
}

/** The servers that have keys: the one, or every master of a cluster. */
export async function nodesOf(client: RedisClient): Promise<readonly RedisNode[]> {
  return 'masters' in client ? Promise.all(client.masters.map((node) => client.nodeClient(node))) : [client];
}

/** Names a script by the SHA-1 that Redis computes of it. */
export function defineScript(text: string): Script {
  return Object.freeze({ text, sha: createHash('sha1').update(text).digest('hex') });
}

/**
 * The head of every script that writes: ARGV[1] is the time (of Redis, in milliseconds) after which the caller has
 * given up. A server that was stopped finds the commands in its socket when it goes on; they must not happen then.
 */
const DEADLINE = `
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now_ms > tonumber(ARGV[1]) then return redis.error_reply('LATE ' .. string.format('%.0f', now_ms)) end
`;

/** A script that changes something: its own arguments begin at ARGV[2]. */
export function defineWrite(text: string): Script {
  return defineScript(DEADLINE + text);
}

/** Runs a script by its name; a server that does not know it yet gets the text. */
export async function runScript(client: RedisClient, script: Script, keys: string[], args: string[]): Promise<unknown> {
  try {
    return await client.evalSha(script.sha, { keys, arguments: args });
  } catch (error) {
    if (!isReply(error, 'NOSCRIPT')) throw error;
    return await client.eval(script.text, { keys, arguments: args });
  }
}

/** Whether an error is an error reply of Redis that begins with one of these words. */
export function isReply(error: unknown, ...words: readonly string[]): boolean {
  return error instanceof Error && words.some((word) => error.message.startsWith(word));
}

/**
 * The version of the keys and of what is in them. A change that an earlier gateway cannot read raises it, with a migration of the
 * version before and a test of that. Versions before {@link OLDEST_VERSION} were of builds that were not released: they are refused.
 */
export const SCHEMA_VERSION = 7;
/** Oldest version that a start migrates. Version 7 adds the journal: keys of version 6 stay as they are. */
const OLDEST_VERSION = 6;

/** The first build wrote keys of its own names, and no version. */
const FIRST_BUILD = 1;

const WORDS = { kind: 'redis', place: 'prefix', remedy: 'set prefix to a new one' } as const;
/** How many keys the server looks at before it serves others again. */
const SCAN_COUNT = 1000;
/** For a prefix without a version: then all keys of the server are looked through, ten million in about three seconds. */
const LOOK_MS = 30_000;

/**
 * Marks an empty prefix with this version, migrates the version before, and refuses keys of another one. Several gateways may do it at
 * once: each writes the version before any other key.
 */
async function checkSchema(client: RedisClient, prefix: string): Promise<void> {
  let version = await within(LOOK_MS, findVersion(client, prefix));
  if (version !== null && isMigrated(Number(version))) version = await within(LOOK_MS, migrate(client, prefix));
  const refusal = explainSchemaVersion(WORDS, version === null ? FIRST_BUILD : Number(version), SCHEMA_VERSION);
  if (refusal !== undefined) throw new GatewayError('store_unavailable', refusal);
}

/** Whether a start takes keys of a version to this one. */
export function isMigrated(version: number): boolean {
  return version >= OLDEST_VERSION && version < SCHEMA_VERSION;
}

/** KEYS: a mark of the schema. ARGV: the version that it has, the version that it gets. The version that it has then. */
const RAISE = defineScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
`);

/** Migrates keys of the version before. From the mark of the ledger on, gateways of that version are refused their changes. */
async function migrate(client: RedisClient, prefix: string): Promise<string> {
  let version = '';
  for (const key of [ledgerSchemaKey(prefix), schemaKey(prefix)])
    version = String(await runScript(client, RAISE, [key], [String(OLDEST_VERSION), String(SCHEMA_VERSION)]));
  return version;
}

/** Finds the version of the keys; marks an empty prefix with this one. */
async function findVersion(client: RedisClient, prefix: string): Promise<string | null> {
  const key = schemaKey(prefix);
  const version = await client.get(key);
  if (version !== null) return version;
  const isEmpty = await isPrefixEmpty(client, prefix);
  if (isEmpty) await markSchema(client, prefix);
  // Another gateway may have marked the prefix in between, and what was found is its own.
  return client.get(key);
}

/** The version that a prefix is marked with; undefined when it has no keys, {@link FIRST_BUILD} when it has and no mark. */
export async function readSchemaVersion(client: RedisClient, prefix: string): Promise<number | undefined> {
  const version = await client.get(schemaKey(prefix));
  if (version !== null) return Number(version);
  return (await isPrefixEmpty(client, prefix)) ? undefined : FIRST_BUILD;
}

/** Why keys of a version cannot be read by this one; undefined when a start reads them. */
export function explainSchema(version: number): string | undefined {
  return explainSchemaVersion(WORDS, version, SCHEMA_VERSION);
}

/** Marks a prefix whose keys are all this version's, unless it is marked. */
async function markSchema(client: RedisClient, prefix: string): Promise<void> {
  for (const key of [schemaKey(prefix), ledgerSchemaKey(prefix)])
    await client.set(key, String(SCHEMA_VERSION), { condition: 'NX' });
}

function schemaKey(prefix: string): string {
  return `${prefix}:schema`;
}

/** The same where scripts of the ledger find it, on its node of a cluster. */
export function ledgerSchemaKey(prefix: string): string {
  return `${prefix}:{ledger}:schema`;
}

/** Looks through all keys of the server, of a cluster through those of every master: only a prefix without a version needs it. */
async function isPrefixEmpty(client: RedisClient, prefix: string): Promise<boolean> {
  const options = { MATCH: `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`, COUNT: SCAN_COUNT };
  for (const node of await nodesOf(client)) {
    for await (const keys of node.scanIterator(options)) if (keys.length > 0) return false;
  }
  return true;
}

interface ConnectionOptions extends ClientOptions, ServerOptions {
  /** What all keys begin with. */
  readonly prefix: string;
}

/** Returns the time, and the id of this data, which is made when there is no data yet. */
const GREET = defineScript(`
local clock = redis.call('TIME')
local epoch = redis.call('GET', KEYS[1])
if not epoch and ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
  epoch = ARGV[1]
end
return { string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)), epoch or '' }
`);

/** How long connecting, and a greeting, may take. */
const GREET_MS = 1500;

/** Error replies that mean the server as a whole cannot serve now. */
const OUTAGE_REPLIES = ['LOADING', 'MASTERDOWN', 'READONLY', 'CLUSTERDOWN', 'MISCONF', 'BUSY'] as const;
/** Error replies at connecting that stay until somebody changes the configuration. */
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
 * Connects to Redis. Resolves also while the server is away (everything is refused until it answers); rejects when it
 * refuses the password or database of the URL, or holds keys of another schema version.
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
      // The Keyv adapter of every namespace listens on it.
      client.setMaxListeners(0);
      // The client of a cluster reports each of its nodes, and reconnects to them by itself.
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
      // The data is gone, and the version with it; what comes from now on would else be refused at the next start.
      if (epoch === '') await markSchema(client, prefix);
      return { timeMs: Number(time), epoch };
    },
    close: (client) => Promise.resolve(client.close()),
    destroy: destroyClient,
    isOutage: (error) => isReply(error, ...OUTAGE_REPLIES) || (!cluster && !isReplyError(error)),
    // A script's error has more words around it.
    explain: (error) =>
      error instanceof Error && /\bOOM\b/.test(error.message)
        ? 'The redis store is full: it reached its maxmemory and rejects writes. Raise maxmemory.'
        : undefined,
    findRefusal,
    findLateTime: (error) => (isReply(error, 'LATE') ? Number(/\d+/.exec((error as Error).message)?.[0]) : undefined),
  };
}

/** Refuses a node of a cluster that is taken for a server: the keys of other nodes would be missing. */
async function refuseNode(client: RedisClient): Promise<void> {
  // It may be forbidden to ask.
  const info = 'info' in client ? await client.info('cluster').catch(() => '') : '';
  if (info.includes('cluster_enabled:1'))
    throw new GatewayError(
      'store_unavailable',
      'The redis store is a cluster node. Set "cluster" of the store to true.',
    );
}

/** Why Redis refuses this gateway until its operator changes something; undefined when that is not it. */
export function findRefusal(error: unknown): string | undefined {
  // What the check of the schema found.
  if (isGatewayError(error)) return error.message;
  // A new client writes only before the first server has answered: what is taken over later is waited for.
  if (isReply(error, 'READONLY'))
    return 'The redis store is a replica, which rejects writes. Set the URL of its primary.';
  return isReply(error, ...FATAL_REPLIES)
    ? 'The redis store rejects the user, password or database of its URL.'
    : undefined;
}

/** Warns of settings that lose money; a server that does not tell them (INFO may be forbidden) is believed. */
async function logAdvice(server: ServerConnection<RedisClient>, log: Log): Promise<void> {
  try {
    const info = await server.run(async (client) => ('info' in client ? client.info() : ''));
    for (const advice of adviseOn(info)) log.warn({ store: 'redis' }, advice);
  } catch (error) {
    log.debug({ store: 'redis', err: error }, 'the store does not return its settings');
  }
}

/** Ends a client, also one that has ended. */
export function destroyClient(client: RedisClient): void {
  try {
    client.destroy();
  } catch {
    // It was closed already, which is what was wanted.
  }
}

/** Whether Redis replied with an error, `WORD text`. Everything else (sockets, clients) means that there was no reply. */
function isReplyError(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{2,}\b/.test(error.message);
}

/** What an operator should know about a Redis that keeps money, read from its INFO: one sentence per risk. */
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
