import type { Ledger, Transfer } from '../../../contract/index.ts';
import { ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import { whole } from '../kit/check.ts';
import type { JournalMover } from '../kit/journal-mover.ts';
import { createLedgerWriter, type MovedRow, readCalls, readMoved, toLedgerRow } from '../kit/transfer.ts';
import { accountRowId, readAccountRow } from '../kit/versioned-ledger.ts';
import type { Connection, Row, Value } from './connection.ts';
import { createRows, RECORDS_FROM } from './ledger.ts';

/** Number of rows that one statement reads. */
const PAGE = 500;
/** Number of documents, members and numbers written concurrently. */
const AT_ONCE = 20;

/** Reads all rows of the schema, and adds rows to an empty one. */
export function createPostgresTransfer(
  connection: Connection,
  timeoutMs: number,
  { ledger, journal }: { readonly ledger: Ledger; readonly journal: JournalMover },
): Transfer {
  const { commit } = createRows(connection, timeoutMs, journal);
  const writeLedger = createLedgerWriter(commit);
  return {
    async *read() {
      await journal.drain();
      yield* readAll(connection, ledger);
    },
    async write(rows) {
      const moved = readMoved(rows);
      for (let at = 0; at < moved.length; at += AT_ONCE)
        await Promise.all(moved.slice(at, at + AT_ONCE).map((row) => writeOne(connection, row)));
      await writeLedger(moved);
      await journal.drain();
      for (const row of moved) if (row.is === 'records_from') await ledger.forgetCalls(row.at);
    },
  };
}

async function writeOne({ write }: Connection, row: MovedRow): Promise<void> {
  if (row.is === 'document')
    await write('put_document', [`${row.namespace}:${row.key}`, row.value, row.expires ?? null]);
  else if (row.is === 'member') await write('add_member', [row.set, row.member, null]);
  else if (row.is === 'number') await write('next', [row.key, row.value]);
}

/** Returns the name of an account whose key is a hash of its name. */
async function findName(connection: Connection, account: string): Promise<string> {
  const id = accountRowId(account);
  const [row] = await connection.read('', 'SELECT row FROM tollgate.ledger WHERE id = $1', [id]);
  return row ? readAccountRow({ id, text: String(row['row']) }).name : account;
}

async function* readAll(connection: Connection, ledger: Ledger): AsyncGenerator<MovedRow> {
  /** Reads a table in key order, page by page. */
  async function* walk(table: string, keys: readonly string[], first: readonly Value[] = keys.map(() => '')) {
    const order = keys.join(', ');
    const text = `SELECT * FROM tollgate.${table} WHERE (${order}) > (${keys.map((_, at) => `$${at + 1}`).join(', ')})
      ORDER BY ${order} LIMIT ${PAGE}`;
    for (let after: readonly Value[] | undefined = first; after; ) {
      const rows: readonly Row[] = await connection.read('', text, after);
      yield* rows;
      const last = rows.at(-1);
      after = last && rows.length === PAGE ? keys.map((key) => String(last[key])) : undefined;
    }
  }
  const now = Date.now();
  for await (const { key, value, expires } of walk('documents', ['key'])) {
    if (expires !== null && whole(expires) <= now) continue;
    const text = String(key);
    const [namespace, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
    const document = { namespace, key: rest, value: String(value) };
    yield { is: 'document', ...document, ...(expires !== null && { expires: whole(expires) }) };
  }
  for await (const { name, member } of walk('members', ['name', 'member']))
    yield { is: 'member', set: String(name), member: String(member) };
  for await (const { key, value } of walk('numbers', ['key']))
    yield { is: 'number', key: String(key), value: whole(value) };
  for await (const row of walk('entries', ['account', 'n'], ['', 0])) {
    const texts = { account: String(row['account']), ref: String(row['ref']), reason: String(row['reason']) };
    const kind = row['kind'] === 'credit' ? 'credit' : 'charge';
    const name = texts.account.startsWith('~') ? await findName(connection, texts.account) : texts.account;
    yield { is: 'entry', name, ...texts, kind, amount: whole(row['amount']), at: whole(row['at']) };
  }
  for await (const { id, row, until } of walk('ledger', ['id']))
    yield toLedgerRow(String(id), String(row), until === null ? undefined : whole(until));
  yield* readCalls(ledger);
  for await (const row of walk('rollup', ['hour', 'id'], [-1, '']))
    yield {
      is: 'hour',
      hour: whole(row['hour']),
      dimensions: ROLLUP_DIMENSIONS.map((name) => String(row[name === 'user' ? 'user_id' : name])),
      sums: SUM_NAMES.map((name) => whole(row[name])),
    };
  for (const { value } of await connection.read('records_from', RECORDS_FROM, []))
    yield { is: 'records_from', at: whole(value) };
}
