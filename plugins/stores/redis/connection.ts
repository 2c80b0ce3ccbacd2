import { randomUUID } from 'node:crypto';
import { isGatewayError, type Log } from '../../../core/index.ts';
import { within } from '../kit/guard.ts';
import {
  connectServer,
  type ServerConnection,
  type ServerDriver,
  type ServerOptions,
} from '../kit/server-connection.ts';
import {
  type ClientOptions,
  type Connection,
  defineScript,
  isReply,
  makeClient,
  type RedisClient,
  runScript,
} from './client.ts';
import { checkSchema, markSchema } from './schema.ts';

interface ConnectionOptions extends ClientOptions, ServerOptions {
  /** What all keys begin with. */
  readonly prefix: string;
}

/** Returns the time, and the id of this data, which is made when there is no data yet. */
const GREET = defineScript(`
local clock = redis.call('TIME')
if ARGV[1] ~= '' then redis.call('SET', KEYS[1], ARGV[1], 'NX') end
return { string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)), redis.call('GET', KEYS[1]) or '' }
`);

const CONNECT_MS = 1500;

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
    health: server.health,
    close: server.close,
  };
}

function createDriver(options: ConnectionOptions): ServerDriver<RedisClient> {
  const { prefix, cluster = false } = options;
  return {
    kind: 'redis',
    greetMs: CONNECT_MS,
    open(onBreak) {
      const client = makeClient(options);
      // The Keyv adapter of every namespace listens on it.
      client.setMaxListeners(0);
      // The client of a cluster reports each of its nodes, and reconnects to them by itself.
      client.on('error', (error) => cluster || onBreak(error));
      return client;
    },
    async prepare(client, isFirst) {
      await within(CONNECT_MS, Promise.resolve(client.connect()));
      if (isFirst) await checkSchema(client, prefix);
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
    findRefusal,
    findLateTime: (error) => (isReply(error, 'LATE') ? Number(/\d+/.exec((error as Error).message)?.[0]) : undefined),
  };
}

/** Why Redis refuses this gateway until its operator changes something; undefined when that is not it. */
export function findRefusal(error: unknown): string | undefined {
  // What the check of the schema found.
  if (isGatewayError(error)) return error.message;
  return isReply(error, ...FATAL_REPLIES)
    ? 'The redis store refuses the user, password or database of its URL.'
    : undefined;
}

/** Warns of settings that lose money; a server that does not tell them (INFO may be forbidden) is believed. */
async function logAdvice(server: ServerConnection<RedisClient>, log: Log): Promise<void> {
  try {
    const info = await server.run(async (client) => ('info' in client ? client.info() : ''));
    for (const advice of adviseOn(info)) log.warn({ store: 'redis' }, advice);
  } catch (error) {
    log.debug({ store: 'redis', err: error }, 'the store does not tell its settings');
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
      `maxmemory-policy is ${policy}: Redis may drop keys and balances when it is full; set it to noeviction`,
    );
  }
  if (facts.get('aof_enabled') === '0') {
    advice.push(
      'appendonly is off: a crash of Redis loses every charge and key since its last snapshot; set it to yes',
    );
  }
  return advice;
}
