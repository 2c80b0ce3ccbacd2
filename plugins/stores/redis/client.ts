import { createHash } from 'node:crypto';
import { createClient } from '@keyv/redis';

/** A client of a server. */
export type RedisClient = ReturnType<typeof makeClient>;

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export interface ClientOptions {
  readonly url: string;
}

const CONNECT_MS = 1000;
/** How many commands may wait for a response; more are refused. */
const MAX_WAITING = 20_000;

/**
 * Makes a client that waits for nothing without a bound: commands are refused while it is not connected, instead of being
 * queued and sent later (the default), and it does not connect again by itself: the connection's guard does.
 */
export function makeClient({ url }: ClientOptions) {
  const limits = { disableOfflineQueue: true, commandsQueueMaxLength: MAX_WAITING };
  return createClient({ url, ...limits, socket: { connectTimeout: CONNECT_MS, reconnectStrategy: false } });
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
