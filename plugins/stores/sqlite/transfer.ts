import type { Ledger, Transfer } from '../../../contract/index.ts';
import { dimensionsOf, packFacts, ROLLUP_DIMENSIONS, SUM_NAMES, sumsOf } from '../kit/call-rows.ts';
import { factText } from '../kit/facts.ts';
import type { RequestRow } from '../kit/ledger.ts';
import { type LedgerRow, type MovedRow, readCalls, readMoved } from '../kit/transfer.ts';
import { prepareCalls } from './calls-sql.ts';
import type { Database, SqlValue, Statement } from './driver.ts';
import { type CallsTables, type Journal, openCallsTables } from './journal.ts';
import { openColumns, readBalance, readBudgetStart, readHold, readName } from './ledger-rows.ts';
import type { Writer } from './writer.ts';

type Row = ReturnType<Statement['all']>[number];

/** Number of rows that one statement reads. */
const PAGE = 500;

/** Reads all rows of the file, and adds rows to an empty one. */
export function createSqliteTransfer(
  database: Database,
  writer: Writer,
  ledger: Ledger,
  journal: Pick<Journal, 'drain'>,
): Transfer {
  const calls = openCallsTables(prepareCalls(database));
  writer.onRollback(() => {
    calls.groups.clear();
    calls.names.clear();
    calls.terms.clear();
  });
  const write = createWriter(database, calls);
  return {
    async *read() {
      await journal.drain();
      yield* readAll(database, writer, ledger);
    },
    async write(rows) {
      const moved = readMoved(rows);
      await writer.write('store.transfer', () => write(moved));
      for (const row of moved) if (row.is === 'records_from') await ledger.forgetCalls(row.at);
    },
  };
}

async function* readAll(database: Database, writer: Writer, ledger: Ledger): AsyncGenerator<MovedRow> {
  const rows = (text: string, keys: readonly string[], first?: readonly SqlValue[]) =>
    walk(database, writer, text, keys, first);
  const now = Date.now();
  for await (const { namespace, key, value, expires } of rows('SELECT * FROM documents', ['namespace', 'key'])) {
    if (expires != null && Number(expires) <= now) continue;
    const document = { namespace: String(namespace), key: String(key), value: String(value) };
    yield { is: 'document', ...document, ...(expires != null && { expires: Number(expires) }) };
  }
  for await (const { name, member } of rows('SELECT * FROM members', ['name', 'member']))
    yield { is: 'member', set: String(name), member: String(member) };
  for await (const { key, value } of rows('SELECT * FROM numbers', ['key']))
    yield { is: 'number', key: String(key), value: Number(value) };
  const entries = `SELECT e.*, s.name FROM entries AS e LEFT JOIN sums AS s ON s.kind = 'account' AND s.id = e.account`;
  for await (const row of rows(entries, ['n'], [0])) {
    const account = String(row['account']);
    const texts = {
      account,
      name: readName(account, row['name']),
      ref: String(row['ref']),
      reason: String(row['reason']),
    };
    const kind = row['kind'] === 'credit' ? 'credit' : 'charge';
    yield { is: 'entry', ...texts, kind, amount: Number(row['amount']), at: Number(row['at']) };
  }
  for await (const row of rows('SELECT * FROM sums', ['kind', 'id'])) yield readSums(row);
  for await (const row of rows('SELECT * FROM holds', ['ref', 'account'])) {
    const { account, ref } = row;
    yield {
      is: 'request',
      of: 'charge',
      account: String(account),
      ref: String(ref),
      request: plainRequest(readHold(row)),
    };
  }
  for await (const row of rows('SELECT * FROM ended', ['ref', 'account', 'kind'])) yield readEnded(row);
  yield* readCalls(ledger);
  const hours = 'SELECT * FROM rollup JOIN call_groups ON id = group_id';
  for await (const row of rows(hours, ['hour', 'group_id'], [-1, -1]))
    yield {
      is: 'hour',
      hour: Number(row['hour']),
      dimensions: ROLLUP_DIMENSIONS.map((name) => String(row[name])),
      sums: SUM_NAMES.map((name) => Number(row[name])),
    };
  for await (const { value } of rows("SELECT * FROM marks WHERE name = 'whole_before'", ['name']))
    yield { is: 'records_from', at: Number(value) };
}

/** Reads a table in key order, page by page. */
export async function* walk(
  database: Database,
  writer: Writer,
  text: string,
  keys: readonly string[],
  first: readonly SqlValue[] = keys.map(() => ''),
): AsyncGenerator<Row> {
  const marks = keys.map(() => '?').join(', ');
  const page = database.prepare(
    `SELECT * FROM (${text}) WHERE (${keys.join(', ')}) > (${marks}) ORDER BY ${keys.join(', ')} LIMIT ${PAGE}`,
  );
  for (let after: readonly SqlValue[] | undefined = first; after; ) {
    const from: readonly SqlValue[] = after;
    const found: Row[] = await writer.readLatest('store.transfer', () => page.all(...from));
    yield* found;
    const last = found.at(-1);
    after = last && found.length === PAGE ? keys.map((key) => last[key] ?? null) : undefined;
  }
}

