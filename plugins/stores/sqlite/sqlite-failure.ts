import { storeUnavailable } from '../kit/failure.ts';

const BUSY = 'The sqlite store is busy: another process holds its lock.';

/** What SQLite's primary result codes mean for an operator. */
const REASON: Readonly<Record<number, string>> = Object.freeze({
  5: BUSY,
  6: BUSY,
  8: 'The sqlite store is read-only: check the rights of its folder.',
  11: 'The sqlite store is damaged: restore it from a backup.',
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

/** What SQLite said of which file, for the log and the terminal: its own messages name none. */
export class SqliteError extends Error {
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
