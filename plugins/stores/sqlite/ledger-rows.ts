import type { AccountBalance, BudgetStart } from '../../../contract/index.ts';
import { packPlanned, readFacts } from '../kit/facts.ts';
import {
  type BudgetRow,
  type LedgerChange,
  type LedgerKeys,
  type LedgerRows,
  NEW_ACCOUNT,
  type OpenRequest,
  type RequestRow,
  requestKey,
} from '../kit/ledger.ts';
import type { Database, SqlValue, Statement } from './driver.ts';
import { HeldRequests } from './held-requests.ts';
import type { Journal } from './journal.ts';
import type { Writer } from './writer.ts';

/** Maximum number of expired reservations that one transaction of the sweeper settles. */
const SWEEP_BATCH = 200;
/** Maximum number of cached rows of each kind. */
const MAX_REMEMBERED = 20_000;

type Row = ReturnType<Statement['get']>;
export type LedgerSql = ReturnType<typeof prepareLedger>;

interface Account {
  readonly name: string;
  readonly sums: AccountBalance;
}

/** Amounts that this transaction adds to a row of sums. */
interface Addition {
  readonly kind: 'account' | 'budget';
  readonly id: string;
  readonly name: string | undefined;
  readonly until: number | undefined;
  balance: number;
  held: number;
  spent: number;
  credited: number;
  updatedAt: number;
}

/**
 * Rows of the ledger. `kit/ledger.ts` decides their content, inside a transaction of the {@link Writer}. Rows written
 * by this process are cached until another process commits or a transaction is rolled back. The additions of a
 * transaction to sums are written together at its end.
 */
export class LedgerTables {
  readonly sql: LedgerSql;
  #journal: Journal | undefined;
  #accounts = new Map<string, Account>();
  #budgets = new Map<string, BudgetRow>();
  /** Held requests of this process by {@link requestKey}. */
  readonly #held = new HeldRequests<OpenRequest>(MAX_REMEMBERED);
  /**
   * Unwritten additions of this transaction, by kind and id. Replaced instead of cleared, because a cleared Map retains
   * its memory.
   */
  #added = new Map<string, Addition>();
  /** This transaction has checked for commits of other processes. */
  #isCurrent = false;
  #version: unknown;

  constructor(database: Database, writer: Writer) {
    this.sql = prepareLedger(database);
    writer.onCommit(this.flush);
    writer.onRollback(() => {
      this.#added = new Map();
      this.#held.clear();
      this.forget();
      this.#isCurrent = false;
    });
  }

  /** Sets the journal for entries and records. */
  useJournal(journal: Journal): void {
    this.#journal = journal;
  }

