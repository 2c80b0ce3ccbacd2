import { access, chmod, constants, mkdir, open, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Counters,
  definePlugin,
  type Log,
  type Store,
  type StoreWatcher,
  type Window,
  type WindowState,
} from '../../../contract/index.ts';
import { finite, storeKey } from '../kit/check.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeRefused, storeUnavailable } from '../kit/failure.ts';
import { KEPT_OPTION, withStored } from '../kit/kept.ts';
import { watchWrites } from '../kit/write-watch.ts';
import { createDocumentAdapters, createSqliteSets } from './documents.ts';
import { type Database, importDriver, isBusy, sqliteFailure } from './driver.ts';
import { MICRO_DOLLAR_VERSION, openEarlier } from './earlier.ts';
import { openSqliteLedger } from './ledger.ts';
import { checkVersion, MIGRATIONS, migrate } from './schema.ts';
import { createSqliteTransfer } from './transfer.ts';
import { Writer } from './writer.ts';

interface DatabaseOptions {
  /** Folder of `tollgate.db`; created if missing, readable only by its owner. */
  readonly folder: string;
  /** `full` waits for the disk at every commit: it survives a power failure, and is several times slower. */
  readonly durability?: 'normal' | 'full';
  /** Maximum size of the documents of one account. */
  readonly keepPerAccount?: string | number;
}

export const FILE = 'tollgate.db';

const UNUSABLE = 'The folder of the sqlite store cannot be written: check that it exists and belongs to this user.';

/** Maximum wait at opening for other processes that open or migrate the same file. */
const OPEN_BUSY_MS = 5000;
/** Maximum time that a statement blocks this process for another one's lock. The writer retries without blocking. */
const BUSY_MS = 5;
/** Oldest schema that a start can migrate, and the schema after migration. */
const OLDEST = MIGRATIONS[0]?.version ?? 0;
const NEWEST = MIGRATIONS.at(-1)?.version ?? 0;
/** Pause between checks that no other process has the file open. */
const ALONE_PAUSE_MS = 50;

/**
 * Opens the database file and migrates it to the current schema. Rejects with `store_unavailable` if the folder or the
 * file is unusable, or if another version of the gateway created the file.
 */
