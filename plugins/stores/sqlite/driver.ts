import { storeUnavailable } from '../kit/failure.ts';

/** Part of `node:sqlite` that this store uses. `@photostructure/sqlite` has the same API for Node before 22.13. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export type SqlValue = string | number | null;
type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
}

interface Driver {
  readonly DatabaseSync: new (file: string, options?: { readonly readOnly?: boolean }) => Database;
}

/** Loads Node's SQLite, or the package if Node has none. */
export async function importDriver(): Promise<Driver> {
  const builtin: string = 'node:sqlite';
  const { emitWarning } = process;
  // Node prints an ExperimentalWarning on every start, and users of the gateway cannot act on it.
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (!String(warning).includes('SQLite')) emitWarning.call(process, warning, ...rest);
  };
  try {
    return await import(builtin);
  } catch {
    return await import('@photostructure/sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}

const BUSY = 'The sqlite store is busy: another process holds its lock.';

/** Messages for operators by primary result code of SQLite. */
const REASON: Readonly<Record<number, string>> = Object.freeze({
  5: BUSY,
  6: BUSY,
  8: 'The sqlite store is read-only: check the rights of its folder.',
  11: 'The sqlite store is damaged. Restore it from a backup.',
  13: 'The sqlite store cannot grow: the disk is full.',
  14: 'The sqlite store cannot be opened: check the rights of its folder.',
  26: 'The sqlite store is not a database: another program wrote its file.',
});

/** Returns SQLite's primary result code of an error; undefined for other errors. */
function resultCode(thrown: unknown): number | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('errcode' in thrown)) return undefined;
  return typeof thrown.errcode === 'number' ? thrown.errcode & 0xff : undefined;
}

/** Detects that another process holds the lock, so a retry may succeed. */
export function isBusy(thrown: unknown): boolean {
  const code = resultCode(thrown);
  return code === 5 || code === 6;
}

/** Detects a damaged file, or a file that is not of SQLite. Only the operator can repair it. */
export function isDamage(failure: unknown): boolean {
  const { cause } = (failure ?? {}) as { readonly cause?: unknown };
  return cause instanceof SqliteError && (cause.code === 'SQLITE_11' || cause.code === 'SQLITE_26');
}

/** SQLite error with the file, for the log and the terminal. SQLite's own messages do not name the file. */
class SqliteError extends Error {
  override readonly name = 'SqliteError';
  /** `SQLITE_` and the result code, such as `SQLITE_14`. */
  readonly code: string;
  constructor(file: string, code: number, thrown: unknown) {
    super(`${file}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, { cause: thrown });
    this.code = `SQLITE_${code}`;
  }
}

/**
 * Converts an SQLite error to `store_unavailable`, with the file in its cause. Other errors stay unchanged, because
 * they are bugs.
 */
export function sqliteFailure(thrown: unknown, file: string): unknown {
  const code = resultCode(thrown);
  if (code === undefined) return thrown;
  const reason = REASON[code] ?? 'The sqlite store failed to read or write.';
  return storeUnavailable(reason, new SqliteError(file, code, thrown));
}