  /** Number of requests that this process holds. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** Writes pending sums before a commit, and before a query of accounts or budgets. */
  readonly flush = (): void => {
    this.#isCurrent = false;
    if (this.#added.size === 0) return;
    const values: SqlValue[] = [];
    for (const { kind, id, name, balance, held, spent, credited, updatedAt, until } of this.#added.values()) {
      // A name other than its key is stored as JSON, which has no NUL and no lone surrogate.
      const packed = name === undefined || name === id ? null : JSON.stringify(name);
      values.push(kind, id, balance, held, spent, credited, updatedAt, until ?? null, packed);
    }
    this.#added = new Map();
    for (let from = 0; from < values.length; from += SUMS_AT_ONCE * SUMS_COLUMNS) {
      const some = values.slice(from, from + SUMS_AT_ONCE * SUMS_COLUMNS);
      this.sql.addSums[some.length / SUMS_COLUMNS - 1]?.run(...some);
    }
  };

  /** Reads the rows, and writes the result of the change. */
  apply<T>(keys: LedgerKeys, change: (rows: LedgerRows, now: number) => LedgerChange<T>): T {
    const now = Date.now();
    const id = requestKey(keys);
    const held = this.#held.get(id);
    if (held && keys.budgets === undefined) {
      // The end of a hold only adds to sums, so concurrent changes by other processes do not matter, except the
      // beginning of a budget. The first budget of a request is that of its key, which has no beginning.
      if (held.budgets.length > 1) this.#checkCommits();
      const rows = this.#readRows(keys, held, now);
      const made = change(rows, now);
      if (made.request && this.#putRequest('endHold', keys, made.request)) return this.#write(keys, id, rows, made);
      // Another process has ended or swept it.
      this.#held.delete(id);
    }
    this.#checkCommits();
    // A reservation is almost always the first of its id, so the hold is inserted on that condition, without a read.
    if (keys.budgets && !held) {
      const rows = this.#readRows(keys, undefined, now);
      const made = change(rows, now);
      if (made.request?.state === 'held' && this.#putRequest('addHold', keys, made.request))
        return this.#write(keys, id, rows, made);
    }
    const rows = this.#readRows(keys, this.#readRequest(keys), now);
    const made = change(rows, now);
    if (made.request) this.#putRequest('putHold', keys, made.request);
    return this.#write(keys, id, rows, made);
  }

  /** Drops cached rows if other processes have committed. Once a transaction. */
  #checkCommits(): void {
    if (this.#isCurrent) return;
    const version = this.sql.version.get()?.['data_version'];
    if (version !== this.#version) {
      this.forget();
      this.#journal?.checkRenames();
    }
    this.#version = version;
    this.#isCurrent = true;
  }

  #readRows(keys: LedgerKeys, request: RequestRow | undefined, now: number): LedgerRows {
    const budgets: (BudgetRow | undefined)[] = [];
    for (const id of keys.budgets ?? (request && request.state !== 'ended' ? request.budgets : [])) {
      const known = this.#budgets.get(id);
      // An expired budget may have been deleted meanwhile.
      const isThere = known && (known.until === undefined || known.until > now);
      budgets.push(isThere ? known : this.#readBudget(id));
    }
    const account = this.#accounts.get(keys.account) ?? this.#readAccount(keys.account);
    return { account: account?.sums, budgets, request };
  }

  /** Writes the result of a change, except the request. */
  #write<T>(keys: LedgerKeys, id: string, before: LedgerRows, made: LedgerChange<T>): T {
    const { request, account, budgets = [], entry, record } = made;
    if (request?.state === 'held') this.#held.set(id, request);
    else if (request) this.#held.delete(id);
    if (account) {
      const name = this.#accounts.get(keys.account)?.name ?? keys.name;
      const added = this.#addTo('account', keys.account, name, undefined);
      const { balance, held, spent, credited } = before.account ?? NEW_ACCOUNT;
      added.balance += account.balance - balance;
      added.held += account.held - held;
      added.spent += account.spent - spent;
      added.credited += account.credited - credited;
      added.updatedAt = account.updatedAt;
      this.#accounts = remember(this.#accounts, keys.account, { name, sums: account });
    }
    for (const budget of budgets) {
      const added = this.#addTo('budget', budget.id, undefined, budget.until);
      added.held += budget.held;
      added.spent += budget.spent;
      let start: BudgetStart | undefined;
      for (const row of before.budgets) {
        if (row?.id !== budget.id) continue;
        added.held -= row.held;
        added.spent -= row.spent;
        start = row.start;
      }
      if (budget.start !== start) {
        this.flush();
        this.#isCurrent = true;
        this.sql.putStart.run(JSON.stringify(budget.start), budget.id);
      }
      this.#budgets = remember(this.#budgets, budget.id, budget);
    }
    this.#journal?.add(keys, entry, record);
    return made.result;
  }

  #addTo(kind: Addition['kind'], id: string, name: string | undefined, until: number | undefined): Addition {
    const key = `${kind} ${id}`;
    const known = this.#added.get(key);
    if (known) return known;
    // One literal: keys after a spread would turn each row into a hash table.
    const added = { kind, id, name, until, balance: 0, held: 0, spent: 0, credited: 0, updatedAt: 0 };
    this.#added.set(key, added);
    return added;
  }

  findExpired(now: number): readonly LedgerKeys[] {
    return this.sql.expired.all(now, SWEEP_BATCH).map((row) => {
      const account = String(row['account']);
      return { account, name: readName(account, row['name']), kind: 'charge', ref: String(row['ref']) };
    });
  }

  /** Drops cached rows. */
  forget(): void {
    this.#accounts = new Map();
    this.#budgets = new Map();
  }

  #readAccount(id: string): Account | undefined {
    this.flush();
    const row = this.sql.sums.get('account', id);
    if (!row) return undefined;
    const account = { name: readName(id, row['name']), sums: readBalance(row) };
    this.#accounts = remember(this.#accounts, id, account);
    return account;
  }

