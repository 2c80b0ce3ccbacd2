import type { Counters, Window, WindowState } from '../../../core/index.ts';
import { finite, storeKey } from '../kit/check.ts';
import type { Database } from './driver.ts';
import type { Writer } from './writer.ts';

/**
 * Windows, leases and numbers in the tables. Any other process may have the file open and count too, so each count is
 * a change of the {@link Writer}: limits are exact over all processes.
 */
export function createSqliteCounters(database: Database, writer: Writer): Counters {
  const sql = prepareCounters(database);

  return {
    take: (windows, now) => writer.write('counters.take', () => take(sql, windows, now)),
    adjust: (key, _windowMs, delta, now) =>
      writer.write('counters.adjust', () => void sql.adjust.run(delta, storeKey(key), now)),
    lease: (key, id, limit, ttlMs, now) =>
      writer.write('counters.lease', () =>
        Boolean(sql.lease.run(storeKey(key), storeKey(id), now + ttlMs, now, finite(limit)).changes),
      ),
    release: (key, id) => writer.write('counters.release', () => void sql.release.run(storeKey(key), storeKey(id))),
    next: (key, by = 1) => {
      if (by === 0)
        return writer.readLatest('counters.next', () => Number(sql.number.get(storeKey(key))?.['value'] ?? 0));
      return writer.write('counters.next', () => Number(sql.next.get(storeKey(key), by)?.['value'] ?? 0));
    },
  };
}

type CounterSql = ReturnType<typeof prepareCounters>;

/** Takes from all windows, or undoes what it took when one of them has not enough. */
function take(sql: CounterSql, windows: readonly Window[], now: number) {
  const states: WindowState[] = [];
  for (const [index, { key, limit, windowMs, amount }] of windows.entries()) {
    const row =
      amount > limit ? undefined : sql.take.get(storeKey(key), amount, now + windowMs, now, now, finite(limit), now);
    if (!row) {
      for (const taken of windows.slice(0, index)) sql.undo.run(taken.amount, storeKey(taken.key));
      return { refused: index, states: windows.map((window) => readWindow(sql, window, now)) };
    }
    states.push({ remaining: Math.max(0, limit - Number(row['used'])), resetMs: Number(row['resets_at']) - now });
  }
  return { refused: undefined, states };
}

function readWindow(sql: CounterSql, { key, limit, windowMs }: Window, now: number): WindowState {
  const row = sql.window.get(storeKey(key), now);
  if (!row) return { remaining: Math.max(0, limit), resetMs: windowMs };
  return { remaining: Math.max(0, limit - Number(row['used'])), resetMs: Number(row['resets_at']) - now };
}

function prepareCounters(database: Database) {
  return {
    window: database.prepare('SELECT used, resets_at FROM windows WHERE key = ? AND resets_at > ?'),
    take: database.prepare(`INSERT INTO windows (key, used, resets_at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
      used = CASE WHEN resets_at > ? THEN used ELSE 0 END + excluded.used,
      resets_at = CASE WHEN resets_at > ? THEN resets_at ELSE excluded.resets_at END
      WHERE used + excluded.used <= ? OR resets_at <= ? RETURNING used, resets_at`),
    undo: database.prepare('UPDATE windows SET used = used - ? WHERE key = ?'),
    adjust: database.prepare('UPDATE windows SET used = max(0, used + ?) WHERE key = ? AND resets_at > ?'),
    lease: database.prepare(`INSERT INTO leases (key, id, expires_at) SELECT ?1, ?2, ?3
      WHERE (SELECT count(*) FROM leases WHERE key = ?1 AND expires_at > ?4 AND id <> ?2) < ?5
        OR EXISTS (SELECT 1 FROM leases WHERE key = ?1 AND id = ?2 AND expires_at > ?4)
      ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at`),
    release: database.prepare('DELETE FROM leases WHERE key = ? AND id = ?'),
    next: database.prepare(`INSERT INTO numbers (key, value) VALUES (?, ?)
      ON CONFLICT DO UPDATE SET value = value + excluded.value RETURNING value`),
    number: database.prepare('SELECT value FROM numbers WHERE key = ?'),
  };
}
