import type {
  AccountBalance,
  BudgetOpening,
  BudgetShare,
  BudgetShareRequest,
  BudgetStart,
  BudgetState,
  CallFacts,
  Ledger,
  LedgerEntry,
  Reservation,
  ReserveResult,
  ReserveStates,
} from '../../../contract/index.ts';
import { LONGEST_LAG_MS } from './call-rows.ts';
import {
  CORRECTABLE_MS,
  checkCredit,
  checkCredited,
  checkReservation,
  MOST_MONEY,
  noAmount,
  REMEMBER_MS,
  spentTooMuch,
  storeKey,
} from './check.ts';
import { chargeReason, cleanFacts, correctionReason, expiredFacts } from './facts.ts';

// Ledger algorithm shared by all stores with transactions. Pure functions of a few rows return the rows to write.

/** Rows of one change. Keys are those of `storeKey`. */
export interface LedgerKeys {
  readonly account: string;
  /** Account name as the caller gave it. */
  readonly name: string;
  /** Kind of the change: a request to charge, or the id of a credit. */
  readonly kind: LedgerEntry['kind'];
  readonly ref: string;
  /** Undefined means the budgets of the held or swept request. */
  readonly budgets?: readonly string[] | undefined;
}

/** Spent and held amounts of a budget, over all accounts. */
export interface BudgetRow extends BudgetState {
  readonly id: string;
  /** Unix milliseconds after which it may be deleted. */
  readonly until: number | undefined;
  readonly start: BudgetStart | undefined;
  readonly lease: LeaseState | undefined;
}

/** Leases of a budget, or the share of one process. */
export interface LeaseState {
  /** Share of the budget that this row may spend and hold. */
  readonly share?: number;
  /** All shares of a budget by id, for the row that lists them. */
  readonly shares?: Readonly<Record<string, LeasedShare>>;
}

/** Listed share. A gateway of an earlier version may drop the share from its own row, but not from the list. */
export interface LeasedShare {
  readonly share: number;
  /** Unix milliseconds after which others may end the lease. */
  readonly until: number;
}

/**
 * Request that holds its estimate, or that the sweeper has charged with it. The call of a swept request may still end
 * and correct the charge.
 */
export interface OpenRequest {
  readonly state: 'held' | 'swept';
  readonly amount: number;
  /** Store keys. */
  readonly budgets: readonly string[];
  readonly facts: CallFacts;
  /** Unix milliseconds until which it is held, or may be corrected. */
  readonly until: number;
  /** Time of its record if swept; 0 while held. */
  readonly sweptAt: number;
  /** Time of the reservation. Budgets and reports count the request at this time, whenever it ends. */
  readonly countedAt: number;
}

/** Settled or released request, or completed credit. Neither happens twice. */
export interface EndedRequest {
  readonly state: 'ended';
  /** Unix milliseconds after which it may be deleted; undefined means never. */
  readonly until: number | undefined;
}

export type RequestRow = OpenRequest | EndedRequest;

/** Current rows; undefined if absent. */
export interface LedgerRows {
  readonly account: AccountBalance | undefined;
  readonly request: RequestRow | undefined;
  /** In the order of the keys. */
  readonly budgets: readonly (BudgetRow | undefined)[];
}

/** Record of an ended call, or its correction. */
export interface CallRecord {
  /** Clean facts. */
  readonly facts: CallFacts;
  readonly cost: number;
  readonly at: number;
  readonly countedAt: number;
  /** Replaced record, with the same time. */
  readonly before?: { readonly facts: CallFacts; readonly cost: number };
}

/** Result of a change, and the rows to write. */
export interface LedgerChange<T> {
  readonly result: T;
  readonly account?: AccountBalance;
  readonly request?: RequestRow;
  readonly budgets?: readonly BudgetRow[];
  readonly entry?: Pick<LedgerEntry, 'kind' | 'amount' | 'reason' | 'at'> | undefined;
  readonly record?: CallRecord | undefined;
}

/** Transactions of a store, for {@link createLedgerChanges}. */
export interface LedgerTables {
  /**
   * Runs `change` over the rows of the keys, and writes all of its rows or none. No other change may run between its
   * read and its write. `change` may run more than once. `now` is the store's time; `operation` names the duration
   * metric.
   */
  transact<T>(
    operation: string,
    keys: LedgerKeys,
    change: (rows: LedgerRows, now: number) => LedgerChange<T>,
  ): Promise<T>;
  /** Returns some requests whose hold expired before `now`; empty if there are no more. */
  findExpired(now: number): Promise<readonly LedgerKeys[]>;
}

