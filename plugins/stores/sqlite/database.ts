import { chmod, mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import { storeUnavailable } from '../kit/failure.ts';
import { migrate } from './schema.ts';

/** What of `node:sqlite` this store uses; `@photostructure/sqlite` has the same API for Node before 22.13. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
}

export interface DatabaseOptions {
  /** The folder of `tollgate.db`; made when it is missing, readable by its owner alone. */
  readonly folder: string;
  /** `full` waits for the disk at every commit: survives a power cut, about ten times slower. */
  readonly durability?: 'normal' | 'full';
}

export const FILE = 'tollgate.db';
const LOCK_FILE = 'tollgate.lock';

const UNUSABLE = 'The folder of the sqlite store cannot be written: check that it exists and belongs to this user.';

/** How long opening waits for other processes that open or migrate the same file. */
const OPEN_BUSY_MS = 5000;
/** How long a statement blocks this process for another one's lock; the writer tries again without blocking. */
const BUSY_MS = 5;

/** Opens and migrates the database file; throws `store_unavailable` when the folder or file cannot be used. */
export async function openDatabase({ folder, durability = 'normal' }: DatabaseOptions): Promise<Database> {
  const { DatabaseSync } = await importSqlite();
  const file = path.join(folder, FILE);
  await makeFolder(folder);
  await makeFile(file);
  try {
    const database = new DatabaseSync(file);
    database.exec(`PRAGMA busy_timeout=${OPEN_BUSY_MS}`);
    database.exec('PRAGMA journal_mode=WAL');
    database.exec(`PRAGMA synchronous=${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    migrate(database);
    database.exec(`PRAGMA busy_timeout=${BUSY_MS}`);
    return database;
  } catch (cause) {
    throw sqliteFailure(cause);
  }
}

/** Opens the file whose locks say who else has the store open; it stays empty, and never waits for a lock. */
export async function openLock(folder: string): Promise<Database> {
  const { DatabaseSync } = await importSqlite();
  const file = path.join(folder, LOCK_FILE);
  await makeFile(file);
  const lock = new DatabaseSync(file);
  lock.exec('PRAGMA busy_timeout=0');
  return lock;
}

/**
 * Takes the write-ahead log back into the file, and closes. The driver does not do the first by itself while prepared
 * statements wait for the garbage collector; while other processes read, the log stays, which is fine.
 */
export function closeDatabase(database: Database): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // A full disk or a busy neighbour: the log is taken back at the next start.
  }
  database.close();
}

async function importSqlite(): Promise<{ readonly DatabaseSync: new (file: string) => Database }> {
  const builtin: string = 'node:sqlite';
  const { emitWarning } = process;
  // Node prints an ExperimentalWarning on the terminal of everybody who starts the gateway; nobody there can act on it.
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (!String(warning).includes('SQLite')) emitWarning.call(process, warning, ...rest);
  };
  try {
    return await import(builtin);
  } catch {
    return (await import('@photostructure/sqlite')) as unknown as { DatabaseSync: new (file: string) => Database };
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (made !== undefined) await chmod(folder, 0o700);
  } catch (cause) {
    throw storeUnavailable(UNUSABLE, cause);
  }
}

/** Makes an empty file for its owner alone. One that is there is not even opened: closing it would drop this process's locks. */
async function makeFile(file: string): Promise<void> {
  try {
    const handle = await open(file, 'wx', 0o600);
    await handle.close();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw storeUnavailable(UNUSABLE, cause);
  }
}

/** SQLite's primary result codes that say more than "it failed". */
const REASON: Readonly<Record<number, string>> = Object.freeze({
  5: 'The sqlite store is busy: another process holds its lock.',
  6: 'The sqlite store is busy: another process holds its lock.',
  8: 'The sqlite store is read-only: check the rights of its folder.',
  11: 'The sqlite store is damaged: restore it from a backup.',
  13: 'The sqlite store cannot grow: the disk is full.',
  14: 'The sqlite store cannot be opened: check the rights of its folder.',
  26: 'The sqlite store is not a database: another program wrote its file.',
});

/** SQLite's primary result code of an error, or undefined when the error is not SQLite's. */
export function resultCode(thrown: unknown): number | undefined {
  const code = (thrown as { readonly errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** Whether another process held the lock: trying again may succeed. */
export function isBusy(thrown: unknown): boolean {
  const code = resultCode(thrown);
  return code === 5 || code === 6;
}

/** An error of SQLite as `store_unavailable`; anything else as it is, because then it is a fault of the program. */
export function sqliteFailure(thrown: unknown): unknown {
  const code = resultCode(thrown);
  if (code === undefined) return thrown;
  return storeUnavailable(REASON[code] ?? 'The sqlite store failed to read or write.', thrown);
}
