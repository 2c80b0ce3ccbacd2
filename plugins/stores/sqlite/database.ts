import { chmod, mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import { storeUnavailable } from '../kit/failure.ts';
import { type Database, importDriver, sqliteFailure } from './driver.ts';
import { migrate } from './schema.ts';

export interface DatabaseOptions {
  /** The folder of `tollgate.db`; made when it is missing, readable by its owner alone. */
  readonly folder: string;
  /** `full` waits for the disk at every commit: it survives a power cut, and is several times slower. */
  readonly durability?: 'normal' | 'full';
}

export const FILE = 'tollgate.db';

const UNUSABLE = 'The folder of the sqlite store cannot be written: check that it exists and belongs to this user.';

/** How long opening waits for other processes that open or migrate the same file. */
const OPEN_BUSY_MS = 5000;
/** How long a statement blocks this process for another one's lock; the writer tries again without blocking. */
const BUSY_MS = 5;

/**
 * Opens the database file and brings it to this version's schema. Rejects with `store_unavailable` when the folder or
 * the file cannot be used, or when another version of the gateway made the file.
 */
export async function openDatabase({ folder, durability = 'normal' }: DatabaseOptions): Promise<Database> {
  const { DatabaseSync } = await importDriver();
  const file = path.join(folder, FILE);
  await makeFolder(folder);
  await makeFile(file);
  let database: Database | undefined;
  try {
    database = new DatabaseSync(file);
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
 * Copies the write-ahead log into the file, and closes. The driver does not do the first by itself while prepared
 * statements wait for the garbage collector; while other processes read, the log stays, which does no harm.
 */
export function closeDatabase(database: Database): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // The disk is full or another process is busy: the log is copied at the next start.
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
 * Makes an empty file for its owner alone. A file that exists is not even opened: closing any descriptor of it would drop
 * all locks that SQLite holds on it in this process.
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
