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
import type { Database, Statement } from './driver.ts';
import type { Writer } from './writer.ts';

/** How many expired reservations one transaction of the sweeper settles. */
const SWEEP_BATCH = 200;
/** How many rows of each kind are remembered. */
const MAX_REMEMBERED = 20_000;

type Row = ReturnType<Statement['get']>;
export type LedgerSql = ReturnType<typeof prepareLedger>;

interface Account {
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
  readonly #writer: Writer;
  readonly #calls: CallsTables;
  readonly #accounts = new Map<string, Account>();
  readonly #budgets = new Map<string, BudgetRow>();
  /** Held requests by {@link requestKey}. */
  readonly #held = new Map<string, OpenRequest>();
  /** Of accounts and budgets: what this transaction has not written yet. */
  readonly #unwritten = { accounts: new Map<string, Account>(), budgets: new Map<string, BudgetRow>() };
  #transaction = 0;
  #version: unknown;

  constructor(database: Database, writer: Writer, calls: CallsTables) {
    this.sql = prepareLedger(database);
    this.#writer = writer;
    this.#calls = calls;
    writer.onCommit(() => this.flush());
    writer.onRollback(() => this.#forget());
  }

  /** Writes what is to be written before a commit, and before a query of accounts or budgets. */
  flush(): void {
    const { accounts, budgets } = this.#unwritten;
    for (const [id, { name, sums, lastEntry }] of accounts) {
      const { balance, held, spent, credited, updatedAt } = sums;
      this.sql.putAccount.run(id, packName(name, id), balance, held, spent, credited, lastEntry, updatedAt);
    }
    for (const { id, spent, held, until = null } of budgets.values()) this.sql.putBudget.run(id, spent, held, until);
    accounts.clear();
    budgets.clear();
  }

  /** Reads the rows, and writes what the change makes of them. */
  apply<T>(keys: LedgerKeys, change: (rows: LedgerRows, now: number) => LedgerChange<T>): T {
    const now = Date.now();
    this.#forgetForeign();
    const readRequest = () => toRequest(this.sql.request.get(keys.account, keys.ref, keys.kind));
    const account = this.#readAccount(keys.account);
    const known = this.#held.get(requestKey(keys));
    // A reservation is almost always the first of its id: its hold is written on condition that it is.
    const isPresumedNew = keys.budgets !== undefined && !known;
    const request = isPresumedNew ? undefined : (known ?? readRequest());
    const ids = keys.budgets ?? (request && request.state !== 'ended' ? request.budgets : []);
    const rows = { account: account?.sums, budgets: ids.map((id) => this.#readBudget(id, now)) };
    let made = change({ ...rows, request }, now);
    if (!isPresumedNew) {
      if (made.request) this.#writeRequest(keys, request, made.request);
    } else if (made.request?.state !== 'held' || !this.#hold(keys, made.request))
      made = change({ ...rows, request: readRequest() }, now);
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

  /** Forgets what it remembers when another process has committed since the transaction before; the first in its own asks. */
  #forgetForeign(): void {
    if (this.#transaction === this.#writer.transaction) return;
    this.#transaction = this.#writer.transaction;
    const version = this.sql.version.get()?.['data_version'];
    if (version === this.#version) return;
    this.#forget();
    this.#version = version;
  }

  #forget(): void {
    const { accounts, budgets } = this.#unwritten;
    for (const rows of [this.#accounts, this.#budgets, this.#held, accounts, budgets]) rows.clear();
  }

  #readAccount(id: string): Account | undefined {
    const known = this.#accounts.get(id) ?? this.#unwritten.accounts.get(id);
    if (known) return known;
    const row = this.sql.account.get(id);
    return row && { name: readName(id, row['name']), sums: readBalance(row), lastEntry: Number(row['last_entry']) };
  }

  #readBudget(id: string, now: number): BudgetRow | undefined {
    const unwritten = this.#unwritten.budgets.get(id);
    if (unwritten) return unwritten;
    const known = this.#budgets.get(id);
    // One that is over may have been deleted meanwhile.
    if (known && (known.until === undefined || known.until > now)) return known;
    const row = this.sql.budget.get(id);
    if (!row) return undefined;
    const until = row['until'] == null ? undefined : Number(row['until']);
    return { id, spent: Number(row['spent']), held: Number(row['held']), until };
  }

  /** Writes a hold; false, and nothing is written, when the request is known already. */
  #hold(keys: LedgerKeys, hold: OpenRequest): boolean {
    const { amount, until, budgets, facts } = hold;
    const values = [amount, until, JSON.stringify(budgets), JSON.stringify(facts)] as const;
    if (!this.sql.hold.run(keys.account, keys.ref, ...values).changes) return false;
    remember(this.#held, requestKey(keys), hold);
    return true;
  }

  #writeRequest(keys: LedgerKeys, before: RequestRow | undefined, after: RequestRow): void {
    const { sql } = this;
    const { account, kind, ref } = keys;
    this.#held.delete(requestKey(keys));
    if (before?.state === 'held') sql.deleteHold.run(account, ref);
    if (before?.state === 'swept') sql.deleteSwept.run(ref, account);
    if (after.state === 'ended') sql.finish.run(ref, account, kind, after.until ?? null);
    if (after.state !== 'swept') return;
    const { amount, budgets, facts, sweptAt, until } = after;
    sql.sweep.run(ref, account, amount, JSON.stringify(budgets), JSON.stringify(facts), sweptAt, until);
  }

  #writeAccount(
    keys: LedgerKeys,
    made: LedgerChange<unknown>,
    sums: AccountBalance,
    before: Account | undefined,
  ): void {
    const { account, name, kind, ref } = keys;
    let lastEntry = before?.lastEntry ?? 0;
    if (made.entry) {
      const { amount, reason, at } = made.entry;
      lastEntry = Number(this.sql.addEntry.run(lastEntry, account, kind, ref, amount, reason, at).lastInsertRowid);
    }
    const row = { name: before?.name ?? name, sums, lastEntry };
    remember(this.#accounts, account, row);
    this.#unwritten.accounts.set(account, row);
  }
}

function remember<T>(rows: Map<string, T>, key: string, row: T): void {
  if (rows.size >= MAX_REMEMBERED) rows.clear();
  rows.set(key, row);
}

function toRequest(row: Row): RequestRow | undefined {
  // How long it is remembered does not matter to any change.
  if (row?.['amount'] == null) return row?.['finished'] == null ? undefined : { state: 'ended', until: undefined };
  return {
    state: row['swept_at'] == null ? 'held' : 'swept',
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

/** The name of an account whose key is not its name, as JSON: that has no NUL and no half of a surrogate pair. */
function packName(name: string, key: string): string | null {
  return name === key ? null : JSON.stringify(name);
}

/** The name of an account: what {@link packName} made, or its key. */
export function readName(key: string, packed: unknown): string {
  return typeof packed === 'string' ? (JSON.parse(packed) as string) : key;
}

/** The prepared statements of the ledger. */
function prepareLedger(database: Database) {
  return {
    /** Another number when another process has committed. */
    version: database.prepare('PRAGMA data_version'),
    account: database.prepare(
      'SELECT name, balance, held, spent, credited, updated_at, last_entry FROM accounts WHERE id = ?',
    ),
    budget: database.prepare('SELECT spent, held, until FROM budgets WHERE id = ?'),
    /** The request ?2 of kind ?3 of the account ?1. */
    request: database.prepare(`SELECT coalesce(h.amount, s.amount) AS amount, coalesce(h.budgets, s.budgets) AS budgets,
        coalesce(h.facts, s.facts) AS facts, coalesce(h.expires_at, s.until) AS until,
        CASE WHEN h.amount IS NULL THEN s.at END AS swept_at, f.kind AS finished
      FROM (SELECT 1) LEFT JOIN holds AS h ON h.account = ?1 AND h.ref = ?2 AND ?3 = 'charge'
      LEFT JOIN swept AS s ON s.ref = ?2 AND s.account = ?1 AND ?3 = 'charge'
      LEFT JOIN finished AS f ON f.ref = ?2 AND f.account = ?1 AND f.kind = ?3`),
    hold: database.prepare(`INSERT INTO holds (account, ref, amount, expires_at, budgets, facts) SELECT ?1, ?2, ?3, ?4, ?5, ?6
      WHERE NOT EXISTS (SELECT 1 FROM finished WHERE ref = ?2 AND account = ?1 AND kind = 'charge')
        AND NOT EXISTS (SELECT 1 FROM swept WHERE ref = ?2 AND account = ?1) ON CONFLICT DO NOTHING`),
    deleteHold: database.prepare('DELETE FROM holds WHERE account = ? AND ref = ?'),
    sweep: database.prepare(
      'INSERT INTO swept (ref, account, amount, budgets, facts, at, until) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    deleteSwept: database.prepare('DELETE FROM swept WHERE ref = ? AND account = ?'),
    finish: database.prepare(
      'INSERT INTO finished (ref, account, kind, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    putAccount: database.prepare(`INSERT INTO accounts
      (id, name, balance, held, spent, credited, last_entry, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET balance = excluded.balance, held = excluded.held, spent = excluded.spent,
      credited = excluded.credited, last_entry = excluded.last_entry, updated_at = excluded.updated_at`),
    putBudget: database.prepare(`INSERT INTO budgets (id, spent, held, until) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET spent = excluded.spent, held = excluded.held`),
    addEntry: database.prepare(
      'INSERT INTO entries (before, account, kind, ref, amount, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    expired:
      database.prepare(`SELECT h.account, h.ref, a.name FROM holds AS h LEFT JOIN accounts AS a ON a.id = h.account
      WHERE h.expires_at < ? LIMIT ?`),
    accounts: database.prepare(`SELECT id, name, balance, held, spent, credited, updated_at FROM accounts
      WHERE id > ? ORDER BY id LIMIT ?`),
    /** An account's newest entry. */
    newest: database.prepare('SELECT last_entry AS n FROM accounts WHERE id = ?'),
    /** The entry before a cursor. */
    older: database.prepare('SELECT before AS n FROM entries WHERE n = ? AND account = ?'),
    entries: database.prepare(`WITH RECURSIVE chain AS (
        SELECT * FROM entries WHERE n = ? UNION ALL SELECT e.* FROM chain JOIN entries AS e ON e.n = chain.before LIMIT ?)
      SELECT n, kind, ref, amount, reason, at FROM chain`),
  };
}
