import type { Database } from './database.ts';
import type { Writer } from './writer.ts';

const EVERY_MS = 5000;
/** How many rows one round looks at in each table: a bounded pause, however large the file is. */
const STEP = 500;

/** Makes a function that deletes what expired before `now`, a little at a time. */
export function createPurge(database: Database): (now: number) => void {
  const documents = database.prepare(`DELETE FROM documents WHERE (namespace, key) IN
    (SELECT namespace, key FROM documents WHERE expires IS NOT NULL AND expires <= ? LIMIT ${STEP})`);
  const leases = database.prepare(`DELETE FROM leases WHERE (key, id) IN
    (SELECT key, id FROM leases WHERE expires_at <= ? LIMIT ${STEP})`);
  // Windows have no index on their end (it would cost every call): a cursor walks over all of them instead.
  const lastKey = database.prepare(
    `SELECT max(key) AS last FROM (SELECT key FROM windows WHERE key > ? ORDER BY key LIMIT ${STEP})`,
  );
  const windows = database.prepare('DELETE FROM windows WHERE key > ? AND key <= ? AND resets_at <= ?');
  let cursor = '';

  return (now) => {
    documents.run(now);
    leases.run(now);
    const last = lastKey.get(cursor)?.['last'];
    if (typeof last === 'string') windows.run(cursor, last, now);
    cursor = typeof last === 'string' ? last : '';
  };
}

/** Purges every few seconds; returns what stops it. */
export function startPurge(writer: Writer, purge: (now: number) => void): () => void {
  const timer = setInterval(() => {
    // A store that cannot purge now says so to those who use it; the next round tries again.
    writer.write(() => purge(Date.now())).catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
