import type { Connection } from './connection.ts';

const EVERY_MS = 60_000;

/** Deletes at most a thousand expired rows of a table; rows that change meanwhile have another ctid and stay. */
function purgeOf(table: string, column: string): string {
  return `DELETE FROM tollgate.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.${table} WHERE ${column} < $1 LIMIT 1000))`;
}

const PURGES = Object.freeze({
  documents: purgeOf('documents', 'expires'),
  released: purgeOf('released', 'until'),
  swept: purgeOf('swept', 'until'),
  windows: purgeOf('windows', 'resets_at'),
  leases: purgeOf('leases', 'expires_at'),
});

/** Deletes what expired, a little every minute; returns what stops it. */
export function startPurge(connection: Connection): () => void {
  const purge = async (): Promise<void> => {
    for (const [table, text] of Object.entries(PURGES)) await connection.read(`purge_${table}`, text, [Date.now()]);
  };
  const timer = setInterval(() => {
    // A store that cannot purge now says so to those who use it; the next round tries again.
    purge().catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
