import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AccountBalance, BudgetStart, BudgetState, LedgerEntry } from '../../../contract/index.ts';
import { type Dimensions, dimensionsOf, hourOf, negated, type Sums, sumsOf } from './call-rows.ts';
import { CORRECTABLE_MS, storeKey, whole } from './check.ts';
import { factText, plannedFacts, readFacts } from './facts.ts';
import { storeUnavailable, unreadable } from './failure.ts';
import type {
  BudgetRow,
  CallRecord,
  LeaseState,
  LedgerChange,
  LedgerKeys,
  LedgerRows,
  LedgerTables,
  RequestRow,
} from './ledger.ts';

// Primitive `transact` for stores on a server. It compares and writes versioned rows in one round trip.

/** Stored row; ids begin with `account:`, `budget:` and `request:`. */
export interface StoredRow {
  readonly id: string;
  /** Changes with each write. */
  readonly version: string;
  readonly text: string;
}

export interface WrittenRow {
  readonly id: string;
  readonly text: string;
  /** Unix milliseconds after which it may be deleted; undefined means never. */
  readonly until: number | undefined;
  /** Unix milliseconds after which the sweeper may settle it, for a held request. */
  readonly due: number | undefined;
}

export interface WrittenEntry extends Omit<LedgerEntry, 'id'> {
  /** Entry number in the account; without gaps. */
  readonly n: number;
  /** Account balance after this entry. */
  readonly balance: number;
  /** Account name as the caller gave it; `account` is its store key. */
  readonly name: string;
}

/** Record of a call. With `before`, it replaces that record if it is stored. */
export interface WrittenRecord extends CallRecord {
  /** Store keys of the account and the call. */
  readonly account: string;
  readonly ref: string;
  /** Account name as the caller gave it. */
  readonly name: string;
}

/** Sums to add to a group of an hour. */
export interface RollupChange {
  readonly hour: number;
  readonly dimensions: Dimensions;
  readonly sums: Sums;
}

/** Changes of one transaction. */
export interface LedgerCommit {
  /** Rows behind the decision, with their versions; '' if absent. */
  readonly expected: ReadonlyMap<string, string>;
  /** Version of the written rows. */
  readonly version: string;
  readonly rows: readonly WrittenRow[];
  readonly entries: readonly WrittenEntry[];
  readonly records: readonly WrittenRecord[];
  readonly rollup: readonly RollupChange[];
  /**
   * Id of this ledger, set after several conflicts with other ledgers. If the changes conflict again, other ledgers
   * wait for {@link TURN_MS} or until this ledger has written, so its next attempt fits.
   */
  readonly turn?: string | undefined;
}

/** Maximum time in milliseconds that a ledger with several conflicts may make others wait. */
export const TURN_MS = 100;

/** Storage functions for {@link createVersionedLedger}. */
export interface VersionedRows {
  /** Store kind, for messages. */
  readonly kind: string;
  /** Maximum duration of a change, waiting included. */
  readonly timeoutMs: number;
  /** Store time in Unix milliseconds. */
  now(): number;
  /** Resolves with true if a broken connection caused an error and was replaced. */
  reconnected(error: unknown): Promise<boolean>;
  /** Reads the existing rows in one snapshot. */
  read(ids: readonly string[]): Promise<readonly StoredRow[]>;
  /**
   * Writes all changes if every row has the expected version, and resolves with undefined. Otherwise writes nothing and
   * resolves with the current rows.
   */
  commit(changes: LedgerCommit): Promise<readonly StoredRow[] | undefined>;
}

/** Account with the number of its newest entry. */
interface AccountLine extends AccountBalance {
  readonly name: string;
  readonly lastEntry: number;
}

type Row = AccountLine | BudgetRow | RequestRow;

/** Cached row; the version is '' and the row undefined if it is absent. */
interface Known {
  readonly version: string;
  readonly row: Row | Error | undefined;
}

/** Row ids of a change. */
interface ChangeKeys {
  readonly keys: LedgerKeys;
  readonly accountId: string;
  readonly requestId: string;
}

interface Job extends ChangeKeys {
  /** Runs the change on a draft; returns a function that resolves its promise after the commit. */
  readonly run: (draft: Draft, now: number) => () => void;
  readonly reject: (error: unknown) => void;
  readonly since: number;
  /** The change threw, and runs once more with freshly read rows. */
  isDoubtful: boolean;
}

