import type { Database } from './driver.ts';
import type { Writer } from './writer.ts';

const EVERY_MS = 5000;
/** How many rows one round looks at in each table: a bounded pause, however large the file is. */
const STEP = 1000;

/** Makes a function that deletes what expired before `now`, a little at a time. */
export function createPurge(database: Database): (now: number) => void {
  const documents = database.prepare(`DELETE FROM documents WHERE (namespace, key) IN
    (SELECT namespace, key FROM documents WHERE expires IS NOT NULL AND expires <= ? LIMIT ${STEP})`);
  const leases = database.prepare(`DELETE FROM leases WHERE (key, id) IN
    (SELECT key, id FROM leases WHERE expires_at <= ? LIMIT ${STEP})`);
  const walks = [
    createWalk(database, 'windows', 'key', 'resets_at'),
    createWalk(database, 'finished', 'ref', 'until'),
    createWalk(database, 'swept', 'ref', 'until'),
    createWalk(database, 'budgets', 'id', 'until'),
  ];
  return (now) => {
    documents.run(now);
    leases.run(now);
    for (const walk of walks) walk(now);
  };
}

/**
 * Deletes expired rows of a table that has no index on its end (that would cost every call): each round looks at the
 * next rows in the order of their key, and begins again after the last.
 */
function createWalk(database: Database, table: string, key: string, end: string): (now: number) => void {
  const next = database.prepare(
    `SELECT max(k) AS last FROM (SELECT ${key} AS k FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${STEP})`,
  );
  const remove = database.prepare(`DELETE FROM ${table} WHERE ${key} > ? AND ${key} <= ? AND ${end} <= ?`);
  let cursor = '';
  return (now) => {
    const last = next.get(cursor)?.['last'];
    if (typeof last === 'string') remove.run(cursor, last, now);
    cursor = typeof last === 'string' ? last : '';
  };
}

/** Purges every few seconds; returns what stops it. */
export function startPurge(writer: Writer, purge: (now: number) => void): () => void {
  const timer = setInterval(() => {
    // A store that cannot purge now says so to those who use it; the next round tries again.
    writer.write('store.purge', () => purge(Date.now())).catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
