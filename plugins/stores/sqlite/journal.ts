import { crc32 } from 'node:zlib';
import type { Log } from '../../../contract/index.ts';
import { type Dimensions, dimensionsOf, hourOf, packFacts, SUM_NAMES, type Sums, sumsOf } from '../kit/call-rows.ts';
import { factText } from '../kit/facts.ts';
import { type JournalMove, JournalMover } from '../kit/journal-mover.ts';
import type { CallRecord, LedgerChange, LedgerKeys } from '../kit/ledger.ts';
import { CallTerms } from './call-terms.ts';
import type { CallsSql } from './calls-sql.ts';
import type { Database, SqlValue } from './driver.ts';
import type { Writer } from './writer.ts';

/** Rows of the journal that one transaction moves. */
const ROWS_AT_ONCE = 100;
/** Items of one journal row; a commit with more writes several rows. */
const ITEMS_AT_ONCE = 200;

type Entry = NonNullable<LedgerChange<unknown>['entry']>;

/** Ledger entry in the journal. */
type EntryItem = readonly [kind: Entry['kind'], amount: number, reason: string, at: number];

/** Call record in the journal, and the sums to subtract from the rollup if it replaces another record. */
type RecordItem = readonly [
  at: number,
  countedAt: number,
  group: number,
  account: string,
  request: string,
  session: string | null,
  outcome: string,
  facts: string,
  sums: Sums,
  before: readonly [group: number, sums: Sums] | null,
  /** Terms to add; absent in rows of schema 8. */
  terms?: readonly number[],
];

/** End of a call, credit, or correction. */
type Item = readonly [ref: string, owner: string, entry: EntryItem | null, record: RecordItem | null];

/**
 * Entries and records that are in the sums already, but not yet in their tables. A commit appends all of its items as
 * one row, in the same transaction as the sums. A later transaction moves rows to `entries`, `calls` and `rollup`. It
 * deletes each row that it moves, so exactly one process moves a row.
 */
export class Journal {
  readonly #sql: ReturnType<typeof prepareJournal>;
  readonly #calls: CallsTables;
  readonly #writer: Writer;
  readonly #mover: JournalMover;
  readonly #onMove: () => void;
  #items: Item[] = [];
  /** Erasures of names that the cached numbers know. */
  #renames: number | undefined;

  /** `onMove` writes the pending sums of this transaction, because a move writes to their rows. */
  constructor(database: Database, writer: Writer, calls: CallsTables, onMove: () => void, log: Log | undefined) {
    this.#sql = prepareJournal(database);
    this.#calls = calls;
    this.#writer = writer;
    this.#onMove = onMove;
    this.#mover = new JournalMover(
      {
        kind: 'sqlite',
        damagedName: 'damaged_journal',
        isEmpty: async () => !writer.hasQueued && !this.#has('any'),
        move: () => writer.write('ledger.move', this.#moveSome),
        countDamaged: async () => Number((await writer.read('store.health', () => this.#sql.damaged.get()))?.['count']),
      },
      log,
    );
    writer.onCommit(this.flush);
    writer.onRollback(() => {
      this.#items = [];
      calls.groups.clear();
      calls.names.clear();
      calls.terms.clear();
    });
  }

  /** Adds an item to the row of this transaction. */
  add({ account, name, ref }: LedgerKeys, entry: Entry | undefined, record: CallRecord | undefined): void {
    if (!entry && !record) return;
    const packedEntry = entry ? ([entry.kind, entry.amount, entry.reason, entry.at] as const) : null;
    this.#items.push([ref, account, packedEntry, record ? this.#pack(factText(name), record) : null]);
  }

  #pack(shown: string, { facts, cost, at, countedAt, before }: CallRecord): RecordItem {
    const { groups, terms } = this.#calls;
    const { requestId, session = null, outcome } = facts;
    const group = groups.idOf(dimensionsOf(shown, facts));
    const former = before
      ? ([groups.idOf(dimensionsOf(shown, before.facts)), sumsOf(before.facts, before.cost)] as const)
      : null;
    const sums = sumsOf(facts, cost);
    const news = terms.takeNew(at, facts, cost);
    return [at, countedAt, group, shown, requestId, session, outcome, packFacts(facts), sums, former, news];
  }

  /** Writes the items of this transaction. */
  readonly flush = (): void => {
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = [];
    for (let from = 0; from < items.length; from += ITEMS_AT_ONCE) {
      const some = items.length <= ITEMS_AT_ONCE ? items : items.slice(from, from + ITEMS_AT_ONCE);
      const data = JSON.stringify(some);
      this.#sql.append.run(crc32(data), data);
    }
    this.#mover.moveLater();
  };

  /** Runs a query that sees all entries and records, those of the journal included. */
  async read<T>(operation: string, query: () => T): Promise<T> {
    if (this.#writer.isClosed) return this.#writer.read(operation, query);
    if (this.#has('isLong')) await this.#mover.drain();
    if (!this.#writer.hasQueued && !this.#has('any')) return this.#writer.read(operation, query);
    let damaged = 0;
    const result = await this.#writer.write(operation, () => {
      this.flush();
      damaged = this.#moveAll();
      return query();
    });
    this.#mover.reportDamaged(damaged);
    return result;
  }

  /** Runs a change that finds all entries and records in their tables. */
  async change<T>(operation: string, change: () => T): Promise<T> {
    if (this.#has('isLong')) await this.#mover.drain();
    let damaged = 0;
    const result = await this.#writer.write(operation, () => {
      this.flush();
      damaged = this.#moveAll();
      return change();
    });
    this.#mover.reportDamaged(damaged);
    return result;
  }

  /** Clears cached numbers of groups and names if another process has deleted some. Runs after each commit of another process. */
  checkRenames(): void {
    const { sql, groups, names, terms } = this.#calls;
    const renames = Number(sql.renames.get()?.['value'] ?? 0);
    if (renames === this.#renames) return;
    this.#renames = renames;
    groups.clear();
    names.clear();
    terms.clear();
  }

  /** Moves all current rows. */
  drain(): Promise<void> {
    return this.#mover.drain();
  }

  /** Rejects when rows of the journal could not be read. */
  check(): Promise<void> {
    return this.#mover.check();
  }

  /** Moves the remaining rows, and stops. */
  close(): Promise<void> {
    return this.#mover.close();
  }

  /** Checks if there are rows. Also false if the file is unreadable, which the next query reports. */
  #has(which: 'any' | 'isLong'): boolean {
    try {
      return this.#sql[which].get() !== undefined;
    } catch {
      return false;
    }
  }

  readonly #moveSome = (): JournalMove => {
    // Changes before this one are in the same transaction.
    this.flush();
    return this.#move();
  };

  /** Moves all rows inside a transaction; returns the number of damaged ones. */
  #moveAll(): number {
    let total = 0;
    for (;;) {
      const { state, damaged } = this.#move();
      total += damaged;
      if (state === 'done') return total;
    }
  }