export async function openDatabase({ folder, durability = 'normal' }: DatabaseOptions): Promise<Database> {
  const { DatabaseSync } = await importDriver();
  const file = path.join(folder, FILE);
  await makeFolder(folder);
  await makeFile(file);
  let database: Database | undefined;
  try {
    database = await openAlone(() => new DatabaseSync(file));
    database.exec(`PRAGMA busy_timeout=${OPEN_BUSY_MS}`);
    database.exec('PRAGMA journal_mode=WAL');
    database.exec(`PRAGMA synchronous=${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    migrate(database);
    database.exec(`PRAGMA busy_timeout=${BUSY_MS}`);
    return database;
  } catch (cause) {
    database?.close();
    throw sqliteFailure(cause, file);
  }
}

/**
 * Opens a file. Waits until no other process has it open if its schema is older: processes of that version would
 * continue to write to migrated tables.
 */
async function openAlone(open: () => Database): Promise<Database> {
  const deadlineMs = performance.now() + OPEN_BUSY_MS;
  for (;;) {
    const database = open();
    try {
      database.exec(`PRAGMA busy_timeout=${BUSY_MS}`);
      if (!isVersionIn(database, OLDEST, NEWEST - 1) || isAlone(database)) return database;
    } catch (error) {
      if (!isBusy(error)) {
        database.close();
        throw error;
      }
    }
    database.close();
    if (performance.now() > deadlineMs)
      throw storeRefused(
        'The sqlite store was made by an earlier version of Tollgate, and another process has it open: stop all processes of that version, then start this one. Nothing in it was changed.',
      );
    await pause(ALONE_PAUSE_MS * (1 + Math.random()));
  }
}

/** Checks that no other process has the file open: otherwise SQLite refuses to leave WAL mode. */
function isAlone(database: Database): boolean {
  try {
    database.exec('PRAGMA journal_mode=DELETE');
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

/**
 * Checks if the schema version of a file is in this range. Avoids a prepared statement: until it is collected, it keeps
 * its connection and the file open after `close`. Unprepared statements return no rows, so an error is the result.
 */
function isVersionIn(database: Database, first: number, last: number): boolean {
  try {
    database.exec(
      `SELECT abs(-9223372036854775808) FROM pragma_user_version WHERE user_version BETWEEN ${first} AND ${last}`,
    );
    return false;
  } catch (error) {
    if (error instanceof Error && error.message.includes('integer overflow')) return true;
    throw error;
  }
}

/**
 * Copies the write-ahead log into the file, and closes it. The driver does not copy it while prepared statements wait
 * for the garbage collector. While other processes read, the log stays, which is harmless.
 */
export function closeDatabase(database: Database): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // The disk is full or another process is busy: the next start copies the log.
  }
  database.close();
}

async function makeFolder(folder: string): Promise<void> {
  try {
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (made !== undefined) await chmod(folder, 0o700);
  } catch (cause) {
    throw storeUnavailable(UNUSABLE, cause);
  }
}

/**
 * Creates an empty file that only its owner can read. Never opens an existing file: closing any of its descriptors
 * would release all locks that SQLite holds on it in this process.
 */
async function makeFile(file: string): Promise<void> {
  try {
    const handle = await open(file, 'wx', 0o600);
    await handle.close();
  } catch (cause) {
    const doesExist = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
    if (!doesExist) throw storeUnavailable(UNUSABLE, cause);
  }
}

const EVERY_MS = 5000;
/** Number of rows that one round checks per table. It bounds the pause, however large the file is. */
const STEP = 1000;

/** Creates a function that deletes some of the rows that expired before `now`. */
export function createPurge(database: Database): (now: number) => void {
  const documents = database.prepare(`DELETE FROM documents WHERE (namespace, key) IN
    (SELECT namespace, key FROM documents WHERE expires IS NOT NULL AND expires <= ? LIMIT ${STEP})`);
  const leases = database.prepare(`DELETE FROM leases WHERE (key, id) IN
    (SELECT key, id FROM leases WHERE expires_at <= ? LIMIT ${STEP})`);
  const walks = [
    createWalk(database, 'windows', 'key', 'resets_at'),
    createWalk(database, 'ended', 'ref', 'until'),
    createWalk(database, 'holds', 'ref', 'until', "AND state <> 'held'"),
    createWalk(database, 'sums', 'id', 'until', "AND kind = 'budget'"),
  ];
  return (now) => {
    documents.run(now);
    leases.run(now);
    for (const walk of walks) walk(now);
  };
}

/**
 * Deletes expired rows of a table without an index on its expiry, which would cost time in every call. Each round
 * checks the next rows in key order, and restarts after the last.
 */
function createWalk(database: Database, table: string, key: string, end: string, and = ''): (now: number) => void {
  const next = database.prepare(
    `SELECT max(k) AS last FROM (SELECT ${key} AS k FROM ${table} WHERE ${key} > ? ${and} ORDER BY ${key} LIMIT ${STEP})`,
  );
  const remove = database.prepare(`DELETE FROM ${table} WHERE ${key} > ? AND ${key} <= ? AND ${end} <= ? ${and}`);
  let cursor = '';
  return (now) => {
    const last = next.get(cursor)?.['last'];
    if (typeof last === 'string') remove.run(cursor, last, now);
    cursor = typeof last === 'string' ? last : '';
  };
}

/** Share of the free disk space for documents of accounts. Ledger and calls still work after it is used up. */
const KEPT_SHARE = 0.5;

async function findDiskRoom(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize * KEPT_SHARE;
}

/** Purges every few seconds; returns a function that stops it. */
function startPurge(writer: Writer, purge: (now: number) => void): () => void {
  const timer = setInterval(() => {
    // Callers notice a failing store themselves; the next interval tries again.
    writer.write('store.purge', () => purge(Date.now())).catch(() => undefined);
  }, EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Opens the embedded store: one file, `tollgate.db`, which several processes of one machine may share. Rejects with
 * `store_unavailable` if the folder or the file is unusable.
 */
export async function openSqlite(options: DatabaseOptions, observe?: StoreWatcher, log?: Log): Promise<Store> {
  const file = path.join(options.folder, FILE);
  if (await isEarlier(file)) return openEarlier(file);
  const database = await openDatabase(options);
  const { ino } = await stat(file);
  const writes = watchWrites(log);
  const writer = new Writer(database, file, observe, writes.onFailure);
  const stopPurge = startPurge(writer, createPurge(database));
  const ping = database.prepare('SELECT count(*) AS tables FROM sqlite_schema');
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    stopPurge();
    await journal.close();
    await writer.close();
    closeDatabase(database);
  };

  const { ledger, journal } = openSqliteLedger(database, writer, log);
  return writes.over({
    kind: 'sqlite',
    ...withStored(
      { keyv: createDocuments(createDocumentAdapters(database, writer)), sets: createSqliteSets(database, writer) },
      options.keepPerAccount,
      () => findDiskRoom(options.folder),
    ),
    ledger,
    transfer: () => createSqliteTransfer(database, writer, ledger, journal),
    counters: createSqliteCounters(database, writer),
    health: async () => {
      await writer.read('store.health', () => ping.get());
      if (writer.damage !== undefined) throw writer.damage;
      await journal.check();
      const found = await stat(file).catch(() => undefined);
      if (found?.ino !== ino)
        throw storeUnavailable('The file of the sqlite store was removed or replaced: restart the gateway.');
    },
    close: () => (closing ??= close()),
  });
}

export default definePlugin({
  name: 'sqlite',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    examples: ['sqlite:./data'],
    properties: {
      folder: { type: 'string', format: 'path', default: 'data', description: 'Folder of the database file.' },
      durability: {
        type: 'string',
        enum: ['normal', 'full'],
        description: '`normal` survives a crash of the process, `full` also a power cut.',
      },
      keepPerAccount: KEPT_OPTION,
    },
  },
  setup(api, { folder, durability, keepPerAccount }) {
    api.store(
      (observe) =>
        openSqlite({ folder, keepPerAccount, ...(durability !== undefined && { durability }) }, observe, api.log),
      () => probeSqlite(folder),
    );
  },
});

/**
 * Checks if the store could be opened, and describes its content. Creates and changes nothing. Rejects for the same
 * reasons as opening.
 */
async function probeSqlite(folder: string): Promise<string> {
  const file = path.join(folder, FILE);
  const place = (await doesExist(file)) ? file : await nearestFolder(folder);
  try {
    await access(place, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw storeUnavailable(`The sqlite store cannot be written: this user may not write ${place}.`, cause);
  }
  return place === file ? describeFile(file) : `a new file ${file}`;
}

async function describeFile(file: string): Promise<string> {
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    checkVersion(version, MIGRATIONS);
    return version === NEWEST ? `schema ${version}` : `schema ${version}, which a start takes to ${NEWEST}`;
  } catch (cause) {
    throw sqliteFailure(cause, file);
  } finally {
    database.close();
  }
}

/** Checks if a file is of {@link MICRO_DOLLAR_VERSION}; false if it is missing or unreadable. */
async function isEarlier(file: string): Promise<boolean> {
  if (!(await doesExist(file))) return false;
  const { DatabaseSync } = await importDriver();
  let database: Database | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    return isVersionIn(database, MICRO_DOLLAR_VERSION, MICRO_DOLLAR_VERSION);
  } catch {
    // Opening the file reports the reason.
    return false;
  } finally {
    database?.close();
  }
}

/** Returns the folder, or its nearest existing parent. */
async function nearestFolder(folder: string): Promise<string> {
  return (await doesExist(folder)) || path.dirname(folder) === folder ? folder : nearestFolder(path.dirname(folder));
}

function doesExist(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/**
 * Windows, leases and numbers in the tables. Other processes may have the file open and count too. Each count is
 * therefore a change of the {@link Writer}, and limits are exact over all processes.
 */
function createSqliteCounters(database: Database, writer: Writer): Counters {
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

/** Takes from all windows; reverts if one of them is insufficient. */
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