  #readBudget(id: string): BudgetRow | undefined {
    this.flush();
    const row = this.sql.sums.get('budget', id);
    if (!row) return undefined;
    const until = row['until'] == null ? undefined : Number(row['until']);
    return {
      id,
      spent: Number(row['spent']),
      held: Number(row['held']),
      until,
      start: readBudgetStart(row['name']),
      lease: undefined,
    };
  }

  #readRequest({ ref, account, kind }: LedgerKeys): RequestRow | undefined {
    const row = kind === 'charge' ? this.sql.hold.get(ref, account) : undefined;
    if (row) return readHold(row);
    // No change depends on its expiry.
    return this.sql.ended.get(ref, account, kind) ? { state: 'ended', until: undefined } : undefined;
  }

  /** Writes a request; false if it is not in the state that the statement requires. */
  #putRequest(
    statement: 'addHold' | 'endHold' | 'putHold',
    { ref, account, kind }: LedgerKeys,
    request: RequestRow,
  ): boolean {
    const { state, until = null } = request;
    if (kind === 'credit') return Boolean(this.sql.putEnded.run(ref, account, kind, until).changes);
    return Boolean(this.sql[statement].run(ref, account, state, until, ...openColumns(request)).changes);
  }
}

/** Columns of a hold after its state and its expiry. */
export function openColumns(request: RequestRow): readonly SqlValue[] {
  if (request.state === 'ended') return NOT_OPEN;
  const { amount, budgets, facts, sweptAt, countedAt } = request;
  return [amount, JSON.stringify(budgets), packPlanned(facts), sweptAt, countedAt];
}

/** Columns of an ended request. */
const NOT_OPEN: readonly null[] = Object.freeze([null, null, null, null, null]);

/** Reads a row of the table `holds`. */
export function readHold(row: NonNullable<Row>): RequestRow {
  const { state } = row;
  if (state !== 'held' && state !== 'swept') return { state: 'ended', until: Number(row['until']) };
  return {
    state,
    amount: Number(row['amount']),
    budgets: JSON.parse(String(row['budgets'])) as readonly string[],
    // Lazy: only the sweeper and corrections read them.
    get facts() {
      return readFacts(row['facts']);
    },
    until: Number(row['until']),
    sweptAt: Number(row['swept_at'] ?? 0),
    countedAt: Number(row['counted_at'] ?? 0),
  };
}

/** Adds a row to a cache; returns the cache, or a new one if there were too many rows. */
function remember<T>(rows: Map<string, T>, key: string, row: T): Map<string, T> {
  const kept = rows.size >= MAX_REMEMBERED ? new Map<string, T>() : rows;
  return kept.set(key, row);
}