/** Maximum number of changes in one transaction. */
const MAX_BATCH = 200;
/** Maximum number of waiting changes; further ones are rejected. */
const MAX_QUEUED = 10_000;
/** Maximum number of cached rows. */
const MAX_KNOWN = 20_000;
/** Number of changes in one transaction from which the next transaction waits, so that more changes share it. */
const LOAD = 4;
/** Pause between two transactions under load, in milliseconds. */
const SHARED_COMMIT_MS = 2;
/** Number of conflicts before a ledger requests its turn. */
const TURN_AFTER = 3;
/** Maximum pause in milliseconds before conflicting changes are retried. */
const LONGEST_PAUSE_MS = 2;
const NOT_THERE: Known = Object.freeze({ version: '', row: undefined });

/**
 * Creates `transact` for versioned rows. Concurrent changes of this process run one after the other on a draft and form
 * one transaction. This avoids a queue of round trips for a busy account. Under load a transaction waits 2 ms for more
 * changes. Rows written by this process are cached, so without changes by other processes a transaction takes one round
 * trip. After a conflict nothing is written, and all changes are decided again with the current rows, within the time
 * limit.
 */
export function createVersionedLedger(store: VersionedRows): LedgerTables['transact'] {
  const known = new Map<string, Known>();
  const parts: Parts = { store, known, id: nextVersion() };
  const queue: Job[] = [];
  let isBusy = false;

  const work = async (): Promise<void> => {
    while (queue.length > 0) {
      const jobs = queue.splice(0, MAX_BATCH);
      if (known.size > MAX_KNOWN) known.clear();
      try {
        await settle(parts, jobs);
      } catch (error) {
        // It is unknown if the changes were written.
        forget(known, jobs);
        for (const { reject } of jobs) reject(error);
      }
      if (jobs.length >= LOAD) await pause(SHARED_COMMIT_MS);
    }
    isBusy = false;
  };

  return (_operation, keys, change) =>
    new Promise((resolve, reject) => {
      if (queue.length >= MAX_QUEUED) {
        reject(storeUnavailable(`The ${store.kind} store is overloaded: too many changes are queued.`));
        return;
      }
      const place = { keys, accountId: accountRowId(keys.account), requestId: requestRowId(keys) };
      const run = (draft: Draft, now: number): (() => void) => {
        const made = change(draft.read(place), now);
        draft.write(place, made);
        return () => resolve(made.result);
      };
      queue.push({ ...place, run, reject, since: performance.now(), isDoubtful: false });
      if (isBusy) return;
      isBusy = true;
      // Collects all changes of this turn.
      setImmediate(() => void work());
    });
}

function forget(known: Map<string, Known>, jobs: readonly Job[]): void {
  for (const id of jobs.flatMap((job) => idsOf(known, job))) known.delete(id);
}

/** Shared state of a ledger's transactions. */
interface Parts {
  readonly store: VersionedRows;
  readonly known: Map<string, Known>;
  /** Unique per ledger and process. */
  readonly id: string;
}

/** Commit whose connection broke. It may have been written, or may still be. */
interface LostCommit {
  readonly version: string;
  readonly resolvers: readonly (() => void)[];
}

/**
 * Settles all jobs in one transaction. Retries conflicts until the time limit, and once more if the connection broke;
 * row versions then show if the commit was written. Rejects if the store rejects the commit.
 */
