import type { Reservation, ReserveOutcome, Settlement } from '../../../core/index.ts';
import { checkReservation, checkSettlement } from '../kit/check.ts';
import { storeUnavailable } from '../kit/failure.ts';
import { storeKey } from '../kit/key.ts';
import { type Database, sqliteFailure } from './database.ts';
import type { Journal } from './journal.ts';
import { createBacklog } from './ledger-backlog.ts';
import { createLedgerMemory } from './ledger-memory.ts';
import { chargeRecord, holdRecord, type LedgerRecord } from './ledger-record.ts';
import type { LedgerTables } from './ledger-tables.ts';
import type { Resident } from './presence.ts';
import { LATER_MS, MAX_QUEUED, TOO_MANY, type Writer } from './writer.ts';

/** The ledger of a process that is alone with the store. */
export interface LedgerAlone extends Resident {
  /** Operations answer once the journal has them. `elsewhere` does it again, for when the store is shared by then. */
  reserve(reservation: Reservation, elsewhere: () => Promise<ReserveOutcome>): Promise<ReserveOutcome>;
  settle(settlement: Settlement, elsewhere: () => Promise<boolean>): Promise<boolean>;
  release(account: string, requestId: string, elsewhere: () => Promise<boolean>): Promise<boolean>;
  /** Runs a query on tables that hold everything decided so far. */
  read<T>(query: () => T): Promise<T>;
  /** Runs a change of such tables. */
  change<T>(change: () => T): Promise<T>;
  /** Throws when what was decided does not come to be in the tables. */
  check(): void;
}

interface Decision<T> {
  readonly answer: T;
  /** What there is to write down. */
  readonly record: LedgerRecord | undefined;
}

interface Job {
  readonly decide: () => Decision<unknown>;
  readonly elsewhere: () => Promise<never>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** How many accounts are known before all of them are forgotten. */
const MAX_ACCOUNTS = 10_000;

/**
 * Decides in memory, and answers after one line in the {@link Journal} for all decisions of a turn of the event loop. The
 * tables follow in the background, many calls at once; before anybody reads or changes them otherwise; and before the
 * store is shared. What a process that died left in its journal, the next one writes to the tables before it begins.
 */
export function createLedgerAlone(
  database: Database,
  writer: Writer,
  tables: LedgerTables,
  journal: Journal,
): LedgerAlone {
  const memory = createLedgerMemory(tables);
  const backlog = createBacklog(database, writer, tables, journal, memory.settled);
  let queue: Job[] = [];
  /** Whether the memory may hold decisions that came to nothing. */
  let isDoubtful = false;
  let soon: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;

  /** Makes the memory what the tables and the journal say. */
  const remember = (): void => {
    memory.forget();
    for (const record of backlog.records) memory.apply(record);
    isDoubtful = false;
  };

  /** Decides one job and adds its record; answers what tells its caller. */
  const decide = ({ decide: make, resolve, reject }: Job, records: LedgerRecord[]): (() => void) => {
    try {
      const { answer, record } = make();
      if (record) {
        memory.apply(record);
        records.push(record);
      }
      return () => resolve(answer as never);
    } catch (error) {
      isDoubtful = true;
      return () => reject(sqliteFailure(error));
    }
  };

  const flush = (): void => {
    clearImmediate(soon);
    soon = undefined;
    if (queue.length === 0) return;
    const jobs = queue;
    queue = [];
    try {
      if (isDoubtful || (memory.size() > MAX_ACCOUNTS && backlog.records.length === 0)) remember();
      const records: LedgerRecord[] = [];
      const decided = jobs.map((job) => decide(job, records));
      backlog.add(records);
      for (const tell of decided) tell();
    } catch (error) {
      isDoubtful = true;
      for (const { reject } of jobs) reject(sqliteFailure(error));
    }
  };

  const flushLate = (): void => {
    later = undefined;
    flush();
  };

  const add = <T>(make: () => Decision<T>, when: 'soon' | 'later', elsewhere: () => Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (queue.length >= MAX_QUEUED) return reject(storeUnavailable(TOO_MANY));
      queue.push({ decide: make, elsewhere: elsewhere as () => Promise<never>, resolve, reject });
      if (when === 'soon') soon ??= setImmediate(flush);
      else later ??= setTimeout(flushLate, LATER_MS);
    });

  const decideReservation = (reservation: Reservation): Decision<ReserveOutcome> => {
    checkReservation(reservation);
    backlog.check();
    const hold = holdRecord(reservation);
    const answer = memory.judge(hold, reservation.floor, reservation.purse?.limit ?? 0);
    return { answer, record: answer === 'held' ? hold : undefined };
  };

  const decideEnd = (account: string, ref: string, record: () => LedgerRecord): Decision<boolean> => {
    const isHeld = memory.isHeld(account, ref);
    return { answer: isHeld, record: isHeld ? record() : undefined };
  };

  const decideSettlement = (settlement: Settlement): Decision<boolean> => {
    checkSettlement(settlement);
    const [account, ref] = [storeKey(settlement.account), storeKey(settlement.requestId)];
    return decideEnd(account, ref, () => chargeRecord(account, ref, settlement));
  };

  const decideRelease = (accountId: string, requestId: string): Decision<boolean> => {
    const [account, ref] = [storeKey(accountId), storeKey(requestId)];
    return decideEnd(account, ref, () => ({ do: 'release', account, ref }));
  };

  /** Does something in the transaction that writes everything decided so far to the tables. */
  const runOnTables = async <T>(operation: () => T, committed?: () => void): Promise<T> => {
    flush();
    const foldAndRun = () => ({ last: backlog.fold(), answer: operation() });
    const { answer } = await writer.write(foldAndRun, 'soon', ({ last }) => {
      backlog.folded(last);
      committed?.();
    });
    return answer;
  };

  return {
    reserve: (reservation, elsewhere) => add(() => decideReservation(reservation), 'soon', elsewhere),
    settle: (settlement, elsewhere) => add(() => decideSettlement(settlement), 'later', elsewhere),
    release: (account, requestId, elsewhere) => add(() => decideRelease(account, requestId), 'later', elsewhere),
    read: (query) => {
      flush();
      return backlog.records.length === 0 ? writer.readLatest(query) : runOnTables(query);
    },
    change: (change) => runOnTables(change, memory.forget),
    check: () => {
      backlog.check();
      if (journal.isLost()) throw storeUnavailable('The journal of the sqlite store was removed: restart the gateway.');
    },
    flush,
    moveIn: (isAlone) => {
      const recovered = backlog.recover();
      return () => {
        if (!isAlone) return backlog.end();
        backlog.begin(recovered);
        memory.begin();
      };
    },
    moveOut: () => {
      const last = backlog.fold();
      return () => {
        backlog.folded(last);
        backlog.end();
        memory.forget();
        clearTimeout(later);
        later = undefined;
        for (const { elsewhere, resolve, reject } of queue.splice(0)) elsewhere().then(resolve, reject);
      };
    },
  };
}
