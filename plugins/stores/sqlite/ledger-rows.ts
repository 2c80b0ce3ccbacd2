import type { AccountBalance } from '../../../core/index.ts';
import { readFacts } from '../kit/facts.ts';
import {
  type BudgetRow,
  type LedgerChange,
  type LedgerKeys,
  type LedgerRows,
  type OpenRequest,
  type RequestRow,
  requestKey,
} from '../kit/ledger.ts';
import { type CallsTables, writeCall } from './call-records.ts';
import type { Database, SqlValue, Statement } from './driver.ts';
import type { Writer } from './writer.ts';

/** How many expired reservations one transaction of the sweeper settles. */
const SWEEP_BATCH = 200;
/** How many rows of each kind are remembered. */
const MAX_REMEMBERED = 20_000;

type Row = ReturnType<Statement['get']>;
export type LedgerSql = ReturnType<typeof prepareLedger>;

interface Account {
  readonly id: string;
  readonly name: string;
  readonly sums: AccountBalance;
  readonly lastEntry: number;
}

/**
 * The rows of the ledger. What is in them is decided by `kit/ledger.ts`, inside a transaction of the {@link Writer}. Rows that this
 * process wrote are remembered until another process commits anything or a transaction is undone, so that few are read again; those
 * of accounts and budgets are written at the end of a transaction, once for all its changes.
 */
export class LedgerTables {
  readonly sql: LedgerSql;
  readonly #calls: CallsTables;
  readonly #accounts = new Map<string, Account>();
  readonly #budgets = new Map<string, BudgetRow>();
  /** Held requests by {@link requestKey}. */
  readonly #held = new Map<string, OpenRequest>();
  /** Of accounts and budgets: what this transaction has not written yet. */
  readonly #unwritten = { accounts: new Map<string, Account>(), budgets: new Map<string, BudgetRow>() };
  /** Whether this transaction has asked for commits of other processes. */
  #isCurrent = false;
  #version: unknown;