async function settle(parts: Parts, all: readonly Job[]): Promise<void> {
  const { store, known, id } = parts;
  let jobs = all;
  let lost: LostCommit | undefined;
  const doubtful: Job[] = [];
  for (let attempt = 0; ; attempt++) {
    jobs = refuseLate(store, jobs);
    if (jobs.length === 0) break;
    await load(store, known, jobs, lost === undefined);
    if (lost && isWritten(known, lost, jobs)) {
      for (const resolve of lost.resolvers) resolve();
      break;
    }
    const draft = new Draft(known);
    const now = store.now();
    const resolvers: (() => void)[] = [];
    jobs = jobs.filter((job) => {
      try {
        resolvers.push(job.run(draft, now));
        return true;
      } catch (error) {
        // The rows behind this error may be outdated.
        if (job.isDoubtful) job.reject(error);
        else doubtful.push(job);
        return false;
      }
    });
    if (jobs.length === 0) break;
    const changes = { ...draft.pack(), turn: attempt >= TURN_AFTER ? id : undefined };
    try {
      const newer = await store.commit(changes);
      if (!newer) {
        draft.remember(changes.version);
        for (const resolve of resolvers) resolve();
        break;
      }
      note(known, [...changes.expected.keys()], newer);
    } catch (error) {
      if (lost || !(await store.reconnected(error))) throw error;
      lost = { version: changes.version, resolvers };
      forget(known, jobs);
    }
    if (attempt > 0) await pause(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** attempt));
  }
  if (doubtful.length === 0) return;
  forget(known, doubtful);
  for (const job of doubtful) job.isDoubtful = true;
  await settle(parts, doubtful);
}

/** Checks if a commit was written: each change with writes writes its request. */
function isWritten(known: ReadonlyMap<string, Known>, { version }: LostCommit, jobs: readonly Job[]): boolean {
  return jobs.some(({ requestId }) => known.get(requestId)?.version === version);
}

function refuseLate({ kind, timeoutMs }: VersionedRows, jobs: readonly Job[]): readonly Job[] {
  const since = performance.now() - timeoutMs;
  return jobs.filter((job) => {
    if (job.since > since) return true;
    job.reject(storeUnavailable(`The ${kind} store is busy: too many change the same accounts or budgets.`));
    return false;
  });
}

/**
 * Reads missing rows. The budgets of a request are known only after the request. A reservation or credit is almost
 * always the first of its id, so with `doesPresume` its request counts as absent.
 */
async function load(
  store: VersionedRows,
  known: Map<string, Known>,
  jobs: readonly Job[],
  doesPresume: boolean,
): Promise<void> {
  for (;;) {
    const unknown = new Set<string>();
    for (const job of jobs) {
      const { keys, requestId, isDoubtful } = job;
      const isPresumedNew = (keys.budgets || keys.kind === 'credit') && !isDoubtful && doesPresume;
      if (isPresumedNew && !known.has(requestId)) known.set(requestId, NOT_THERE);
      for (const id of idsOf(known, job)) if (!known.has(id)) unknown.add(id);
    }
    if (unknown.size === 0) return;
    const ids = [...unknown];
    note(known, ids, await store.read(ids));
  }
}

function note(known: Map<string, Known>, ids: readonly string[], found: readonly StoredRow[]): void {
  for (const id of ids) known.set(id, NOT_THERE);
  for (const { id, version, text } of found) {
    try {
      known.set(id, { version, row: unpack(id, text) });
    } catch (error) {
      known.set(id, { version, row: error as Error });
    }
  }
}

/** Ids of the known rows of a change. */
function idsOf(known: ReadonlyMap<string, Known>, { keys, accountId, requestId }: ChangeKeys): readonly string[] {
  return [accountId, requestId, ...budgetIdsOf(keys, known.get(requestId)?.row).map(budgetRowId)];
}

function budgetIdsOf({ budgets }: LedgerKeys, request: Row | Error | undefined): readonly string[] {
  if (budgets) return budgets;
  return request && 'state' in request && request.state !== 'ended' ? request.budgets : [];
}

/** Uncommitted rows of a transaction. */
class Draft {
  readonly #known: Map<string, Known>;
  readonly #expected = new Map<string, string>();
  readonly #rows = new Map<string, Row>();
  readonly #entries: WrittenEntry[] = [];
  /** Newest record of each request. */
  readonly #records = new Map<string, WrittenRecord>();
  readonly #rollup = new Map<string, RollupChange>();

  constructor(known: Map<string, Known>) {
    this.#known = known;
  }

