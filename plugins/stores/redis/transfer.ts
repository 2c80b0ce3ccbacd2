import type { Ledger, Transfer } from '../../../contract/index.ts';
import { SUM_NAMES } from '../kit/call-rows.ts';
import { storeKey, whole } from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import { createLedgerWriter, type MovedRow, readCalls, readMoved, toLedgerRow } from '../kit/transfer.ts';
import { GROUP, readJson, scanHash } from './calls.ts';
import { type Connection, scanKeys } from './connection.ts';
import { carryForward, type RedisLedgerRows, readLine } from './ledger.ts';

interface Parts {
  readonly connection: Connection;
  readonly prefix: string;
  readonly keys: Readonly<Record<'set' | 'number' | 'name' | 'documents', (name: string) => string>>;
  readonly scripts: Readonly<Record<'put' | 'add' | 'count', Parameters<Connection['write']>[0]>>;
  readonly ledgerRows: RedisLedgerRows;
  readonly ledger: Ledger;
}

/** Number of rows read per page, and written concurrently. */
const PAGE = 500;
const AT_ONCE = 50;

/** Reads all rows under the prefix, and adds rows to an empty one. */
export function createRedisTransfer(parts: Parts): Transfer {
  const { ledgerRows, ledger } = parts;
  const writeLedger = createLedgerWriter((changes) => ledgerRows.commit(changes));
  return {
    async *read() {
      await ledgerRows.journal.drain();
      yield* readAll(parts);
    },
    async write(rows) {
      const moved = readMoved(rows);
      for (let at = 0; at < moved.length; at += AT_ONCE)
        await Promise.all(moved.slice(at, at + AT_ONCE).map((row) => writeOne(parts, row)));
      for (let at = 0; at < moved.length; at += AT_ONCE) await writeLedger(moved.slice(at, at + AT_ONCE));
      await ledgerRows.journal.drain();
      for (const row of moved) if (row.is === 'records_from') await ledger.forgetCalls(row.at);
    },
  };
}

/** Returns the key of a set or a number. The name of a long one is already a hash. */
function keyOf(prefix: string, kind: 'set' | 'number', name: string, make: (name: string) => string): string {
  return name.startsWith('~') ? `${prefix}:${kind}:${name.slice(1)}` : make(name);
}

async function writeOne({ connection, prefix, keys, scripts }: Parts, row: MovedRow): Promise<void> {
  if (row.is === 'document') {
    const life = row.expires === undefined ? '' : Math.max(1, row.expires - Date.now());
    await connection.write(scripts.put, [`${keys.documents(row.namespace)}::${row.key}`], [row.value, life]);
  } else if (row.is === 'member') {
    const key = keyOf(prefix, 'set', row.set, keys.set);
    await connection.write(scripts.add, [key, keys.name(key)], [row.member, '', row.set]);
  } else if (row.is === 'number') {
    const key = keyOf(prefix, 'number', row.key, keys.number);
    await connection.write(scripts.count, [key, keys.name(key)], [row.value, row.key]);
  }
}

/** Reads texts with their expiry; omits expired ones. */
function readTexts({ read }: Connection, keys: readonly string[]) {
  const now = Date.now();
  const found = keys.map((key) =>
    read(async (client) => {
      const [text, life] = await Promise.all([client.get(key), client.pTTL(key)]);
      return typeof text === 'string' ? [{ key, text, until: life < 0 ? undefined : now + life }] : [];
    }),
  );
  return Promise.all(found).then((texts) => texts.flat());
}

async function* readAll(parts: Parts): AsyncGenerator<MovedRow> {
  const { connection, prefix, ledgerRows, ledger } = parts;
  const documents = `${prefix}:doc:`;
  for await (const keys of scanKeys(connection, documents))
    for (const { key, text, until } of await readTexts(connection, keys)) {
      const name = key.slice(documents.length);
      const at = name.indexOf('::');
      const document = { namespace: name.slice(0, at), key: name.slice(at + 2), value: text };
      yield { is: 'document', ...document, ...(until !== undefined && { expires: until }) };
    }
  for await (const keys of scanKeys(connection, `${prefix}:set:`)) for (const key of keys) yield* readSet(parts, key);
  for await (const keys of scanKeys(connection, `${prefix}:number:`))
    for (const { key, text } of await readTexts(connection, keys))
      yield { is: 'number', key: await readName(parts, key), value: whole(text) };
  yield* readEntries(parts);
  for (const kind of ['account', 'budget', 'request'])
    for await (const keys of scanKeys(connection, ledgerRows.keys.row(`${kind}:`)))
      for (const { key, text, until } of await readTexts(connection, keys))
        yield toLedgerRow(key.slice(ledgerRows.keys.row('').length), text.slice(text.indexOf(' ') + 1), until);
  yield* readCalls(ledger);
  yield* readHours(parts);
  const from = await connection.read((client) => client.zScore(ledgerRows.keys.recordsFrom, 'at'));
  if (from !== null) yield { is: 'records_from', at: Number(from) };
}

async function readName({ connection, keys }: Parts, key: string): Promise<string> {
  const name = await connection.read((client) => client.get(keys.name(key)));
  if (typeof name === 'string') return name;
  throw unreadable('set or number of a build before, which has no name,');
}

async function* readSet(parts: Parts, key: string): AsyncGenerator<MovedRow> {
  const set = await readName(parts, key);
  for await (const member of membersOf(parts.connection, key)) yield { is: 'member', set, member };
}

/** Reads the members of a sorted set in the order of their names, page by page. */
async function* membersOf(connection: Connection, key: string): AsyncGenerator<string> {
  for (let after: string | undefined = '-'; after !== undefined; ) {
    const from: string = after;
    const page = { LIMIT: { offset: 0, count: PAGE } };
    const members = await connection.read((client) => client.zRangeByLex(key, from, '+', page));
    yield* members;
    after = members.length < PAGE ? undefined : `(${members.at(-1)}`;
  }
}

/** Reads the ledger entries of all accounts. The oldest ones are already merged into one entry. */
async function* readEntries({ connection, ledgerRows }: Parts): AsyncGenerator<MovedRow> {
  for await (const packed of membersOf(connection, ledgerRows.keys.accounts)) {
    const name = readJson<string>(packed);
    const account = storeKey(name);
    for (let at = 0; ; at += PAGE) {
      const lines = await connection.read((client) =>
        client.lRange(ledgerRows.keys.entries(account), at, at + PAGE - 1),
      );
      for (const [place, line] of lines.entries()) {
        const { n, balance, entry } = readLine(account, line);
        const { id: _, ...reported } = at + place === 0 && n > 1 ? carryForward(entry, balance) : entry;
        yield { is: 'entry', name, ...reported };
      }
      if (lines.length < PAGE) break;
    }
  }
}

async function* readHours({ connection, ledgerRows }: Parts): AsyncGenerator<MovedRow> {
  const { keys } = ledgerRows;
  for (const hour of await connection.read((client) => client.zRangeByScore(keys.hours, '-inf', '+inf'))) {
    const found = await scanHash(connection, keys.rollup(Number(hour)));
    for (const [group, text] of found)
      if (group.length === GROUP)
        yield {
          is: 'hour',
          hour: Number(hour),
          dimensions: readJson<readonly string[]>(text),
          sums: SUM_NAMES.map((_, place) => Number(found.get(`${group}.${place}`) ?? 0)),
        };
  }
}
