import { createHash } from 'node:crypto';
import { createClient, createCluster } from '@keyv/redis';
import type { ServerConnection } from '../kit/server-connection.ts';

/** A client of a server or of a cluster. */
export type RedisClient = ReturnType<typeof makeClient>;

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** A connection to Redis that is replaced when it hangs or breaks. */
export interface Connection extends Pick<ServerConnection<RedisClient>, 'health' | 'close'> {
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
export async function nodesOf(client: RedisClient) {
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