  read({ keys, accountId, requestId }: ChangeKeys): LedgerRows {
    const account = this.#row(accountId) as AccountLine | undefined;
    const request = this.#row(requestId) as RequestRow | undefined;
    const budgets = budgetIdsOf(keys, request).map((id) => this.#row(budgetRowId(id)) as BudgetRow | undefined);
    return { account, request, budgets };
  }

  write({ keys, accountId, requestId }: ChangeKeys, change: LedgerChange<unknown>): void {
    const { account: sums, request, budgets = [], entry, record } = change;
    const { account, name, ref } = keys;
    for (const budget of budgets) this.#rows.set(budgetRowId(budget.id), budget);
    if (request) this.#rows.set(requestId, request);
    if (sums) {
      const before = this.#row(accountId) as AccountLine | undefined;
      const lastEntry = (before?.lastEntry ?? 0) + Number(entry !== undefined);
      this.#rows.set(accountId, { ...sums, name: before?.name ?? name, lastEntry });
      if (entry) this.#entries.push({ ...entry, account, name, ref, n: lastEntry, balance: sums.balance });
    }
    if (record) this.#record({ ...record, account, name, ref });
  }

  #row(id: string): Row | undefined {
    const written = this.#rows.get(id);
    if (written) return written;
    const { version, row } = this.#known.get(id) ?? NOT_THERE;
    if (row instanceof Error) throw row;
    this.#expected.set(id, version);
    return row;
  }