/** Reads the sums of an account; zeros without a row. */
export function readBalance(row: Row): AccountBalance {
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

/** Reads the name of an account from its row; its key by default. */
export function readName(key: string, packed: unknown): string {
  return typeof packed === 'string' ? (JSON.parse(packed) as string) : key;
}

/** Reads the beginning of a budget from its row, which has it as JSON in the column `name`; undefined without one. */
export function readBudgetStart(packed: unknown): BudgetStart | undefined {
  return typeof packed === 'string' ? (JSON.parse(packed) as BudgetStart) : undefined;
}

/** Maximum number of rows of sums in one statement. */
const SUMS_AT_ONCE = 8;
const SUMS_COLUMNS = 9;

/**
 * Prepares statements that add to rows of sums, one for each number of rows. Their values are the columns of all rows
 * in order.
 */
function prepareAddSums(database: Database): readonly Statement[] {
  return Array.from({ length: SUMS_AT_ONCE }, (_, at) =>
    database.prepare(`INSERT INTO sums (kind, id, balance, held, spent, credited, updated_at, until, name, last_entry)
      VALUES ${Array(at + 1)
        .fill('(?, ?, ?, ?, ?, ?, ?, ?, ?, 0)')
        .join()}
      ON CONFLICT DO UPDATE SET balance = balance + excluded.balance, held = held + excluded.held,
      spent = spent + excluded.spent, credited = credited + excluded.credited,
      updated_at = max(updated_at, excluded.updated_at)`),
  );
}

/** Prepared statements of the ledger. */
function prepareLedger(database: Database) {
  return {
    /** Changes after each commit of another process. */
    version: database.prepare('PRAGMA data_version'),
    sums: database.prepare(`SELECT name, balance, held, spent, credited, updated_at, until FROM sums
      WHERE kind = ? AND id = ?`),
    addSums: prepareAddSums(database),
    putStart: database.prepare("UPDATE sums SET name = ? WHERE kind = 'budget' AND id = ?"),
    hold: database.prepare(`SELECT state, amount, budgets, facts, swept_at, counted_at, until FROM holds
      WHERE ref = ? AND account = ?`),
    ended: database.prepare('SELECT 1 AS known FROM ended WHERE ref = ? AND account = ? AND kind = ?'),
    addHold:
      database.prepare(`INSERT INTO holds (ref, account, state, until, amount, budgets, facts, swept_at, counted_at)
      SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
      WHERE NOT EXISTS (SELECT 1 FROM ended WHERE ref = ?1 AND account = ?2 AND kind = 'charge') ON CONFLICT DO NOTHING`),
    putHold:
      database.prepare(`INSERT INTO holds (ref, account, state, until, amount, budgets, facts, swept_at, counted_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, until = excluded.until,
      amount = excluded.amount, budgets = excluded.budgets, facts = excluded.facts, swept_at = excluded.swept_at,
      counted_at = excluded.counted_at`),
    endHold:
      database.prepare(`UPDATE holds SET state = ?3, until = ?4, amount = ?5, budgets = ?6, facts = ?7, swept_at = ?8,
      counted_at = ?9 WHERE ref = ?1 AND account = ?2 AND state = 'held'`),
    putEnded: database.prepare(`INSERT INTO ended (ref, account, kind, until) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET until = excluded.until`),
    expired: database.prepare(`SELECT h.account, h.ref, s.name FROM holds AS h
      LEFT JOIN sums AS s ON s.kind = 'account' AND s.id = h.account WHERE h.state = 'held' AND h.until < ? LIMIT ?`),
    accounts: database.prepare(`SELECT id, name, balance, held, spent, credited, updated_at FROM sums
      WHERE kind = 'account' AND id > ? ORDER BY id LIMIT ?`),
    /** Newest entry of an account. */
    newest: database.prepare("SELECT last_entry AS n FROM sums WHERE kind = 'account' AND id = ?"),
    /** Entry before a cursor. */
    older: database.prepare('SELECT before AS n FROM entries WHERE n = ? AND account = ?'),
    entries: database.prepare(`WITH RECURSIVE chain AS (
        SELECT * FROM entries WHERE n = ? UNION ALL SELECT e.* FROM chain JOIN entries AS e ON e.n = chain.before LIMIT ?)
      SELECT n, kind, ref, amount, reason, at FROM chain`),
  };
}
