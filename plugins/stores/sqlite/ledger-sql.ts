import type { Database, Statement } from './driver.ts';

export type LedgerSql = ReturnType<typeof prepareLedger>;

/**
 * The prepared statements of the ledger. Conditions are in the SQL: `changes` says whether a row met them. What is for a list of
 * budgets has a statement for each length of it: one of many rows costs half as much as many of one.
 */
export function prepareLedger(database: Database) {
  return {
    hold: database.prepare(`INSERT INTO holds (account, ref, amount, expires_at, budgets, facts) SELECT ?1, ?2, ?3, ?4, ?5, ?6
      WHERE NOT EXISTS (SELECT 1 FROM finished WHERE ref = ?2 AND account = ?1 AND kind = 'charge') ON CONFLICT DO NOTHING`),
    holdOnAny: database.prepare(`INSERT INTO accounts (id, name, balance, held, spent, credited, last_entry, updated_at)
      VALUES (?, ?, 0, ?, 0, 0, 0, 0)
      ON CONFLICT DO UPDATE SET held = held + excluded.held WHERE balance - held - excluded.held >= ?`),
    holdOnKnown: database.prepare('UPDATE accounts SET held = held + ? WHERE id = ? AND balance - held - ? >= ?'),
    /** What of each budget is spent and held, in one row: null for one without a row. */
    usedOf: byCount((count) =>
      database.prepare(
        `SELECT ${repeat(count, (at) => `(SELECT spent + held FROM budgets WHERE id = ?) AS used${at}`)}`,
      ),
    ),
    holdInBudgets: byCount((count) =>
      database.prepare(`INSERT INTO budgets (held, id, until, spent) VALUES ${repeat(count, () => '(?1, ?, ?, 0)')}
        ON CONFLICT DO UPDATE SET held = held + excluded.held`),
    ),
    deleteHold: database.prepare('DELETE FROM holds WHERE account = ? AND ref = ?'),
    endHold: database.prepare('DELETE FROM holds WHERE account = ? AND ref = ? RETURNING amount, budgets, expires_at'),
    releaseAccount: database.prepare('UPDATE accounts SET held = held - ? WHERE id = ?'),
    charge: database.prepare(`UPDATE accounts SET held = held - ?1, balance = balance - ?2, spent = spent + ?2,
      last_entry = ?3, updated_at = ?4 WHERE id = ?5`),
    chargeBudgets: byCount((count) =>
      database.prepare(
        `UPDATE budgets SET held = held - ?, spent = spent + ? WHERE id IN (${repeat(count, () => '?')})`,
      ),
    ),
    credit: database.prepare(`INSERT INTO accounts (id, name, balance, held, spent, credited, last_entry, updated_at)
      VALUES (?, ?, ?, 0, 0, ?, ?, ?) ON CONFLICT DO UPDATE SET balance = balance + excluded.balance,
      credited = credited + excluded.credited, last_entry = excluded.last_entry, updated_at = excluded.updated_at`),
    addEntry: database.prepare(`INSERT INTO entries (before, account, kind, ref, amount, reason, at)
      VALUES (coalesce((SELECT last_entry FROM accounts WHERE id = ?1), 0), ?1, ?2, ?3, ?4, ?5, ?6)`),
    sweep: database.prepare(`INSERT INTO swept (ref, account, amount, budgets, facts, at, until)
      SELECT ref, account, amount, budgets, facts, ?, ? FROM holds WHERE account = ? AND ref = ?`),
    endSwept: database.prepare('DELETE FROM swept WHERE ref = ? AND account = ? RETURNING amount, budgets, facts, at'),
    correct: database.prepare(`UPDATE accounts SET balance = balance + ?1, spent = spent - ?1, last_entry = ?2,
      updated_at = ?3 WHERE id = ?4`),
    finish: database.prepare(
      'INSERT INTO finished (ref, account, kind, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    expired: database.prepare('SELECT account, ref, facts FROM holds WHERE expires_at < ? LIMIT ?'),
    balance: database.prepare('SELECT balance, held, spent, credited, updated_at FROM accounts WHERE id = ?'),
    accountName: database.prepare('SELECT name FROM accounts WHERE id = ?'),
    accounts: database.prepare(`SELECT id, name, balance, held, spent, credited, updated_at FROM accounts
      WHERE id > ? ORDER BY id LIMIT ?`),
    budget: database.prepare('SELECT spent, held FROM budgets WHERE id = ?'),
    /** An account's newest entry. */
    newest: database.prepare('SELECT last_entry AS n FROM accounts WHERE id = ?'),
    /** The entry before a cursor. */
    older: database.prepare('SELECT before AS n FROM entries WHERE n = ? AND account = ?'),
    entries: database.prepare(`WITH RECURSIVE chain AS (
        SELECT * FROM entries WHERE n = ? UNION ALL SELECT e.* FROM chain JOIN entries AS e ON e.n = chain.before LIMIT ?)
      SELECT n, kind, ref, amount, reason, at FROM chain`),
  };
}

/** Prepares a statement when the first list of its length comes. */
function byCount(prepare: (count: number) => Statement): (count: number) => Statement {
  const known: Statement[] = [];
  return (count) => (known[count] ??= prepare(count));
}

function repeat(count: number, item: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => item(at)).join(', ');
}