/** Creates the changes of a ledger over the rows of a store. */
export function createLedgerChanges({
  transact,
  findExpired,
}: LedgerTables): Pick<Ledger, 'reserve' | 'settle' | 'release' | 'credit' | 'sweep' | 'openBudget'> {
  return {
    reserve(reservation) {
      const { account, requestId, budgets = [] } = reservation;
      const ids = budgets.map(({ id }) => storeKey(id));
      const keys = keysOf('charge', account, requestId, ids);
      return transact('ledger.reserve', keys, (rows) => reserve(rows, reservation, ids));
    },
    settle: (settlement) =>
      transact('ledger.settle', keysOf('charge', settlement.account, settlement.requestId), (rows, now) => {
        if (!Number.isSafeInteger(settlement.amount) || settlement.amount < 0) throw noAmount();
        return end(rows, settlement, now);
      }),
    release: (account, requestId, facts, at = Date.now()) =>
      transact('ledger.release', keysOf('charge', account, requestId), (rows, now) =>
        end(rows, { amount: undefined, facts, now: at }, now),
      ),
    credit: (account, id, amount, reason, now) =>
      transact('ledger.credit', keysOf('credit', account, id), (rows) => credit(rows, amount, reason, now)),
    openBudget: (opening) =>
      transact('ledger.openBudget', keysOf('charge', NO_ACCOUNT, NO_ACCOUNT, [storeKey(opening.id)]), (rows) =>
        openBudget(rows, opening),
      ),
    async sweep(now) {
      let total = 0;
      for (let settled = 1; settled > 0; total += settled) {
        const found = await findExpired(now);
        const swept = await Promise.all(
          found.map((keys) => transact('ledger.sweep', keys, (rows) => sweep(rows, now))),
        );
        settled = swept.filter(Boolean).length;
      }
      return total;
    },
  };
}

/** Account of changes without an account; no account has this name. */
const NO_ACCOUNT = '';

function keysOf(kind: LedgerKeys['kind'], name: string, ref: string, budgets?: readonly string[]): LedgerKeys {
  return { account: storeKey(name), name, kind, ref: storeKey(ref), budgets };
}

/** Text key of a request or credit. Store keys contain no NUL. */
export function requestKey({ account, kind, ref }: Pick<LedgerKeys, 'account' | 'kind' | 'ref'>): string {
  return `${kind}\0${account}\0${ref}`;
}

/** Sums of an unused account. */
export const NEW_ACCOUNT: AccountBalance = Object.freeze({ balance: 0, held: 0, spent: 0, credited: 0, updatedAt: 0 });

function newBudget(id: string, until: number | undefined): BudgetRow {
  return { id, spent: 0, held: 0, until, start: undefined, lease: undefined };
}

/** Holds the estimate in the account and in all budgets, or in none of them. */
function reserve(rows: LedgerRows, reservation: Reservation, ids: readonly string[]): LedgerChange<ReserveResult> {
  checkReservation(reservation);
  if (rows.request) return { result: { outcome: 'duplicate' } };
  const { amount, lower } = reservation;
  const refused = findRefusal(rows, reservation, amount);
  if (!refused) return hold(rows, reservation, ids, amount, undefined);
  const smaller = lower?.(statesOf(rows, reservation));
  if (smaller === undefined) return { result: refused };
  if (!Number.isSafeInteger(smaller) || smaller < 0) throw noAmount();
  const refusedSmaller = findRefusal(rows, reservation, smaller);
  return refusedSmaller ? { result: refusedSmaller } : hold(rows, reservation, ids, smaller, smaller);
}

function statesOf(rows: LedgerRows, { budgets = [] }: Reservation): ReserveStates {
  return {
    account: rows.account ?? NEW_ACCOUNT,
    budgets: budgets.map((_, at) => ({ spent: rows.budgets[at]?.spent ?? 0, held: rows.budgets[at]?.held ?? 0 })),
  };
}

/** Returns the reason to reject an amount; undefined if it fits. */
function findRefusal(
  rows: LedgerRows,
  { floor, budgets = [] }: Reservation,
  amount: number,
): ReserveResult | undefined {
  const { account = NEW_ACCOUNT } = rows;
  if (amount > 0 && account.spent + account.held + amount > MOST_MONEY) throw spentTooMuch();
  if (account.balance - account.held - amount < floor) return { outcome: 'insufficient' };
  for (let at = 0; at < budgets.length; at += 1) {
    const row = rows.budgets[at];
    const used = usedOf(row);
    const { limit = 0, isShare = false } = budgets[at] ?? {};
    const most = isShare ? (row?.lease?.share ?? 0) : limit;
    if (used + amount > Math.min(most, limit, MOST_MONEY)) return { outcome: 'over_budget', budget: at, used };
  }
  return undefined;
}

function usedOf(budget: BudgetRow | undefined): number {
  return budget ? budget.spent + budget.held : 0;
}

