import { randomUUID } from 'node:crypto';
import type { Log } from '../../../core/index.ts';
import { storeClosed, storeUnavailable } from '../kit/failure.ts';
import { createGuard, within } from '../kit/guard.ts';
import { createServerClock, sendInTime } from '../kit/server-clock.ts';
import { adviseOn } from './advice.ts';
import {
  type ClientOptions,
  defineScript,
  isReply,
  makeClient,
  type RedisClient,
  runScript,
  type Script,
} from './client.ts';

export interface ConnectionOptions extends ClientOptions {
  /** What all keys begin with. */
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly log?: Log | undefined;
}

/** One client at a time, replaced when it hangs or breaks. */
export interface Connection {
  /** Reads. */
  read<T>(command: (client: RedisClient) => Promise<T>): Promise<T>;
  /** Runs a script that changes something; it does nothing when it reaches Redis after its bound. */
  write(script: Script, keys: string[], args: readonly (string | number)[]): Promise<unknown>;
  health(): Promise<void>;
  close(): Promise<void>;
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

/** Answers the time, and the id of this data, which is made when there is no data yet. */
const GREET = defineScript(`
local clock = redis.call('TIME')
if ARGV[1] ~= '' then redis.call('SET', KEYS[1], ARGV[1], 'NX') end
return { string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)), redis.call('GET', KEYS[1]) or '' }
`);

const CONNECT_MS = 1500;

/** Error replies that mean the server as a whole cannot serve now. */
const OUTAGE_REPLIES = ['LOADING', 'MASTERDOWN', 'READONLY', 'CLUSTERDOWN', 'MISCONF', 'BUSY'] as const;
/** Error replies at connecting that no waiting mends. */
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
 * refuses the password or database of the URL.
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { prefix, timeoutMs, log, cluster = false } = options;
  const epochKey = `${prefix}:epoch`;
  let client: RedisClient | undefined;
  const clock = createServerClock();
  let epoch: string | undefined;
  let isEmptied = false;
  let isClosed = false;

  const greet = async (to: RedisClient): Promise<void> => {
    const [time, found] = (await runScript(
      to,
      GREET,
      [epochKey],
      [epoch === undefined ? randomUUID() : ''],
    )) as string[];
    clock.observe(Number(time));
    epoch ??= found;
    if (found !== epoch && !isEmptied) {
      isEmptied = true;
      log?.error({ store: 'redis' }, 'the store lost its data while the gateway ran: keys and balances are gone');
    }
  };

  const probe = async (): Promise<void> => {
    drop(client);
    client = undefined;
    const next = makeClient(options);
    // The Keyv adapter of every namespace listens on it.
    next.setMaxListeners(0);
    next.on('error', (error) => {
      if (next === client && !cluster) guard.trip(error);
    });
    try {
      await within(CONNECT_MS, next.connect());
      await within(CONNECT_MS, greet(next));
      if (isClosed) throw storeClosed();
    } catch (error) {
      drop(next);
      throw error;
    }
    client = next;
  };

  const isOutage = (error: unknown): boolean => isReply(error, ...OUTAGE_REPLIES) || (!cluster && !isReplyError(error));
  const guard = createGuard({ kind: 'redis', timeoutMs, probe, isOutage, log });

  const current = (): RedisClient => {
    if (!client) throw storeUnavailable('The redis store does not answer.');
    return client;
  };

  const write = (script: Script, keys: string[], args: readonly (string | number)[]): Promise<unknown> => {
    const rest = args.map(String);
    const send = async (deadline: number) => runScript(current(), script, keys, [String(deadline), ...rest]);
    return sendInTime(clock, timeoutMs, send, lateAt);
  };

  const failure = await guard.start();
  if (isReply(failure, ...FATAL_REPLIES)) {
    guard.close();
    throw storeUnavailable('The redis store refuses the user, password or database of its URL.', failure);
  }
  if (failure !== undefined) log?.warn({ store: 'redis', err: failure }, 'the store does not answer yet');
  if (!cluster && log) await advise(current, log);

  return {
    read: (command) => guard.run(async () => command(current())),
    write: (script, keys, args) => guard.run(() => write(script, keys, args)),
    health: async () => {
      await guard.run(() => greet(current()));
      if (isEmptied) {
        throw storeUnavailable(
          'The redis store lost its data: restore it, or restart the gateway to go on with an empty one.',
        );
      }
    },
    close: async () => {
      isClosed = true;
      guard.close();
      const last = client;
      client = undefined;
      await within(timeoutMs, Promise.resolve(last?.close())).catch(() => drop(last));
    },
  };
}

/** Warns of settings that lose money; a server that does not tell them (INFO may be forbidden) is believed. */
async function advise(current: () => RedisClient, log: Log): Promise<void> {
  try {
    const info = await within(CONNECT_MS, current().info?.() ?? Promise.resolve(''));
    for (const advice of adviseOn(info)) log.warn({ store: 'redis' }, advice);
  } catch (error) {
    log.debug({ store: 'redis', err: error }, 'the store does not tell its settings');
  }
}

function drop(client: RedisClient | undefined): void {
  try {
    client?.destroy();
  } catch {
    // It was closed already, which is what was wanted.
  }
}

/** The time of Redis in the error of a script that came too late. */
function lateAt(error: unknown): number | undefined {
  return isReply(error, 'LATE') ? Number(/\d+/.exec((error as Error).message)?.[0]) : undefined;
}

/** Redis answered, with an error: `WORD text`. Everything else (sockets, clients) means that it did not answer. */
function isReplyError(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{2,}\b/.test(error.message);
}