  /** Moves rows inside a transaction, and deletes them. */
  #move(): JournalMove {
    const rows = this.#sql.first.all(ROWS_AT_ONCE);
    const last = rows.at(-1)?.['n'];
    if (last === undefined) return { state: 'done', damaged: 0 };
    this.#onMove();
    const move = new Move(this.#sql, this.#calls);
    let damaged = 0;
    for (const { n, checksum, data } of rows) {
      const items = readItems(checksum, data);
      if (items) for (const item of items) move.add(item);
      else {
        this.#sql.setAside.run(Date.now(), n ?? null);
        damaged += 1;
      }
    }
    move.end();
    this.#sql.remove.run(last);
    return { state: rows.length < ROWS_AT_ONCE ? 'done' : 'more', damaged };
  }
}

/** Reads the items of a row; undefined if the row is damaged. */
function readItems(checksum: unknown, data: unknown): readonly Item[] | undefined {
  if (typeof data !== 'string' || crc32(data) !== checksum) return undefined;
  try {
    const items = JSON.parse(data) as unknown;
    return Array.isArray(items) && items.every(isItem) ? items : undefined;
  } catch {
    return undefined;
  }
}

function isItem(item: unknown): item is Item {
  if (!Array.isArray(item) || item.length !== 4) return false;
  const [ref, owner, entry, record] = item as readonly unknown[];
  return (
    typeof ref === 'string' &&
    typeof owner === 'string' &&
    (entry === null || hasTypes(entry, ENTRY_TYPES)) &&
    (record === null || isRecord(record))
  );
}

function isRecord(record: unknown): boolean {
  if (!hasTypes(record, RECORD_TYPES) && !(hasTypes(record, TYPES_WITH_TERMS) && isNumbers(record[10]))) return false;
  return isSums(record[8]) && isBefore(record[9]);
}

function isNumbers(list: unknown): boolean {
  return Array.isArray(list) && list.every((each) => typeof each === 'number');
}

const ENTRY_TYPES = Object.freeze(['string', 'number', 'string', 'number']);
const RECORD_TYPES = Object.freeze([
  ...['number', 'number', 'number', 'string', 'string', undefined, 'string', 'string', 'object', 'object'],
]);

const TYPES_WITH_TERMS = Object.freeze([...RECORD_TYPES, 'object']);