/** Holds an amount that {@link findRefusal} accepted. `resultAmount` is the amount of the result. */
function hold(
  rows: LedgerRows,
  { expiresAt, facts, budgets: limits = [], now }: Reservation,
  ids: readonly string[],
  amount: number,
  resultAmount: number | undefined,
): LedgerChange<ReserveResult> {
  const { account = NEW_ACCOUNT } = rows;
  const budgets = limits.map((limit, at): BudgetRow => {
    const known = rows.budgets[at] ?? newBudget(ids[at] ?? '', limit.until);
    const { id, spent, held, until, start, lease } = known;
    return { id, spent, held: held + amount, until, start, lease };
  });
  const used = budgets.map(usedOf);
  return {
    result: resultAmount === undefined ? { outcome: 'held', used } : { outcome: 'held', used, amount: resultAmount },
    account: { ...account, held: account.held + amount },
    budgets,
    request: { state: 'held', amount, budgets: ids, facts, until: expiresAt, sweptAt: 0, countedAt: now },
  };
}

/** End of a request. */
interface Ending {
  /** Charge; undefined for a release, which writes no ledger entry. */
  readonly amount: number | undefined;
  /** Undefined writes no record. */
  readonly facts: CallFacts | undefined;
  /** Names of budgets that are not charged. */
  readonly uncharged?: readonly string[] | undefined;
  readonly now: number;
}

/** Ends a held request, or corrects the charge of a swept one. The result is false for other requests. */
function end(rows: LedgerRows, ending: Ending, storeNow: number): LedgerChange<boolean> {
  const { account, request } = rows;
  if (!account || !request || request.state === 'ended') return { result: false };
  if (request.state === 'swept') return correct(rows, account, request, ending, storeNow);
  const { amount: cost = 0, facts, uncharged, now } = ending;
  const isCharged = ending.amount !== undefined;
  const { balance, held, spent, credited, updatedAt } = account;
  const reason = facts ? chargeReason(facts) : '';
  const { countedAt } = request;
  const at = Math.max(countedAt, Math.min(now, countedAt + LONGEST_LAG_MS));
  return {
    result: true,
    account: {
      balance: balance - cost,
      held: held - request.amount,
      spent: spent + cost,
      credited,
      updatedAt: isCharged ? now : updatedAt,
    },
    budgets: spendBudgets(rows, { uncharged, cost, back: 0, held: request.amount, countedAt }),
    request: { state: 'ended', until: (isCharged ? now : request.until) + REMEMBER_MS },
    entry: isCharged ? { kind: 'charge', amount: 0 - cost, reason, at: now } : undefined,
    record: facts && { facts: cleanFacts(facts), cost, at, countedAt },
  };
}

/** Charges an expired hold at its estimate, and stores that so that the call can correct it. */
function sweep(rows: LedgerRows, now: number): LedgerChange<boolean> {
  const { account, request: hold } = rows;
  if (!account || hold?.state !== 'held' || hold.until >= now) return { result: false };
  const { amount, facts } = hold;
  const made = end(rows, { amount, facts: expiredFacts(facts), now }, now);
  const until = now + CORRECTABLE_MS;
  return { ...made, request: { ...hold, state: 'swept', facts, until, sweptAt: made.record?.at ?? now } };
}

/** Replaces the sweeper's charge for a request by the actual cost. */
function correct(
  rows: LedgerRows,
  account: AccountBalance,
  swept: OpenRequest,
  { amount = 0, facts, uncharged }: Ending,
  now: number,
): LedgerChange<boolean> {
  const back = swept.amount - amount;
  const before = cleanFacts(expiredFacts(swept.facts));
  const after = facts ? cleanFacts(facts) : before;
  return {
    result: true,
    account: { ...account, balance: account.balance + back, spent: account.spent - back, updatedAt: now },
    budgets: spendBudgets(rows, { uncharged, cost: amount, back: swept.amount, held: 0, countedAt: swept.countedAt }),
    request: { state: 'ended', until: now + REMEMBER_MS },
    entry: { kind: 'charge', amount: back, reason: correctionReason(facts ?? before), at: now },
    record: {
      facts: after,
      cost: amount,
      at: swept.sweptAt,
      countedAt: swept.countedAt,
      before: { facts: before, cost: swept.amount },
    },
  };
}

/** Amounts that the end of a request adds to its budgets. */
interface Spending {
  /** Names of budgets that are not charged. */
  readonly uncharged: readonly string[] | undefined;
  readonly cost: number;
  /** Amount to subtract from the spent amount. */
  readonly back: number;
  /** Amount to subtract from the held amount. */
  readonly held: number;
  readonly countedAt: number;
}