  constructor(database: Database, writer: Writer, calls: CallsTables) {
    this.sql = prepareLedger(database);
    this.#calls = calls;
    writer.onCommit(this.flush);
    writer.onRollback(() => this.#forget());
  }

  /** Writes what is to be written before a commit, and before a query of accounts or budgets. */
  readonly flush = (): void => {
    this.#isCurrent = false;
    const { accounts, budgets } = this.#unwritten;
    if (accounts.size + budgets.size === 0) return;
    const values: SqlValue[] = [];
    for (const { id, name, sums, lastEntry } of accounts.values()) {
      const { balance, held, spent, credited, updatedAt } = sums;
      // A name that is not its key is written as JSON: that has no NUL and no half of a surrogate pair.
      const packed = name === id ? null : JSON.stringify(name);
      values.push('account', id, balance, held, spent, credited, lastEntry, updatedAt, null, packed);
    }
    for (const { id, spent, held, until = null } of budgets.values())
      values.push('budget', id, 0, held, spent, 0, 0, 0, until, null);
    accounts.clear();
    budgets.clear();
    this.sql.putSums(values);
  };

  /** Reads the rows, and writes what the change makes of them. */
  apply<T>(keys: LedgerKeys, change: (rows: LedgerRows, now: number) => LedgerChange<T>): T {
    const now = Date.now();
    if (!this.#isCurrent) this.#forgetForeign();
    const requestId = requestKey(keys);
    const known = this.#held.get(requestId);
    // A reservation is almost always the first of its id: its hold is written on condition that it is.
    const isPresumedNew = keys.budgets !== undefined && !known;
    const request = isPresumedNew ? undefined : (known ?? this.#readRequest(keys));
    const account = this.#readAccount(keys.account);
    const budgets: (BudgetRow | undefined)[] = [];
    for (const id of keys.budgets ?? (request && request.state !== 'ended' ? request.budgets : []))
      budgets.push(this.#readBudget(id, now));
    const rows = { account: account?.sums, budgets, request };
    let made = change(rows, now);
    if (isPresumedNew && (made.request?.state !== 'held' || !this.#putRequest('addRequest', keys, made.request)))
      made = change({ ...rows, request: this.#readRequest(keys) }, now);
    else if (!isPresumedNew && made.request) this.#putRequest('putRequest', keys, made.request);
    if (made.request?.state === 'held') remember(this.#held, requestId, made.request);
    else if (made.request) this.#held.delete(requestId);
    if (made.account) this.#writeAccount(keys, made, made.account, account);
    for (const budget of made.budgets ?? []) {
      remember(this.#budgets, budget.id, budget);
      this.#unwritten.budgets.set(budget.id, budget);
    }
    if (made.record) writeCall(this.#calls, keys, made.record);
    return made.result;
  }

  findExpired(now: number): readonly LedgerKeys[] {
    return this.sql.expired.all(now, SWEEP_BATCH).map((row) => {
      const account = String(row['account']);
      return { account, name: readName(account, row['name']), kind: 'charge', ref: String(row['ref']) };
    });
  }

  /** Forgets what it remembers when another process has committed since the transaction before. */
  #forgetForeign(): void {
    this.#isCurrent = true;
    const version = this.sql.version.get()?.['data_version'];
    if (version === this.#version) return;
    this.#forget();
    this.#version = version;
    this.#isCurrent = true;
  }

  #forget(): void {
    this.#isCurrent = false;
    const { accounts, budgets } = this.#unwritten;
    for (const rows of [this.#accounts, this.#budgets, this.#held, accounts, budgets]) rows.clear();
  }

  #readAccount(id: string): Account | undefined {
    const known = this.#accounts.get(id) ?? this.#unwritten.accounts.get(id);
    if (known) return known;
    const row = this.sql.sums.get('account', id);
    return row && { id, name: readName(id, row['name']), sums: readBalance(row), lastEntry: Number(row['last_entry']) };
  }

  #readBudget(id: string, now: number): BudgetRow | undefined {
    const unwritten = this.#unwritten.budgets.get(id);
    if (unwritten) return unwritten;
    const known = this.#budgets.get(id);
    // One that is over may have been deleted meanwhile.
    if (known && (known.until === undefined || known.until > now)) return known;
    const row = this.sql.sums.get('budget', id);
    if (!row) return undefined;
    const until = row['until'] == null ? undefined : Number(row['until']);
    return { id, spent: Number(row['spent']), held: Number(row['held']), until };
  }

  #readRequest({ ref, account, kind }: LedgerKeys): RequestRow | undefined {
    const row = this.sql.request.get(ref, account, kind);
    if (!row) return undefined;
    const { state } = row;
    // How long it is remembered does not matter to any change.
    if (state !== 'held' && state !== 'swept') return { state: 'ended', until: undefined };
    return {
      state,
      amount: Number(row['amount']),
      budgets: JSON.parse(String(row['budgets'])) as readonly string[],
      // Only the sweeper and corrections ask for them.
      get facts() {
        return readFacts(row['facts']);
      },
      until: Number(row['until']),
      sweptAt: Number(row['swept_at'] ?? 0),
    };
  }

  /** Writes a request; false, and nothing is written, when one is added that is known already. */
  #putRequest(
    statement: 'addRequest' | 'putRequest',
    { ref, account, kind }: LedgerKeys,
    request: RequestRow,
  ): boolean {
    const { state, until = null } = request;
    const open =
      request.state === 'ended'
        ? NOT_OPEN
        : [request.amount, JSON.stringify(request.budgets), JSON.stringify(request.facts), request.sweptAt];
    return Boolean(this.sql[statement].run(ref, account, kind, state, until, ...open).changes);
  }

  #writeAccount(
    keys: LedgerKeys,
    made: LedgerChange<unknown>,
    sums: AccountBalance,
    before: Account | undefined,
  ): void {
    const { account: id, name, kind, ref } = keys;
    let lastEntry = before?.lastEntry ?? 0;
    if (made.entry) {
      const { amount, reason, at } = made.entry;
      lastEntry = Number(this.sql.addEntry.run(lastEntry, id, kind, ref, amount, reason, at).lastInsertRowid);
    }
    const row = { id, name: before?.name ?? name, sums, lastEntry };
    remember(this.#accounts, id, row);
    this.#unwritten.accounts.set(id, row);
  }
}

/** The columns of a request that has ended. */
const NOT_OPEN: readonly null[] = Object.freeze([null, null, null, null]);

function remember<T>(rows: Map<string, T>, key: string, row: T): void {
  if (rows.size >= MAX_REMEMBERED) rows.clear();
  rows.set(key, row);
}

/** The sums of an account; zeros without a row. */
export function readBalance(row: Row): AccountBalance {
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

/** The name of an account: as its row has it, or its key. */
export function readName(key: string, packed: unknown): string {
  return typeof packed === 'string' ? (JSON.parse(packed) as string) : key;
}

/** How many rows of accounts and budgets one statement writes. */
const SUMS_AT_ONCE = 8;
const SUMS_COLUMNS = [
  'kind',
  'id',
  'balance',
  'held',
  'spent',
  'credited',
  'last_entry',
  'updated_at',
  'until',
  'name',
];

/** Writes rows of accounts and budgets, given as the values of their columns one after the other. */
function preparePutSums(database: Database): (values: readonly SqlValue[]) => void {
  const [row, changed] = [SUMS_COLUMNS.map(() => '?').join(), SUMS_COLUMNS.slice(2, 8)];
  const known: Statement[] = [];
  const prepareRows = (count: number): Statement =>
    database.prepare(`INSERT INTO sums (${SUMS_COLUMNS.join()}) VALUES ${Array(count).fill(`(${row})`).join()}
      ON CONFLICT DO UPDATE SET ${changed.map((name) => `${name} = excluded.${name}`).join()}`);
  return (values) => {
    for (let from = 0; from < values.length; from += SUMS_AT_ONCE * SUMS_COLUMNS.length) {
      const some = values.slice(from, from + SUMS_AT_ONCE * SUMS_COLUMNS.length);
      const count = some.length / SUMS_COLUMNS.length;
      const statement = known[count] ?? prepareRows(count);
      known[count] = statement;
      statement.run(...some);
    }
  };
}

/** The prepared statements of the ledger. */
function prepareLedger(database: Database) {
  return {
    /** Another number when another process has committed. */
    version: database.prepare('PRAGMA data_version'),
    sums: database.prepare(`SELECT name, balance, held, spent, credited, updated_at, last_entry, until FROM sums
      WHERE kind = ? AND id = ?`),
    putSums: preparePutSums(database),
    request: database.prepare(`SELECT state, amount, budgets, facts, swept_at, until FROM requests
      WHERE ref = ? AND account = ? AND kind = ?`),
    addRequest:
      database.prepare(`INSERT INTO requests (ref, account, kind, state, until, amount, budgets, facts, swept_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`),
    putRequest:
      database.prepare(`INSERT INTO requests (ref, account, kind, state, until, amount, budgets, facts, swept_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, until = excluded.until,
      amount = excluded.amount, budgets = excluded.budgets, facts = excluded.facts, swept_at = excluded.swept_at`),
    addEntry: database.prepare(
      'INSERT INTO entries (before, account, kind, ref, amount, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    expired: database.prepare(`SELECT r.account, r.ref, s.name FROM requests AS r
      LEFT JOIN sums AS s ON s.kind = 'account' AND s.id = r.account WHERE r.state = 'held' AND r.until < ? LIMIT ?`),
    accounts: database.prepare(`SELECT id, name, balance, held, spent, credited, updated_at FROM sums
      WHERE kind = 'account' AND id > ? ORDER BY id LIMIT ?`),
    /** An account's newest entry. */
    newest: database.prepare("SELECT last_entry AS n FROM sums WHERE kind = 'account' AND id = ?"),
    /** The entry before a cursor. */
    older: database.prepare('SELECT before AS n FROM entries WHERE n = ? AND account = ?'),
    entries: database.prepare(`WITH RECURSIVE chain AS (
        SELECT * FROM entries WHERE n = ? UNION ALL SELECT e.* FROM chain JOIN entries AS e ON e.n = chain.before LIMIT ?)
      SELECT n, kind, ref, amount, reason, at FROM chain`),
  };
}
