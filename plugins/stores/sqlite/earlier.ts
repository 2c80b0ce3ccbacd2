import type { CallFacts, Store, Transfer } from '../../../contract/index.ts';
import { SUM_NAMES } from '../kit/call-rows.ts';
import { createDocuments } from '../kit/documents.ts';
import { factText, readFacts } from '../kit/facts.ts';
import { storeRefused } from '../kit/failure.ts';
import { withStored } from '../kit/kept.ts';
import type { LedgerRow, MovedRow } from '../kit/transfer.ts';
import { createDocumentAdapters, createSqliteSets } from './documents.ts';
import { type Database, importDriver } from './driver.ts';
import { readName } from './ledger-rows.ts';
import { walk } from './transfer.ts';
import { Writer } from './writer.ts';

/** Schema of builds that stored micro-dollars. */
export const MICRO_DOLLAR_VERSION = 4;

const NANO_PER_MICRO = 1000;

const REFUSAL = `The sqlite store was made by an earlier version of Tollgate (schema ${MICRO_DOLLAR_VERSION}), which counted in micro-dollars: run "tollgate store export <file>" on it, and "tollgate store import <file>" on a new folder. Nothing in it was changed.`;

/**
 * Opens a file of {@link MICRO_DOLLAR_VERSION} for reading: documents and sets can be read, and `transfer` converts
 * everything to the current form. A gateway does not start on it.
 */
export async function openEarlier(file: string): Promise<Store> {
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(file, { readOnly: true });
  const writer = new Writer(database, file);
  const refuse = (): Promise<never> => Promise.reject(storeRefused(REFUSAL));
  const refuseAll = <T extends object>(): T => new Proxy({}, { get: () => refuse }) as T;
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await writer.close();
    database.close();
  };
  const transfer: Transfer = { read: () => readAll(database, writer), write: refuse };
  const documents = createDocuments(createDocumentAdapters(database, writer));
  return {
    kind: 'sqlite',
    ...withStored({ keyv: documents, sets: createSqliteSets(database, writer) }, undefined, async () => 0),
    ledger: refuseAll<Store['ledger']>(),
    counters: refuseAll<Store['counters']>(),
    transfer: () => transfer,
    health: refuse,
    begin: refuse,
    close: () => (closing ??= close()),
  };
}

/** Reads all rows, in the order of {@link Transfer}. */
async function* readAll(database: Database, writer: Writer): AsyncGenerator<MovedRow> {
  const rows = (text: string, keys: readonly string[], first?: readonly (string | number)[]) =>
    walk(database, writer, text, keys, first);
  const now = Date.now();
  for await (const { namespace, key, value, expires } of rows('SELECT * FROM documents', ['namespace', 'key'])) {
    if ((expires != null && Number(expires) <= now) || isCache(String(namespace))) continue;
    const document = { namespace: String(namespace), key: String(key) };
    const text = convertDocument(document.namespace, String(value));
    yield { is: 'document', ...document, value: text, ...(expires != null && { expires: Number(expires) }) };
  }
  for await (const { name, member } of rows('SELECT * FROM members', ['name', 'member']))
    yield { is: 'member', set: String(name), member: String(member) };
  for await (const { key, value } of rows('SELECT * FROM numbers', ['key']))
    yield { is: 'number', key: String(key), value: Number(value) };
  const entries = 'SELECT e.*, a.name FROM entries AS e LEFT JOIN accounts AS a ON a.id = e.account';
  for await (const row of rows(entries, ['n'], [0])) {
    const account = String(row['account']);
    yield {
      is: 'entry',
      account,
      name: readName(account, row['name']),
      kind: row['kind'] === 'credit' ? 'credit' : 'charge',
      ref: String(row['ref']),
      reason: String(row['reason']),
      amount: nano(row['amount']),
      at: Number(row['at']),
    };
  }
  for await (const row of rows('SELECT * FROM accounts', ['id'])) {
    const account = String(row['id']);
    yield {
      is: 'account',
      account,
      name: readName(account, row['name']),
      balance: nano(row['balance']),
      held: nano(row['held']),
      spent: nano(row['spent']),
      credited: nano(row['credited']),
      updatedAt: Number(row['updated_at']),
    };
  }
  for await (const { id, spent, held, until } of rows('SELECT * FROM budgets', ['id']))
    yield {
      is: 'budget',
      id: String(id),
      spent: nano(spent),
      held: nano(held),
      until: numberOrNone(until),
      start: undefined,
      lease: undefined,
    };
  for await (const row of rows('SELECT *, 0 AS swept_at FROM holds', ['account', 'ref'])) yield readOpen('held', row);
  for await (const row of rows('SELECT *, at AS swept_at FROM swept', ['ref', 'account'])) yield readOpen('swept', row);
  // Rows of swept requests were returned before.
  const finished = `SELECT * FROM finished AS f WHERE NOT EXISTS (SELECT 1 FROM swept AS s
    WHERE s.ref = f.ref AND s.account = f.account AND f.kind = 'charge')`;
  for await (const { ref, account, kind, until } of rows(finished, ['ref', 'account', 'kind']))
    yield {
      is: 'request',
      of: kind === 'credit' ? 'credit' : 'charge',
      account: String(account),
      ref: String(ref),
      request: { state: 'ended', until: numberOrNone(until) },
    };
  const calls =
    'SELECT c.*, g.account, g.user, g.key, g.tags, g.operation, g.provider, g.model FROM calls AS c JOIN call_groups AS g ON g.id = c.group_id';
  for await (const row of rows(calls, ['at', 'tie'], [-1, ''])) yield readCall(row);
  const hours = 'SELECT * FROM rollup JOIN call_groups ON id = group_id';
  for await (const row of rows(hours, ['hour', 'group_id'], [-1, -1])) {
    const { account, user, key, tags, operation, provider, model } = row;
    yield {
      is: 'hour',
      hour: Number(row['hour']),
      dimensions: [account, user, key, tags, operation, provider, model].map(String),
      sums: SUM_NAMES.map((name) => (name === 'cost' || name === 'saved' ? nano(row[name]) : Number(row[name]))),
    };
  }
  for await (const { value } of rows("SELECT * FROM marks WHERE name = 'whole_before'", ['name']))
    yield { is: 'records_from', at: Number(value) };
}

