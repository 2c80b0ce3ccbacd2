import { storeUnavailable } from '../kit/failure.ts';
import type { Database } from './database.ts';
import type { Journal } from './journal.ts';
import { createFold } from './ledger-fold.ts';
import type { LedgerRecord } from './ledger-record.ts';
import type { LedgerTables } from './ledger-tables.ts';
import { MAX_QUEUED, TOO_MANY, type Writer } from './writer.ts';

/** Records that are in the journal and not in the tables yet. */
export interface Backlog {
  readonly records: readonly LedgerRecord[];
  /** Journals what was decided together; throws, and adds nothing, when it cannot be written. */
  add(records: readonly LedgerRecord[]): void;
  /** Writes everything to the tables, inside a write transaction; {@link Backlog.folded} takes the answer after the commit. */
  fold(): number;
  folded(last: number): void;
  /** Writes what a dead process left in the journal to the tables, inside a write transaction. */
  recover(): number;
  /** Begins with an empty journal, after the commit of {@link Backlog.recover}. */
  begin(recovered: number): void;
  /** Throws while the tables do not take what was decided: it must not become more without bound. */
  check(): void;
  /** Lets go of the journal. */
  end(): void;
}

/** How long a record may wait to be written to the tables. */
const FOLD_MS = 200;
/** How many records are written before that time, and how many at once: a pause of a few milliseconds. */
const MANY = 1024;
const MOST = 1536;

/** The number of the last record that is in the tables, written with it: no record is ever written twice. */
const FOLDED = 'tollgate:folded';

/** `settled` is told, after the commit, of every record that is in the tables. */
export function createBacklog(
  database: Database,
  writer: Writer,
  tables: LedgerTables,
  journal: Journal,
  settled: (record: LedgerRecord) => void,
): Backlog {
  const write = createFold(database, tables);
  const getFolded = database.prepare('SELECT value FROM numbers WHERE key = ?');
  const putFolded = database.prepare('INSERT OR REPLACE INTO numbers (key, value) VALUES (?, ?)');
  /** The first one has the number `inTables + 1`. */
  let records: LedgerRecord[] = [];
  let inTables = 0;
  let failure: unknown;
  let isFolding = false;
  let timer: NodeJS.Timeout | undefined;

  const readFolded = (): number => Number(getFolded.get(FOLDED)?.['value'] ?? 0);

  /** Writes those of the records that are not in the tables; answers the number of the last one that is. */
  const foldSome = (some: readonly LedgerRecord[], first: number, atMost = Number.POSITIVE_INFINITY): number => {
    const last = readFolded();
    const from = Math.max(0, last + 1 - first);
    const rest = some.slice(from, from + atMost);
    if (rest.length === 0) return last;
    write(rest);
    putFolded.run(FOLDED, last + rest.length);
    return last + rest.length;
  };

  const folded = (last: number): void => {
    const done = records.slice(0, last - inTables);
    records = records.slice(last - inTables);
    inTables = last;
    failure = undefined;
    for (const record of done) settled(record);
    if (done.length > 0 && records.length === 0) journal.clear();
  };

  const foldInBackground = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    if (isFolding || records.length === 0) return;
    isFolding = true;
    try {
      await writer.write(() => foldSome(records, inTables + 1, MOST), 'soon', folded);
    } catch (error) {
      failure = error;
    }
    isFolding = false;
    schedule();
  };

  const schedule = (): void => {
    if (records.length >= MANY && failure === undefined) void foldInBackground();
    else if (records.length > 0) timer ??= setTimeout(() => void foldInBackground(), FOLD_MS).unref();
  };

  return {
    get records() {
      return records;
    },
    add: (more) => {
      if (more.length === 0) return;
      journal.append({ first: inTables + records.length + 1, records: more });
      for (const record of more) records.push(record);
      schedule();
    },
    fold: () => foldSome(records, inTables + 1),
    folded,
    recover: () => {
      let last = readFolded();
      for (const { first, records: found } of journal.read()) {
        // A line that does not follow on the tables is of a past that was lost, as in a power cut.
        if (first > last + 1) break;
        last = foldSome(found, first);
      }
      return last;
    },
    begin: (recovered) => {
      records = [];
      inTables = recovered;
      journal.clear();
    },
    check: () => {
      if (failure !== undefined) throw failure;
      if (records.length >= MAX_QUEUED) throw storeUnavailable(TOO_MANY);
    },
    end: () => {
      clearTimeout(timer);
      timer = undefined;
      journal.close();
    },
  };
}
