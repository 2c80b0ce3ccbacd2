import pg from 'pg';
import { storeUnavailable } from '../kit/failure.ts';
import { explainSchemaOf, FIND_META, FIND_VERSION, findRefusal } from './connection.ts';
import { VERSION } from './schema.ts';

const PROBE_MS = 5_000;

/** Whether the server takes the user and password and holds a schema that this version can read; nothing is written. */
export async function probePostgres(url: string): Promise<string> {
  const client = new pg.Pool({
    connectionString: url,
    application_name: 'tollgate check',
    max: 1,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  client.on('error', () => undefined);
  try {
    const known = (await client.query({ text: FIND_META })).rows[0]?.['found'];
    const version = known ? Number((await client.query({ text: FIND_VERSION })).rows[0]?.['value'] ?? 0) : 0;
    if (version === 0) return 'no schema of a gateway yet';
    if (version !== VERSION) throw storeUnavailable(explainSchemaOf(version));
    return `schema ${version}`;
  } catch (cause) {
    throw storeUnavailable(findRefusal(cause) ?? 'The postgres store does not answer.', cause);
  } finally {
    await client.end().catch(() => undefined);
  }
}