function readSums(row: Row): LedgerRow {
  const id = String(row['id']);
  if (row['kind'] === 'account')
    return { is: 'account', account: id, name: readName(id, row['name']), ...readBalance(row) };
  const until = row['until'] == null ? undefined : Number(row['until']);
  const start = readBudgetStart(row['name']);
  return { is: 'budget', id, spent: Number(row['spent']), held: Number(row['held']), until, start, lease: undefined };
}

/** Copies a request without getters, because rows are written as JSON. */
function plainRequest(request: RequestRow): RequestRow {
  return request.state === 'ended' ? request : { ...request };
}

function readEnded({ kind, account, ref, until }: Row): LedgerRow {
  return {
    is: 'request',
    of: kind === 'credit' ? 'credit' : 'charge',
    account: String(account),
    ref: String(ref),
    request: { state: 'ended', until: until == null ? undefined : Number(until) },
  };
}

type Writers = { readonly [Is in MovedRow['is']]: (row: Extract<MovedRow, { readonly is: Is }>) => void };

/**
 * Creates a function that writes rows inside a transaction. The transaction may run twice, so the function caches
 * nothing outside the tables.
 */
function createWriter(
  database: Database,
  { sql, groups, names, terms }: CallsTables,
): (rows: readonly MovedRow[]) => void {
  const insert = (table: string, columns: string): Statement =>
    database.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.replaceAll(/\w+/g, '?')})`);
  const documents = insert('documents', 'namespace, key, value, expires');
  const members = insert('members', 'name, member');
  const numbers = insert('numbers', 'key, value');
  const ended = insert('ended', 'ref, account, kind, until');
  const holds = insert('holds', 'ref, account, state, until, amount, budgets, facts, swept_at, counted_at');
  const budgets =
    database.prepare(`INSERT INTO sums (kind, id, spent, held, until, name, balance, credited, last_entry, updated_at)
    VALUES ('budget', ?, ?, ?, ?, ?, 0, 0, 0, 0)`);
  const entries = database.prepare(`INSERT INTO entries (before, account, kind, ref, amount, reason, at)
    VALUES (coalesce((SELECT last_entry FROM sums WHERE kind = 'account' AND id = ?1), 0), ?1, ?2, ?3, ?4, ?5, ?6)`);
  // Inserts the account's row with its newest entry; the account itself adds the other columns later.
  const newest = database.prepare(`INSERT INTO sums (kind, id, last_entry, balance, held, spent, credited, updated_at)
    VALUES ('account', ?, ?, 0, 0, 0, 0, 0) ON CONFLICT DO UPDATE SET last_entry = excluded.last_entry`);
  const accounts =
    database.prepare(`INSERT INTO sums (kind, id, name, balance, held, spent, credited, updated_at, last_entry)
    VALUES ('account', ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET name = excluded.name, balance = excluded.balance,
    held = excluded.held, spent = excluded.spent, credited = excluded.credited, updated_at = excluded.updated_at`);
  const writers: Writers = {
    document: ({ namespace, key, value, expires = null }) => void documents.run(namespace, key, value, expires),
    member: ({ set, member }) => void members.run(set, member),
    number: ({ key, value }) => void numbers.run(key, value),
    entry({ account, kind, ref, amount, reason, at }) {
      newest.run(account, Number(entries.run(account, kind, ref, amount, reason, at).lastInsertRowid));
    },
    account({ account, name, balance, held, spent, credited, updatedAt }) {
      const packed = name === account ? null : JSON.stringify(name);
      accounts.run(account, packed, balance, held, spent, credited, updatedAt);
    },
    budget: ({ id, spent, held, until = null, start }) =>
      void budgets.run(id, spent, held, until, start ? JSON.stringify(start) : null),
    request({ ref, account, of, request }) {
      const { state, until = null } = request;
      if (state === 'ended') ended.run(ref, account, of, until);
      else holds.run(ref, account, state, until, ...openColumns(request));
    },
    call({ account, ref, name, facts, cost, at, countedAt }) {
      const shown = factText(name);
      const { userId, key, requestId, session = null, outcome } = facts;
      const numbers = [shown, userId, key].map((name) => names.idOf(name));
      const texts = [requestId, session, outcome, packFacts(facts)] as const;
      const group = groups.idOf(dimensionsOf(shown, facts));
      const n = Number(sql.written.get()?.['value'] ?? 1);
      sql.markWritten.run(n + 1);
      sql.add.run(
        at,
        n,
        ref,
        names.idOf(account),
        group,
        ...numbers,
        ...texts,
        countedAt,
        ...sumsOf(facts, cost).slice(1),
      );
      terms.note(at, facts, cost);
    },
    hour({ hour, dimensions, sums }) {
      sql.count.run(hour, groups.idOf(dimensions), ...sums);
      sql.countHour.run(hour, ...sums);
    },
    records_from: () => undefined,
  };
  return (rows) => {
    for (const row of rows) (writers[row.is] as (row: MovedRow) => void)(row);
  };
}
