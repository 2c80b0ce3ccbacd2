import { createHash } from 'node:crypto';
import { createClient, createCluster } from '@keyv/redis';

/** What of a node-redis client or cluster this store uses; both have it, with types too different to unite. */
export interface RedisClient {
  connect(): Promise<unknown>;
  destroy(): void;
  close(): Promise<unknown>;
  on(event: string, listener: (error: unknown) => void): unknown;
  setMaxListeners(count: number): unknown;
  /** Of a single server; a cluster has no such command. */
  info?(): Promise<string>;
  get(key: string): Promise<string | null>;
  hmGet(key: string, fields: string[]): Promise<(string | null)[]>;
  hGetAll(key: string): Promise<Record<string, string>>;
  lRange(key: string, from: number, to: number): Promise<string[]>;
  zScore(key: string, member: string): Promise<number | null>;
  zCard(key: string): Promise<number>;
  zRangeByScore(key: string, min: string, max: number, options: Limited): Promise<string[]>;
  zRangeByLex(key: string, min: string, max: string, options: Limited): Promise<string[]>;
  eval(script: string, options: ScriptArguments): Promise<unknown>;
  evalSha(sha: string, options: ScriptArguments): Promise<unknown>;
}

interface Limited {
  readonly LIMIT: { readonly offset: number; readonly count: number };
}

interface ScriptArguments {
  readonly keys: string[];
  readonly arguments: string[];
}

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export interface ClientOptions {
  readonly url: string;
  /** Speaks the cluster protocol; `url` is then one node of it. */
  readonly cluster?: boolean;
}

const CONNECT_MS = 1000;
/** How many commands may wait for an answer; more are refused. */
const MAX_WAITING = 20_000;

/**
 * Makes a client that hangs on nothing: commands are refused while it is not connected, instead of being queued and sent
 * later (the default), and it does not connect again by itself: the connection's guard does, with a bound on every step.
 */
export function makeClient({ url, cluster = false }: ClientOptions): RedisClient {
  const socket = { connectTimeout: CONNECT_MS };
  if (!cluster) {
    return createClient({
      url,
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_WAITING,
      socket: { ...socket, reconnectStrategy: false },
    }) as unknown as RedisClient;
  }
  const { username, password } = new URL(url);
  return createCluster({
    rootNodes: [{ url }],
    defaults: {
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_WAITING,
      // A cluster outlives the loss of a node: its clients come back by themselves, commands for it fail at once meanwhile.
      socket: { ...socket, reconnectStrategy: (retries: number) => Math.min(1000, 50 * 2 ** retries) },
    },
  }) as unknown as RedisClient;
}

/** Names a script by the SHA-1 that Redis computes of it. */
export function defineScript(text: string): Script {
  return Object.freeze({ text, sha: createHash('sha1').update(text).digest('hex') });
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
