import { storeUnavailable } from '../kit/failure.ts';

/** What of `node:sqlite` this store uses; `@photostructure/sqlite` has the same API for Node before 22.13. */
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

/** Loads Node's own SQLite, or the package where Node has none. */
export async function importDriver(): Promise<Driver> {
  const builtin: string = 'node:sqlite';
  const { emitWarning } = process;
  // Node prints an ExperimentalWarning on the terminal of everybody who starts the gateway; nobody there can act on it.
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

/** What SQLite's primary result codes mean for an operator. */
const REASON: Readonly<Record<number, string>> = Object.freeze({
  5: BUSY,
  6: BUSY,
  8: 'The sqlite store is read-only: check the rights of its folder.',
  11: 'The sqlite store is damaged. Restore it from a backup.',
  13: 'The sqlite store cannot grow: the disk is full.',
  14: 'The sqlite store cannot be opened: check the rights of its folder.',
  26: 'The sqlite store is not a database: another program wrote its file.',
});

/** SQLite's primary result code of an error; undefined when the error is not SQLite's. */
function resultCode(thrown: unknown): number | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('errcode' in thrown)) return undefined;
  return typeof thrown.errcode === 'number' ? thrown.errcode & 0xff : undefined;
}

/** Whether another process held the lock, so that trying again may succeed. */
export function isBusy(thrown: unknown): boolean {
  const code = resultCode(thrown);
  return code === 5 || code === 6;
}

/** Whether a failure says that the file is damaged, or is none of SQLite's: only its operator can mend it. */
export function isDamage(failure: unknown): boolean {
  const { cause } = (failure ?? {}) as { readonly cause?: unknown };
  return cause instanceof SqliteError && (cause.code === 'SQLITE_11' || cause.code === 'SQLITE_26');
}

/** What SQLite said of which file, for the log and the terminal: its own messages name none. */
class SqliteError extends Error {
  override readonly name = 'SqliteError';
  /** `SQLITE_` and the result code, as `SQLITE_14`. */
  readonly code: string;
  constructor(file: string, code: number, thrown: unknown) {
    super(`${file}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, { cause: thrown });
    this.code = `SQLITE_${code}`;
  }
}

/**
 * An error of SQLite as `store_unavailable`, with the file in its cause; any other error as it is, because then the program is
 * wrong.
 */
export function sqliteFailure(thrown: unknown, file: string): unknown {
  const code = resultCode(thrown);
  if (code === undefined) return thrown;
  const reason = REASON[code] ?? 'The sqlite store failed to read or write.';
  return storeUnavailable(reason, new SqliteError(file, code, thrown));
}
