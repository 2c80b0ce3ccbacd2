import { storeUnavailable } from '../kit/failure.ts';
import { within } from '../kit/guard.ts';
import { type ClientOptions, makeClient } from './client.ts';
import { destroyClient, findRefusal } from './connection.ts';
import { explainSchema, readSchemaVersion } from './schema.ts';

const PROBE_MS = 5_000;

/** Whether the server takes the user and password and holds keys that this version can read; nothing is written. */
export async function probeRedis({ prefix, ...options }: ClientOptions & { readonly prefix: string }): Promise<string> {
  const client = makeClient(options);
  // The rejection of `connect` says it.
  client.on('error', () => undefined);
  try {
    await within(PROBE_MS, Promise.resolve(client.connect()));
    const version = await within(PROBE_MS, readSchemaVersion(client, prefix));
    if (version === undefined) return 'no keys of a gateway yet';
    const refusal = explainSchema(version);
    if (refusal !== undefined) throw storeUnavailable(refusal);
    return `schema ${version}`;
  } catch (cause) {
    throw storeUnavailable(findRefusal(cause) ?? 'The redis store does not answer.', cause);
  } finally {
    destroyClient(client);
  }
}