/** Checks the types of a list's values; undefined allows any type. */
function hasTypes(list: unknown, types: readonly (string | undefined)[]): list is readonly unknown[] {
  if (!Array.isArray(list) || list.length !== types.length) return false;
  for (let at = 0; at < types.length; at += 1) {
    const type = types[at];
    if (type !== undefined && typeof list[at] !== type) return false;
  }
  return true;
}

function isSums(sums: unknown): sums is Sums {
  return Array.isArray(sums) && sums.length === SUM_NAMES.length && isNumbers(sums);
}

function isBefore(before: unknown): boolean {
  return before === null || (Array.isArray(before) && typeof before[0] === 'number' && isSums(before[1]));
}

const COST = SUM_NAMES.indexOf('cost');

/** Sums that a move adds to one group of one hour. */
interface CountedGroup {
  readonly hour: number;
  readonly group: number;
  readonly sums: number[];
}

/** Changes of one move that are written once for all of its items. */
class Move {
  readonly #sql: ReturnType<typeof prepareJournal>;
  readonly #calls: CallsTables;
  /** Newest entries, by account. */
  readonly #newest = new Map<string, number>();
  readonly #counted = new Map<string, CountedGroup>();
  /** Last counted group: consecutive calls usually have the same one. */
  #last: CountedGroup | undefined;
  #n: number | undefined;

  constructor(sql: ReturnType<typeof prepareJournal>, calls: CallsTables) {
    this.#sql = sql;
    this.#calls = calls;
  }

  add([ref, owner, entry, record]: Item): void {
    if (entry) this.#addEntry(ref, owner, entry);
    if (record) this.#addRecord(ref, owner, record);
  }