type Row = Readonly<Record<string, unknown>>;

function nano(micro: unknown): number {
  return Number(micro) * NANO_PER_MICRO;
}

function numberOrNone(value: unknown): number | undefined {
  return value == null ? undefined : Number(value);
}

function readOpen(state: 'held' | 'swept', row: Row): LedgerRow {
  const facts = convertFacts(readFacts(withoutAttempts(row['facts'])));
  const sweptAt = Number(row['swept_at']);
  const until = Number(state === 'held' ? row['expires_at'] : row['until']);
  return {
    is: 'request',
    of: 'charge',
    account: String(row['account']),
    ref: String(row['ref']),
    request: {
      state,
      amount: nano(row['amount']),
      until,
      budgets: JSON.parse(String(row['budgets'])) as readonly string[],
      facts,
      sweptAt,
      // The time of the reservation is unknown. A charge of the sweeper counts at its own time.
      countedAt: state === 'held' ? facts.startedAt || until : sweptAt,
    },
  };
}

function readCall(row: Row): LedgerRow {
  const [ref = '', account = ''] = JSON.parse(String(row['tie'])) as readonly string[];
  const packed = JSON.parse(withoutAttempts(row['facts'])) as Partial<CallFacts>;
  const { user, key, tags, operation, provider, model, session, outcome } = row;
  const dimensions = { userId: user, key, tags: JSON.parse(String(tags)) as unknown, operation, provider, model };
  const facts = readFacts(JSON.stringify({ ...packed, ...dimensions, ...(session != null && { session }), outcome }));
  const at = Number(row['at']);
  const { saved } = packed;
  const reported = convertFacts(saved === undefined ? facts : { ...facts, saved });
  const name = String(row['account']);
  return {
    is: 'call',
    account,
    ref,
    name: factText(name),
    facts: reported,
    cost: nano(row['cost']),
    at,
    countedAt: at,
  };
}

function convertFacts(facts: CallFacts): CallFacts {
  return facts.saved === undefined ? facts : { ...facts, saved: nano(facts.saved) };
}

/** Facts as JSON without the number of attempts. Attempts are now a list, whose items are unknown. */
function withoutAttempts(facts: unknown): string {
  return JSON.stringify({ ...(JSON.parse(String(facts)) as object), attempts: [] });
}

/** Detects cached responses. Their costs are in another unit, and they expire. */
function isCache(namespace: string): boolean {
  return namespace.startsWith('policies.cache.');
}

/** Namespaces of documents with numeric amounts. */
const WITH_AMOUNTS = /^(?:auth\.[\w-]+\.keys|core\.core\.(?!audit)[\w-]+)$/;
/** Names of amount fields, in budgets and in the budgets of keys, plans and accounts. */
const AMOUNTS: ReadonlySet<string> = new Set(['budget', 'amount', 'soft']);

function convertDocument(namespace: string, text: string): string {
  if (!WITH_AMOUNTS.test(namespace)) return text;
  return JSON.stringify(JSON.parse(text), (name, value: unknown) =>
    AMOUNTS.has(name) && typeof value === 'number' ? nano(value) : value,
  );
}