  #record(record: WrittenRecord): void {
    const { account, name, ref, facts, cost, countedAt, before } = record;
    // Store keys contain no NUL.
    const key = `${account}\0${ref}`;
    const isNew = this.#records.get(key)?.before === undefined && this.#records.has(key);
    const { before: _, ...fresh } = record;
    // A record of this transaction is not stored yet.
    this.#records.set(key, isNew ? fresh : record);
    const own = factText(name);
    if (before) this.#count(countedAt, dimensionsOf(own, before.facts), negated(sumsOf(before.facts, before.cost)));
    this.#count(countedAt, dimensionsOf(own, facts), sumsOf(facts, cost));
  }

  #count(at: number, dimensions: Dimensions, sums: Sums): void {
    const hour = hourOf(at);
    // Texts of records contain no NUL.
    const key = `${hour}\0${dimensions.join('\0')}`;
    const counted = this.#rollup.get(key)?.sums;
    const total = counted ? counted.map((sum, place) => sum + (sums[place] ?? 0)) : sums;
    this.#rollup.set(key, { hour, dimensions, sums: total });
  }

  pack(): LedgerCommit {
    return {
      expected: this.#expected,
      version: nextVersion(),
      rows: [...this.#rows].map(([id, row]) => pack(id, row)),
      entries: this.#entries,
      records: [...this.#records.values()],
      rollup: [...this.#rollup.values()],
    };
  }

  /** Caches the written rows. Ended requests are rarely read again, so they are dropped. */
  remember(version: string): void {
    for (const [id, row] of this.#rows) {
      if ('state' in row && row.state !== 'held') this.#known.delete(id);
      else this.#known.set(id, { version, row });
    }
    for (const [id, before] of this.#expected) if (before === '' && !this.#rows.has(id)) this.#known.delete(id);
  }
}

const PROCESS = randomBytes(9).toString('base64url');
let versions = 0;

/**
 * Returns a version that is unique over all changes of all processes, even after the store was restored from a backup.
 */
export function nextVersion(): string {
  versions += 1;
  return `${PROCESS}.${versions.toString(36)}`;
}

const [ACCOUNT, BUDGET, REQUEST] = ['account:', 'budget:', 'request:'] as const;

export function accountRowId(key: string): string {
  return `${ACCOUNT}${key}`;
}

export function budgetRowId(key: string): string {
  return `${BUDGET}${key}`;
}

export function requestRowId({ account, kind, ref }: LedgerKeys): string {
  return `${REQUEST}${JSON.stringify([kind, account, ref])}`;
}

/** Returns the keys of a held request. `nameOf` returns the name of an account by its store key. */
export function requestKeysOf(id: string, nameOf: (account: string) => string): LedgerKeys {
  const [, account = '', ref = ''] = JSON.parse(id.slice(REQUEST.length)) as readonly string[];
  return { account, name: nameOf(account), kind: 'charge', ref };
}

export function pack(id: string, row: Row): WrittenRow {
  if ('name' in row) {
    const { name, lastEntry, updatedAt, ...sums } = row;
    // If the key is a hash, the name may be any text, so it is stored as JSON.
    const reported = accountRowId(name) === id ? undefined : JSON.stringify(name);
    const text = JSON.stringify({ name: reported, ...sums, last_entry: lastEntry, updated_at: updatedAt });
    return { id, text, until: undefined, due: undefined };
  }
  if (!('state' in row)) {
    const { spent, held, until, start, lease } = row;
    // Keeps the row for late corrections of the sweeper's charge.
    const last = until === undefined ? undefined : until + CORRECTABLE_MS;
    return { id, text: JSON.stringify({ spent, held, until, start, lease }), until: last, due: undefined };
  }
  if (row.state === 'ended') return { id, text: JSON.stringify({ state: 'ended' }), until: row.until, due: undefined };
  const { state, amount, budgets, facts, until, sweptAt, countedAt } = row;
  const planned = plannedFacts(facts);
  const text = JSON.stringify({
    state,
    amount,
    budgets,
    facts: planned,
    until,
    swept_at: sweptAt,
    counted_at: countedAt,
  });
  return state === 'held' ? { id, text, until: undefined, due: until } : { id, text, until, due: undefined };
}

/** Reads the output of {@link pack}. Throws for anything else; it never counts as absent. */
export function unpack(id: string, text: string): Row {
  if (id.startsWith(ACCOUNT)) return readAccountRow({ id, text });
  const row = readObject(text);
  if (id.startsWith(BUDGET)) {
    const until = row['until'];
    const [spent, held] = [whole(row['spent']), whole(row['held'])];
    return {
      id: id.slice(BUDGET.length),
      spent,
      held,
      until: until === undefined ? undefined : whole(until),
      start: readStart(row['start']),
      lease: readLease(row['lease']),
    };
  }
  const { state, budgets, facts } = row;
  // No change depends on its expiry.
  if (state === 'ended') return { state, until: undefined };
  if ((state !== 'held' && state !== 'swept') || !Array.isArray(budgets)) throw unreadable('request');
  return {
    ...{ state, budgets: budgets.map(String), facts: readFacts(JSON.stringify(facts)) },
    ...{ amount: whole(row['amount']), until: whole(row['until']), sweptAt: whole(row['swept_at']) },
    countedAt: whole(row['counted_at']),
  };
}

function readLease(value: unknown): LeaseState | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { share, shares } = value as Readonly<Record<string, unknown>>;
  if (share !== undefined) return { share: whole(share) };
  if (typeof shares !== 'object' || shares === null) throw unreadable('lease of a budget');
  const entries = Object.entries(shares as Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  return {
    shares: Object.fromEntries(
      entries.map(([id, each]) => [id, { share: whole(each['share']), until: whole(each['until']) }]),
    ),
  };
}

/** Reads the beginning of a budget; undefined without one. */
export function readStart(value: unknown): BudgetStart | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { since, before, counted } = value as Readonly<Record<string, unknown>>;
  return { since: whole(since), before: whole(before), counted: whole(counted) };
}

/** Reads the row of an account; throws if it is unreadable. */
export function readAccountRow({ id, text }: Pick<StoredRow, 'id' | 'text'>): AccountLine {
  const row = readObject(text);
  const name = row['name'] === undefined ? id.slice(ACCOUNT.length) : parse(row['name']);
  return {
    ...{ name: String(name), balance: whole(row['balance']), held: whole(row['held']), spent: whole(row['spent']) },
    ...{ credited: whole(row['credited']), updatedAt: whole(row['updated_at']), lastEntry: whole(row['last_entry']) },
  };
}

/** Returns the states of budgets, in the requested order. `read` reads their rows. */
export async function readBudgets(
  read: VersionedRows['read'],
  ids: readonly string[],
): Promise<readonly BudgetState[]> {
  const rowIds = ids.map((id) => budgetRowId(storeKey(id)));
  const found = new Map((await read([...new Set(rowIds)])).map(({ id, text }) => [id, readObject(text)]));
  return rowIds.map((id) => {
    const row = found.get(id);
    const start = readStart(row?.['start']);
    const sums = { spent: whole(row?.['spent'] ?? 0), held: whole(row?.['held'] ?? 0) };
    return start ? { ...sums, start } : sums;
  });
}

function readObject(text: string): Readonly<Record<string, unknown>> {
  const value = parse(text);
  if (typeof value !== 'object' || value === null) throw unreadable('row of the ledger');
  return value as Readonly<Record<string, unknown>>;
}

function parse(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch (cause) {
    throw unreadable('row of the ledger', cause);
  }
}
