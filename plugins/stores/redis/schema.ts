import { GatewayError } from '../../../core/index.ts';
import { explainSchemaVersion } from '../kit/failure.ts';
import type { RedisClient } from './client.ts';

/** The version of the keys and of what is in them; raise it with every change that an earlier gateway cannot read. */
export const SCHEMA_VERSION = 2;

/** The first build wrote keys of its own names, and no version. */
const FIRST_BUILD = 1;

const WORDS = { kind: 'redis', place: 'prefix', remedy: 'set prefix to a new one' } as const;
/** How many keys the server looks at before it serves others again. */
const SCAN_COUNT = 1000;

/**
 * Refuses keys of another schema version, and marks an empty prefix with this one. Several gateways may do it at once:
 * each writes the version before any other key.
 */
export async function checkSchema(client: RedisClient, prefix: string): Promise<void> {
  const key = schemaKey(prefix);
  let version = await client.get(key);
  if (version === null) {
    const isEmpty = await isPrefixEmpty(client, prefix);
    if (isEmpty) await markSchema(client, prefix);
    // Another gateway may have marked the prefix in between, and what was found is its own.
    version = await client.get(key);
  }
  const refusal = explainSchema(version === null ? FIRST_BUILD : Number(version));
  if (refusal !== undefined) throw new GatewayError('store_unavailable', refusal);
}

/** The version that a prefix is marked with; undefined when it has no keys, {@link FIRST_BUILD} when it has and no mark. */
export async function readSchemaVersion(client: RedisClient, prefix: string): Promise<number | undefined> {
  const version = await client.get(schemaKey(prefix));
  if (version !== null) return Number(version);
  return (await isPrefixEmpty(client, prefix)) ? undefined : FIRST_BUILD;
}

/** Why keys of a version cannot be read by this one. */
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
  const nodes =
    'masters' in client ? await Promise.all(client.masters.map((node) => client.nodeClient(node))) : [client];
  for (const node of nodes) {
    for await (const keys of node.scanIterator(options)) if (keys.length > 0) return false;
  }
  return true;
}
