import type { AccountBalance, Ledger, LedgerEntry, Sets, Store, StoreWatcher } from '../../../contract/index.ts';
import { createLocalCounters } from '../../policies/kit/index.ts';
import { checkMember, entryId, pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { storeClosed } from '../kit/failure.ts';
import {
  type BudgetRow,
  createLedgerChanges,
  type EndedRequest,
  type LedgerChange,
  type LedgerKeys,
  type LedgerRows,
  NEW_ACCOUNT,
  type OpenRequest,
  requestKey,
} from '../kit/ledger.ts';
import { createRename, type Renaming } from '../kit/rename.ts';
import { type FailureWatcher, timeOperations } from '../kit/timed.ts';
import { createCallRecords } from './records.ts';

/** Atomic half of a store in this process's memory. The `keyv` store also uses it. */
export function createMemoryAtomic(
  isClosed: () => boolean,
  observe?: StoreWatcher,
  onFailure?: FailureWatcher,
): Pick<Store, 'ledger' | 'sets' | 'counters'> {
  return {
    ledger: timeOperations(refuseClosed(createMemoryLedger(), isClosed), 'ledger', observe, onFailure),
    sets: timeOperations(refuseClosed(createMemorySets(), isClosed), 'sets', observe, onFailure),
    counters: timeOperations(refuseClosed(createLocalCounters(), isClosed), 'counters', observe, onFailure),
  };
}

/** Wraps the methods; they reject with `store_unavailable` after the store is closed. */
function refuseClosed<T extends object>(half: T, isClosed: () => boolean): T {
  const guarded = Object.entries(half).map(([name, method]) => [
    name,
    (...args: unknown[]) =>
      isClosed() ? Promise.reject(storeClosed()) : (method as (...a: unknown[]) => unknown)(...args),
  ]);
  return Object.fromEntries(guarded) as T;
}

/** Sets in this process's memory. */
function createMemorySets(): Sets {
  const sets = new Map<string, Set<string>>();

  const add = (name: string, member: string, max = Number.POSITIVE_INFINITY): 'added' | 'present' | 'full' => {
    checkMember(member);
    const set = sets.get(name) ?? new Set<string>();
    if (set.has(member)) return 'present';
    if (set.size >= max) return 'full';
    sets.set(name, set.add(member));
    return 'added';
  };

  const remove = (name: string, member: string): boolean => {
    const set = sets.get(name);
    const removed = set?.delete(member) ?? false;
    if (set?.size === 0) sets.delete(name);
    return removed;
  };

  return {
    add: async (name, member, max) => add(name, member, max),
    remove: async (name, member) => remove(name, member),
    has: async (name, member) => sets.get(name)?.has(member) ?? false,
    list: async (name, { limit, after }) => {
      const members = [...(sets.get(name) ?? [])].sort(byBytes);
      const rest = after === undefined ? members : members.filter((member) => byBytes(member, after) > 0);
      return rest.slice(0, pageLimit(limit));
    },
    size: async (name) => sets.get(name)?.size ?? 0,
  };
}

/** Compares by UTF-8 bytes in ascending order, like SQLite, Redis and Postgres (collation "C"). */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Number of entries kept per account; older ones are merged into a "carried forward" entry. */
const MAX_ENTRIES = 10_000;
/** Number of entries carried forward at once. */
const CARRIED = 1000;

/** Ledger entries and sums of one account in this process. */
interface Account {
  readonly name: string;
  sums: AccountBalance;
  lastEntry: number;
  /** Oldest first. */
  readonly entries: Entry[];
}

type Entry = Omit<LedgerEntry, 'account'>;

type MemoryRows = ReturnType<typeof createRows>;

/** Ledger state of this process; requests are by {@link requestKey}. */
function createRows() {
  return {
    accounts: new Map<string, Account>(),
    budgets: new Map<string, BudgetRow>(),
    open: new Map<string, OpenRequest & { readonly keys: LedgerKeys }>(),
    /** Ended requests and completed credits, oldest first. */
    ended: new Map<string, EndedRequest>(),
    records: createCallRecords(),
  };
}

/** Ledger in this process's memory. Changes are synchronous, which makes them atomic. */
function createMemoryLedger(): Ledger {
  const ledgerRows = createRows();
  const { accounts, budgets, open, records } = ledgerRows;
  const changes = createLedgerChanges({
    transact: async (_operation, keys, change) => {
      const made = change(readRows(ledgerRows, keys), Date.now());
      write(ledgerRows, keys, made);
      return made.result;
    },
    findExpired: async (now) =>
      [...open.values()].flatMap(({ state, until, keys }) => (state === 'held' && until < now ? [keys] : [])),
  });
  return {
    ...changes,
    rename: createRename({
      calls: async (query) => records.calls(query),
      report: async (query) => records.report(query),
      isRunning: async (renaming) => isRunning(ledgerRows, renaming),
      replaceCalls: async (renamed) => records.replace(renamed),
      renameAccount: async (renaming) => renameAccount(ledgerRows, renaming),
    }),
    sweep: async (now) => {
      const swept = await changes.sweep(now);
      purge(ledgerRows, now);
      return swept;
    },
    calls: async (query) => records.calls(query),
    report: async (query) => records.report(query),
    forgetCalls: async (before) => records.forget(before),
    balance: async (name) => accounts.get(storeKey(name))?.sums ?? NEW_ACCOUNT,
    accounts: async ({ limit, after }) => {
      const all = [...accounts.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      const rest = after === undefined ? all : all.filter(({ name }) => name > after);
      return rest.slice(0, pageLimit(limit)).map(({ name, sums }) => ({ account: name, ...sums }));
    },
    budgets: async (ids) =>
      ids.map((id) => {
        const { spent = 0, held = 0, start } = budgets.get(storeKey(id)) ?? {};
        return start ? { spent, held, start } : { spent, held };
      }),
    entries: async (account, { limit, after }) => {
      const before = readCursor(after);
      const older = (accounts.get(storeKey(account))?.entries ?? []).filter((entry) => Number(entry.id) < before);
      return older
        .slice(-pageLimit(limit))
        .reverse()
        .map((entry) => ({ ...entry, account }));
    },
  };
}

function readRows({ accounts, budgets, open, ended }: MemoryRows, keys: LedgerKeys): LedgerRows {
  const key = requestKey(keys);
  const request = open.get(key) ?? ended.get(key);
  const ids = keys.budgets ?? (request && request.state !== 'ended' ? request.budgets : []);
  return { account: accounts.get(keys.account)?.sums, request, budgets: ids.map((id) => budgets.get(id)) };
}

function write(
  { accounts, budgets, open, ended, records }: MemoryRows,
  keys: LedgerKeys,
  { account: sums, request, budgets: rows = [], entry, record }: LedgerChange<unknown>,
): void {
  for (const row of rows) budgets.set(row.id, row);
  const key = requestKey(keys);
  if (request?.state === 'ended') {
    open.delete(key);
    ended.set(key, request);
  } else if (request) open.set(key, { ...request, keys });
  if (sums) {
    const account = accounts.get(keys.account) ?? { name: keys.name, sums, lastEntry: 0, entries: [] };
    accounts.set(keys.account, account);
    account.sums = sums;
    const forget = ({ kind, ref }: Entry) => ended.delete(requestKey({ account: keys.account, kind, ref }));
    if (entry) append(account, { ...entry, ref: keys.ref }, forget);
  }
  if (record) records.write(keys.name, keys.ref, record);
}

function isRunning({ open }: MemoryRows, renaming: Renaming): boolean {
  return [...open.values()].some(
    ({ state, keys, facts }) => state === 'held' && (keys.account === renaming.account || renaming.isOf(facts)),
  );
}

function renameAccount(rows: MemoryRows, renaming: Renaming): boolean {
  const { accounts, budgets, open, ended, records } = rows;
  if (isRunning(rows, renaming)) return false;
  records.renameSums(renaming);
  for (const [key, { keys, facts }] of open)
    if (keys.account === renaming.account || renaming.isOf(facts)) open.delete(key);
  for (const kind of ['charge', 'credit'] as const) {
    const beginning = requestKey({ account: renaming.account, kind, ref: '' });
    for (const key of ended.keys()) if (key.startsWith(beginning)) ended.delete(key);
  }
  for (const id of budgets.keys()) if (renaming.isBudget(id)) budgets.delete(id);
  const account = accounts.get(renaming.account);
  if (!account) return true;
  accounts.delete(renaming.account);
  const entries = account.entries.map((entry) => ({
    ...entry,
    ref: renaming.text(entry.ref),
    reason: renaming.text(entry.reason),
  }));
  accounts.set(renaming.id, { ...account, name: renaming.id, entries });
  return true;
}

/** Deletes expired requests and budgets. */
function purge({ budgets, open, ended }: MemoryRows, now: number): void {
  const isOver = ({ until }: { readonly until: number | undefined }): boolean => until !== undefined && until < now;
  for (const [key, request] of open) if (request.state === 'swept' && isOver(request)) open.delete(key);
  for (const [id, budget] of budgets) if (isOver(budget)) budgets.delete(id);
  for (const [key, request] of ended) {
    if (isOver(request)) ended.delete(key);
    // Later requests expire later.
    else if (request.until !== undefined) break;
  }
}

/** Appends an entry; merges the oldest ones into one entry if there are too many. */
function append(account: Account, entry: Omit<Entry, 'id'>, forget: (entry: Entry) => void): void {
  account.lastEntry += 1;
  account.entries.push({ id: entryId(account.lastEntry), ...entry });
  if (account.entries.length <= MAX_ENTRIES + CARRIED) return;
  const old = account.entries.splice(0, CARRIED + 1);
  const last = old.at(-1);
  if (!last) return;
  for (const each of old) forget(each);
  const amount = old.reduce((sum, each) => sum + each.amount, 0);
  const carried = { kind: amount < 0 ? 'charge' : 'credit', amount, reason: 'carried forward', ref: '' } as const;
  account.entries.unshift({ ...last, ...carried });
}
