import { REMEMBER_MS } from '../kit/check.ts';
import { chargeReason, dayOf, UNKNOWN_FACTS } from '../kit/usage.ts';
import type { Database, SqlValue } from './database.ts';
import type { ChargeRecord, HoldRecord, LedgerRecord } from './ledger-record.ts';
import type { Hold, LedgerTables } from './ledger-tables.ts';

/** What some records add to an account's row. */
interface AccountSum {
  balance: number;
  held: number;
  spent: number;
  /** The number of its newest entry, and when it was made; 0 when there is none. */
  lastEntry: number;
  updatedAt: number;
  readonly purses: Map<string, { spent: number; held: number }>;
}

interface UsageSum {
  readonly key: readonly SqlValue[];
  requests: number;
  promptTokens: number;
  completionTokens: number;
  characters: number;
  cost: number;
}

/**
 * Writes records to the tables, in a transaction that the caller makes. An entry and a finished id per call, and one
 * statement for all that the calls add to a row: a call that is reserved and over within the records is never in `holds`.
 */
export function createFold(database: Database, tables: LedgerTables): (records: readonly LedgerRecord[]) => void {
  const sql = prepareFold(database);
  const insertEntries = createInserts(
    database,
    'INSERT INTO entries (n, before, account, kind, ref, amount, reason, at) VALUES',
    "(?, ?, ?, 'charge', ?, ?, ?, ?)",
  );

  return (records) => {
    const accounts = new Map<string, AccountSum>();
    const usage = new Map<string, UsageSum>();
    const open = new Map<string, HoldRecord>();
    const entries = insertEntries();
    const before = Number(sql.lastEntry.get()?.['n'] ?? 0);
    let lastEntry = before;

    const sumOf = (id: string): AccountSum => {
      const known = accounts.get(id);
      if (known) return known;
      const sum = { balance: 0, held: 0, spent: 0, lastEntry: 0, updatedAt: 0, purses: new Map() };
      accounts.set(id, sum);
      return sum;
    };

    const takeHold = (account: string, ref: string): Hold | undefined => {
      const key = `${account}\0${ref}`;
      const held = open.get(key);
      if (!held) return tables.takeHold(account, ref);
      open.delete(key);
      return held;
    };

    const addToPurse = (sum: AccountSum, id: string | null, held: number, spent: number): void => {
      if (id === null) return;
      const purse = sum.purses.get(id);
      if (!purse) return void sum.purses.set(id, { spent, held });
      purse.spent += spent;
      purse.held += held;
    };

    const addUsage = ({ account, amount, now, purpose, counts }: ChargeRecord): void => {
      const { operation, provider, model, key } = purpose;
      const columns = [dayOf(now), account, operation, provider, model, key];
      const id = columns.join('\0');
      let sum = usage.get(id);
      if (!sum) {
        sum = { key: columns, requests: 0, promptTokens: 0, completionTokens: 0, characters: 0, cost: 0 };
        usage.set(id, sum);
      }
      sum.requests += 1;
      sum.promptTokens += counts.promptTokens;
      sum.completionTokens += counts.completionTokens;
      sum.characters += counts.characters;
      sum.cost += amount;
    };

    const end = (record: Exclude<LedgerRecord, HoldRecord>): void => {
      const { account, ref } = record;
      const ended = takeHold(account, ref);
      if (!ended) return;
      const sum = sumOf(account);
      sum.held -= ended.amount;
      if (record.do === 'release') {
        addToPurse(sum, ended.purse, -ended.amount, 0);
        tables.finish(account, ref, ended.expiresAt + REMEMBER_MS);
        return;
      }
      const { amount, now, purpose } = record;
      addToPurse(sum, ended.purse, -ended.amount, amount);
      sum.balance -= amount;
      sum.spent += amount;
      sum.updatedAt = now;
      if (sum.lastEntry === 0) sum.lastEntry = tables.newestEntry(account);
      lastEntry += 1;
      const reason = chargeReason({ ...UNKNOWN_FACTS, ...purpose });
      entries.add(lastEntry, sum.lastEntry, account, ref, 0 - amount, reason, now);
      sum.lastEntry = lastEntry;
      addUsage(record);
    };

    for (const record of records) {
      if (record.do !== 'hold') {
        end(record);
        continue;
      }
      const sum = sumOf(record.account);
      sum.held += record.amount;
      addToPurse(sum, record.purse, record.amount, 0);
      open.set(`${record.account}\0${record.ref}`, record);
    }
    entries.end();
    if (lastEntry > before) sql.finishEntries.run(REMEMBER_MS, before);
    for (const { account, ref, amount, expiresAt, purse, purpose } of open.values()) {
      sql.addHold.run(account, ref, amount, expiresAt, purse, JSON.stringify(purpose));
    }
    for (const [id, { balance, held, spent, lastEntry: last, updatedAt, purses }] of accounts) {
      sql.addToAccount.run(id, balance, held, spent, last, updatedAt);
      for (const [purse, sum] of purses) sql.addToPurse.run(id, purse, sum.spent, sum.held);
    }
    for (const { key, requests, promptTokens, completionTokens, characters, cost } of usage.values()) {
      sql.addUsage.run(...key, requests, promptTokens, completionTokens, characters, cost);
    }
  };
}

function prepareFold(database: Database) {
  return {
    lastEntry: database.prepare('SELECT max(n) AS n FROM entries'),
    /** The ids of the charges whose entries are new. */
    finishEntries: database.prepare(`INSERT INTO finished (ref, account, kind, until)
      SELECT ref, account, kind, at + ? FROM entries WHERE n > ? ON CONFLICT DO NOTHING`),
    addHold: database.prepare(
      'INSERT INTO holds (account, ref, amount, expires_at, purse, facts) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    addToAccount: database.prepare(`INSERT INTO accounts (id, balance, held, spent, credited, last_entry, updated_at)
      VALUES (?, ?, ?, ?, 0, ?, ?) ON CONFLICT DO UPDATE SET balance = balance + excluded.balance,
      held = held + excluded.held, spent = spent + excluded.spent, last_entry = max(last_entry, excluded.last_entry),
      updated_at = CASE excluded.updated_at WHEN 0 THEN updated_at ELSE excluded.updated_at END`),
    addToPurse: database.prepare(`INSERT INTO purses (account, id, spent, held) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET spent = spent + excluded.spent, held = held + excluded.held`),
    addUsage: database.prepare(`INSERT INTO usage (day, account, operation, provider, model, key, requests,
      prompt_tokens, completion_tokens, characters, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
      prompt_tokens = prompt_tokens + excluded.prompt_tokens,
      completion_tokens = completion_tokens + excluded.completion_tokens,
      characters = characters + excluded.characters, cost = cost + excluded.cost`),
  };
}

/** How many rows one statement inserts: half of its cost is not the row's. */
const ROWS = 16;

/** Inserts rows several at a time, in the order they are added in; `end` inserts the rest. */
function createInserts(database: Database, insert: string, row: string) {
  const many = database.prepare(`${insert} ${Array<string>(ROWS).fill(row).join()}`);
  const one = database.prepare(`${insert} ${row}`);
  return () => {
    let rows: SqlValue[][] = [];
    return {
      add: (...values: SqlValue[]): void => {
        rows.push(values);
        if (rows.length < ROWS) return;
        many.run(...rows.flat());
        rows = [];
      },
      end: (): void => {
        for (const values of rows) one.run(...values);
      },
    };
  };
}