/** Updates the budgets of an ended request. */
function spendBudgets(
  { budgets }: LedgerRows,
  { uncharged = [], cost, back, held, countedAt }: Spending,
): readonly BudgetRow[] {
  const free = uncharged.map(storeKey);
  const rows: BudgetRow[] = [];
  for (const budget of budgets) {
    // Deleted: its period ended long ago.
    if (!budget) continue;
    const { id, until, start, lease } = budget;
    const added = (free.includes(id) ? 0 : cost) - back;
    rows.push({
      id,
      spent: budget.spent + added,
      held: budget.held - held,
      until,
      start: start && countedAt < start.before ? { ...start, counted: start.counted + added } : start,
      lease,
    });
  }
  return rows;
}

/** Adds the part of an opening amount that the budget does not include yet. */
function openBudget({ budgets }: LedgerRows, opening: BudgetOpening): LedgerChange<BudgetState> {
  const { since, spent: wanted, until } = opening;
  if (!Number.isSafeInteger(wanted) || wanted < 0) throw noAmount();
  const known = budgets[0] ?? newBudget(storeKey(opening.id), until);
  // All that a budget includes at its beginning was counted before.
  const first = { since, before: opening.before, counted: known.spent };
  const begun = known.start?.since === since ? known.start : first;
  const added = Math.max(0, Math.min(wanted - begun.counted, MOST_MONEY - known.spent - known.held));
  const start = { ...begun, counted: begun.counted + added };
  const spent = known.spent + added;
  return { result: { spent, held: known.held, start }, budgets: [{ ...known, spent, start }] };
}

/** Part of the rest of a budget that one share may have. Near the end of a budget nothing is leased. */
const SHARE_PART = 20;
/** Lifetime of the rows of leases after their last change. */
const KEEP_LEASES_MS = 35 * 86_400_000;

/** Creates the leases of budgets, for stores whose processes would otherwise wait for one another. */
export function createBudgetShares({
  transact,
}: Pick<LedgerTables, 'transact'>): Required<Pick<Ledger, 'shareBudget'>> {
  return {
    shareBudget: (request) => {
      const ids = [request.id, `${request.id}#leases`, request.shareId].map(storeKey);
      return transact('ledger.shareBudget', keysOf('charge', NO_ACCOUNT, NO_ACCOUNT, ids), (rows, now) =>
        shareBudget(rows, request, ids, now),
      );
    },
  };
}

/**
 * The budget counts a whole share as held, in place of what the share spends and holds. A request first moves the spent
 * amount to the budget and returns the free part; the holds of running calls stay in the share.
 */
function shareBudget(
  { budgets: [known, listed, own] }: LedgerRows,
  { limit, until, amount, ttlMs, ifExpired = false, shareId }: BudgetShareRequest,
  [id = '', listId = '', ownId = '']: readonly string[],
  now: number,
): LedgerChange<BudgetShare> {
  if (!Number.isSafeInteger(amount) || amount < 0) throw noAmount();
  const budget = known ?? newBudget(id, until);
  const share = own ?? newBudget(ownId, undefined);
  const shares = listed?.lease?.shares ?? {};
  const expired = Object.keys(shares).filter((each) => each !== shareId && (shares[each]?.until ?? 0) <= now);
  const leased = Object.hasOwn(shares, shareId) ? shares[shareId] : undefined;
  const total = leased?.share ?? 0;
  const isRunning = ifExpired && (leased?.until ?? now + 1) > now;
  if (isRunning || (amount === 0 && total === 0 && share.spent === 0))
    return { result: { free: 0, held: share.held, budget: stateOf(budget), expired } };
  // A budget that was created again inside its window has no shares since then. Its opening amount has these calls.
  const spent = budget.start ? budget.spent : budget.spent + share.spent;
  const held = budget.held - total + share.held;
  const free = amount * SHARE_PART <= Math.min(limit, MOST_MONEY) - spent - held ? amount : 0;
  const { [shareId]: _former, ...others } = shares;
  const isListed = free + share.held > 0;
  const after = { ...budget, spent, held: held + free };
  const keep = Math.max(until ?? 0, now + KEEP_LEASES_MS);
  return {
    result: { free, held: share.held, budget: stateOf(after), expired },
    budgets: [
      after,
      {
        ...newBudget(listId, keep),
        lease: {
          shares: isListed ? { ...others, [shareId]: { share: share.held + free, until: now + ttlMs } } : others,
        },
      },
      { ...share, spent: 0, until: keep, lease: { share: share.held + free } },
    ],
  };
}

function stateOf({ spent, held }: BudgetRow): BudgetState {
  return { spent, held };
}

function credit(
  { account = NEW_ACCOUNT, request }: LedgerRows,
  amount: number,
  reason: string,
  now: number,
): LedgerChange<boolean> {
  checkCredit(amount);
  if (request) return { result: false };
  const { balance, credited } = account;
  checkCredited(credited + amount);
  return {
    result: true,
    account: { ...account, balance: balance + amount, credited: credited + amount, updatedAt: now },
    request: { state: 'ended', until: undefined },
    entry: { kind: 'credit', amount, reason, at: now },
  };
}
