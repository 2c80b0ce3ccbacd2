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

interface Driver {
  readonly DatabaseSync: new (file: string) => Database;
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
