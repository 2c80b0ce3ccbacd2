import type { Database } from './database.ts';

/** The prepared statements of the ledger. Guards live in the SQL: `changes` says whether one let the row through. */
export function prepareLedger(database: Database) {
  return {
    hold: database.prepare(`INSERT INTO holds (account, ref, amount, expires_at, purse, facts) SELECT ?, ?, ?, ?, ?, ?
      WHERE NOT EXISTS (SELECT 1 FROM entries WHERE account = ? AND ref = ? AND kind = 'charge')
        AND NOT EXISTS (SELECT 1 FROM released WHERE account = ? AND ref = ?) ON CONFLICT DO NOTHING`),
    holdOnAny: database.prepare(`INSERT INTO accounts (id, balance, held, spent, credited, last_entry, updated_at)
      VALUES (?, 0, ?, 0, 0, 0, 0)
      ON CONFLICT DO UPDATE SET held = held + excluded.held WHERE balance - held - excluded.held >= ?`),
    holdOnKnown: database.prepare('UPDATE accounts SET held = held + ? WHERE id = ? AND balance - held - ? >= ?'),
    holdInPurse: database.prepare(`INSERT INTO purses (account, id, spent, held) VALUES (?, ?, 0, ?)
      ON CONFLICT DO UPDATE SET held = held + excluded.held WHERE spent + held + excluded.held <= ?`),
    dropHold: database.prepare('DELETE FROM holds WHERE account = ? AND ref = ?'),
    takeHold: database.prepare('DELETE FROM holds WHERE account = ? AND ref = ? RETURNING amount, purse, expires_at'),
    unhold: database.prepare('UPDATE accounts SET held = held - ? WHERE id = ?'),
    charge: database.prepare(`UPDATE accounts SET held = held - ?, balance = balance - ?, spent = spent + ?,
      last_entry = last_entry + 1, updated_at = ? WHERE id = ? RETURNING last_entry`),
    chargePurse: database.prepare('UPDATE purses SET held = held - ?, spent = spent + ? WHERE account = ? AND id = ?'),
    credit: database.prepare(`INSERT INTO accounts (id, balance, held, spent, credited, last_entry, updated_at)
      VALUES (?, ?, 0, 0, ?, 1, ?) ON CONFLICT DO UPDATE SET balance = balance + excluded.balance,
      credited = credited + excluded.credited, last_entry = last_entry + 1, updated_at = excluded.updated_at
      RETURNING last_entry`),
    addEntry: database.prepare(
      'INSERT INTO entries (account, n, kind, ref, amount, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    knownCredit: database.prepare("SELECT 1 AS known FROM entries WHERE account = ? AND ref = ? AND kind = 'credit'"),
    addUsage: database.prepare(`INSERT INTO usage (account, day, operation, provider, model, key, requests,
      prompt_tokens, completion_tokens, characters, cost) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET requests = requests + 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
      completion_tokens = completion_tokens + excluded.completion_tokens,
      characters = characters + excluded.characters, cost = cost + excluded.cost`),
    remember: database.prepare('INSERT INTO released (account, ref, until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'),
    forget: database.prepare('DELETE FROM released WHERE until < ?'),
    expired: database.prepare('SELECT account, ref, facts FROM holds WHERE expires_at < ? LIMIT ?'),
    balance: database.prepare('SELECT balance, held, spent, credited, updated_at FROM accounts WHERE id = ?'),
    purse: database.prepare('SELECT spent, held FROM purses WHERE account = ? AND id = ?'),
    entries: database.prepare(`SELECT n, kind, ref, amount, reason, at FROM entries WHERE account = ? AND n < ?
      ORDER BY n DESC LIMIT ?`),
    usage: database.prepare(`SELECT day, operation, provider, model, key, requests, prompt_tokens, completion_tokens,
      characters, cost FROM usage WHERE account = ? AND day BETWEEN ? AND ?
      ORDER BY day, operation, provider, model, key`),
  };
}
