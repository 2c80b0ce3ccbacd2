import { GatewayError } from '../../../core/index.ts';
import { explainSchemaVersion } from '../kit/failure.ts';
import { within } from '../kit/guard.ts';
import { nodesOf, type RedisClient } from './client.ts';

/**
 * The version of the keys and of what is in them. A change that an earlier gateway cannot read raises it, with a migration of the
 * version before and a test of that. Earlier versions were of builds that were not released: they are refused.
 */
export const SCHEMA_VERSION = 4;

/** The first build wrote keys of its own names, and no version. */
const FIRST_BUILD = 1;

const WORDS = { kind: 'redis', place: 'prefix', remedy: 'set prefix to a new one' } as const;
/** How many keys the server looks at before it serves others again. */
const SCAN_COUNT = 1000;
/** For a prefix without a version: then all keys of the server are looked through, ten million in about three seconds. */
const LOOK_MS = 30_000;

/**
 * Marks an empty prefix with this version, and refuses keys of another one. Several gateways may do it at once: each writes
 * the version before any other key.
 */
export async function checkSchema(client: RedisClient, prefix: string): Promise<void> {
  const version = await within(LOOK_MS, findVersion(client, prefix));
  const refusal = explainSchemaVersion(WORDS, version === null ? FIRST_BUILD : Number(version), SCHEMA_VERSION);
  if (refusal !== undefined) throw new GatewayError('store_unavailable', refusal);
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
export async function markSchema(client: RedisClient, prefix: string): Promise<void> {
  await client.set(schemaKey(prefix), String(SCHEMA_VERSION), { condition: 'NX' });
}

function schemaKey(prefix: string): string {
  return `${prefix}:schema`;
}

/** Looks through all keys of the server, of a cluster through those of every master: only a prefix without a version needs it. */
async function isPrefixEmpty(client: RedisClient, prefix: string): Promise<boolean> {
  const options = { MATCH: `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`, COUNT: SCAN_COUNT };
  for (const node of await nodesOf(client)) {
    for await (const keys of node.scanIterator(options)) if (keys.length > 0) return false;
  }
  return true;
}