  #addEntry(ref: string, owner: string, [kind, amount, reason, at]: EntryItem): void {
    const before = this.#newest.get(owner) ?? Number(this.#sql.newest.get(owner)?.['n'] ?? 0);
    const { lastInsertRowid } = this.#sql.addEntry.run(before, owner, kind, ref, amount, reason, at);
    this.#newest.set(owner, Number(lastInsertRowid));
  }

  #addRecord(ref: string, owner: string, record: RecordItem): void {
    const [at, countedAt, group, shown, request, session, outcome, facts, sums, before, added] = record;
    const { sql, groups, names, terms } = this.#calls;
    const hour = hourOf(countedAt);
    if (before) this.#count(hour, before[0], before[1], -1);
    this.#count(hour, group, sums, 1);
    const dimensions = groups.dimensionsOf(group);
    const ownerId = names.idOf(owner);
    const values: SqlValue[] = before ? [] : [at, this.#next()];
    values.push(ref, ownerId, group, owner === shown ? ownerId : names.idOf(shown));
    values.push(names.idOf(dimensions[1] ?? '-'), names.idOf(dimensions[2] ?? '-'));
    values.push(request, session, outcome, facts, countedAt);
    // The first sum is the number of requests: one.
    for (let index = 1; index < sums.length; index += 1) values.push(sums[index] ?? 0);
    if (before) sql.replace.run(...values, at, ref, ownerId);
    else sql.add.run(...values);
    if (added) terms.write(at, added);
    else terms.notePacked(at, dimensions, { outcome, packed: facts, cost: sums[COST] ?? 0 });
  }

  #next(): number {
    const n = this.#n ?? Number(this.#calls.sql.written.get()?.['value'] ?? 1);
    this.#n = n + 1;
    return n;
  }

  #count(hour: number, group: number, sums: Sums, sign: 1 | -1): void {
    const known = this.#last;
    const counted = known?.hour === hour && known.group === group ? known : this.#countedOf(hour, group, sums.length);
    for (let at = 0; at < sums.length; at += 1) counted.sums[at] = (counted.sums[at] ?? 0) + sign * (sums[at] ?? 0);
    this.#last = counted;
  }

  #countedOf(hour: number, group: number, length: number): CountedGroup {
    const key = `${hour} ${group}`;
    let counted = this.#counted.get(key);
    if (!counted) {
      counted = { hour, group, sums: Array.from({ length }, () => 0) };
      this.#counted.set(key, counted);
    }
    return counted;
  }

  /** Writes the sums. */
  end(): void {
    const { sql } = this.#calls;
    const hours = new Map<number, number[]>();
    for (const { hour, group, sums } of this.#counted.values()) {
      sql.count.run(hour, group, ...sums);
      if ((sums[0] ?? 0) <= 0) sql.dropEmpty.run(hour, group);
      const all = hours.get(hour);
      if (all) for (let at = 0; at < sums.length; at += 1) all[at] = (all[at] ?? 0) + (sums[at] ?? 0);
      else hours.set(hour, [...sums]);
    }
    for (const [hour, sums] of hours) sql.countHour.run(hour, ...sums);
    for (const [account, n] of this.#newest) this.#sql.markNewest.run(n, account);
    this.#sql.keepEnded.run();
    this.#sql.dropEnded.run();
    if (this.#n !== undefined) sql.markWritten.run(this.#n);
  }
}

function prepareJournal(database: Database) {
  return {
    append: database.prepare('INSERT INTO journal (checksum, data) VALUES (?, ?)'),
    any: database.prepare('SELECT 1 AS known FROM journal LIMIT 1'),
    /** Returns a row if there are more rows than one transaction moves. */
    isLong: database.prepare(`SELECT 1 AS known FROM journal LIMIT 1 OFFSET ${ROWS_AT_ONCE}`),
    first: database.prepare('SELECT n, checksum, data FROM journal ORDER BY n LIMIT ?'),
    remove: database.prepare('DELETE FROM journal WHERE n <= ?'),
    setAside: database.prepare(`INSERT INTO damaged_journal (found_at, checksum, data)
      SELECT ?, checksum, data FROM journal WHERE n = ?`),
    damaged: database.prepare('SELECT count(*) AS count FROM damaged_journal'),
    newest: database.prepare("SELECT last_entry AS n FROM sums WHERE kind = 'account' AND id = ?"),
    markNewest: database.prepare("UPDATE sums SET last_entry = ? WHERE kind = 'account' AND id = ?"),
    keepEnded: database.prepare(`INSERT INTO ended (ref, account, kind, until)
      SELECT ref, account, 'charge', until FROM holds WHERE state = 'ended' ON CONFLICT DO NOTHING`),
    dropEnded: database.prepare("DELETE FROM holds WHERE state = 'ended'"),
    addEntry: database.prepare(
      'INSERT INTO entries (before, account, kind, ref, amount, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
  };
}

/** Maximum number of cached groups and names. A gateway has about as many groups as its users have models. */
const MAX_REMEMBERED = 20_000;

/** Numbers of the groups that count calls. Only an erasure deletes groups, and clears the cache. */
export class CallGroups {
  readonly #sql: Pick<CallsSql, 'addGroup' | 'groupId' | 'group'>;
  #ids = new Map<string, number>();
  #dimensions = new Map<number, Dimensions>();

  constructor(sql: CallsSql) {
    this.#sql = sql;
  }

  /** Returns the number of a group, and adds new groups. Runs inside a transaction. */
  idOf(dimensions: Dimensions): number {
    // Texts of records contain no NUL.
    const key = dimensions.join('\0');
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    this.#sql.addGroup.run(...dimensions);
    const id = Number(this.#sql.groupId.get(...dimensions)?.['id']);
    if (this.#ids.size >= MAX_REMEMBERED) this.#ids = new Map();
    this.#ids.set(key, id);
    return id;
  }

  dimensionsOf(id: number): Dimensions {
    const known = this.#dimensions.get(id);
    if (known) return known;
    const dimensions = Object.values(this.#sql.group.get(id) ?? {}).map(String);
    if (this.#dimensions.size >= MAX_REMEMBERED) this.#dimensions = new Map();
    this.#dimensions.set(id, dimensions);
    return dimensions;
  }

  /** Clears the cache: a transaction was rolled back, and its numbers may be assigned to other groups. */
  clear(): void {
    this.#ids = new Map();
    this.#dimensions = new Map();
  }
}

/** Numbers of accounts, users and keys. Only an erasure deletes names, and clears the cache. */
export class CallNames {
  readonly #sql: Pick<CallsSql, 'addName' | 'nameId'>;
  #ids = new Map<string, number>();

  constructor(sql: CallsSql) {
    this.#sql = sql;
  }

  /** Returns the number of a name, and adds new names. Runs inside a transaction. */
  idOf(name: string): number {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    this.#sql.addName.run(name);
    const id = Number(this.#sql.nameId.get(name)?.['id']);
    if (this.#ids.size >= MAX_REMEMBERED) this.#ids = new Map();
    this.#ids.set(name, id);
    return id;
  }

  /** Returns the number of a name; undefined if no call has it. */
  find(name: string): number | undefined {
    const id = this.#sql.nameId.get(name)?.['id'];
    return id == null ? undefined : Number(id);
  }

  /** Clears the cache, as {@link CallGroups.clear}. */
  clear(): void {
    this.#ids = new Map();
  }
}

/** Tables of calls, and the numbers of their groups and names. */
export interface CallsTables {
  readonly sql: CallsSql;
  readonly groups: CallGroups;
  readonly names: CallNames;
  readonly terms: CallTerms;
}

export function openCallsTables(sql: CallsSql): CallsTables {
  return { sql, groups: new CallGroups(sql), names: new CallNames(sql), terms: new CallTerms(sql.terms) };
}
