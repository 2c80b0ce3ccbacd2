import { randomBytes } from 'node:crypto';
import type { BudgetHold, Ledger, Log } from '../../../../contract/index.ts';
import type { CountedBudget } from './budget-window.ts';

// Shares of budgets, as limits lease parts of their windows: see `limits/leases.ts`. A call in a share changes rows of its
// account and of this process, and no row that all processes change.

/** Divisor of the rest of a budget that one share may have; stores check it too. */
const PART = 20;
/** Minimum number of calls that a share must cover. Below it, each call goes to the budget itself. */
const LEAST_CALLS = 10;
/** Time after its last use at which a share is returned. A share is leased only if calls follow each other faster. */
const KEEP_MS = 2000;
const TICK_MS = 1000;
/** Interval of renewals, and time after which other processes may end a lease. */
const RENEW_MS = 2000;
const TTL_MS = 6000;
/** Interval at which a process looks for expired leases of others, and time for which it remembers an unused budget. */
const RECOVER_MS = 30_000;
const REMEMBER_MS = 600_000;
const MAX_BUDGETS = 1000;

/** Budget of which this process has, or had, a share. */
interface Shared {
  readonly budget: CountedBudget;
  readonly shareId: string;
  /** Estimate of the free part. The store decides. */
  free: number;
  /** Sum of all amounts that calls have held in shares. */
  taken: number;
  /** Spent and held amount of the budget without the share. */
  others: number;
  /** Largest amount of recent calls. */
  amount: number;
  usedAt: number;
  requestedAt: number;
  /** The store may count a share. */
  isLeased: boolean;
  /** Calls have ended since the last request. */
  hasEnded: boolean;
  pending: Promise<void> | undefined;
}

/** Shares of budgets that this process has leased. */
export class BudgetShares {
  readonly #ledger: Pick<Ledger, 'shareBudget'>;
  readonly #log: Pick<Log, 'debug'>;
  /** Unique per process start: rows of shares have one writer. */
  readonly #process = randomBytes(6).toString('base64url');
  readonly #byId = new Map<string, Shared>();
  #timer: NodeJS.Timeout | undefined;
  #recoveredAt = performance.now();

  constructor(ledger: Pick<Ledger, 'shareBudget'>, log: Pick<Log, 'debug'>) {
    this.#ledger = ledger;
    this.#log = log;
  }

  /** Returns the holds of a call, with shares in place of the budgets that have enough. `windows` are the last holds. */
  holdsFor(holds: readonly BudgetHold[], windows: readonly CountedBudget[], amount: number): readonly BudgetHold[] {
    if (!this.#ledger.shareBudget || this.#byId.size === 0) return holds;
    let replaced: BudgetHold[] | undefined;
    const first = holds.length - windows.length;
    for (const [at, budget] of windows.entries()) {
      const shared = this.#byId.get(budget.id);
      if (!shared || shared.free < amount || shared.budget.limit !== budget.limit) continue;
      shared.free -= amount;
      shared.taken += amount;
      shared.usedAt = performance.now();
      replaced ??= [...holds];
      replaced[first + at] = { id: shared.shareId, limit: budget.limit, isShare: true };
      if (shared.free < LEAST_CALLS * shared.amount) this.#request(shared);
    }
    return replaced ?? holds;
  }

  /**
   * Records that a call was held: `used` are the amounts of its windows, by the ids of their holds. Returns the amounts
   * of the whole budgets. Leases a share of a budget whose calls follow each other.
   */
  recordHold(
    holds: readonly BudgetHold[],
    windows: readonly CountedBudget[],
    used: readonly number[],
    amount: number,
  ): readonly number[] {
    if (!this.#ledger.shareBudget) return used;
    const now = performance.now();
    const first = holds.length - windows.length;
    return used.map((each, at) => {
      const budget = windows[at];
      if (!budget) return each;
      const known = this.#byId.get(budget.id);
      if (holds[first + at]?.isShare) return each + (known?.others ?? 0);
      if (!canLease(budget)) return each;
      if (!known || known.budget.limit !== budget.limit) {
        if (!known) this.#add(budget, each, amount, now);
        else if (!known.isLeased) this.#byId.delete(budget.id);
        return each;
      }
      const isRecent = now - known.usedAt < KEEP_MS;
      known.usedAt = now;
      known.others = each;
      known.amount = Math.max(amount, isRecent ? known.amount : 0);
      if (isRecent && !known.isLeased && wantedOf(known) > 0) this.#request(known);
      return each;
    });
  }

  /** Records that a call holds, or has spent, less than it requested. */
  recordUnused(holds: readonly BudgetHold[], windows: readonly CountedBudget[], unused: number): void {
    for (const shared of this.#sharedOf(holds, windows)) if (shared.free > 0) shared.free += Math.max(0, unused);
  }

  /** Records that a call has ended. What it spent is moved to the budget later. */
  recordEnd(holds: readonly BudgetHold[], windows: readonly CountedBudget[], unused: number): void {
    this.recordUnused(holds, windows, unused);
    for (const shared of this.#sharedOf(holds, windows)) {
      shared.isLeased = true;
      shared.hasEnded = true;
      this.#start();
    }
  }

  #sharedOf(holds: readonly BudgetHold[], windows: readonly CountedBudget[]): readonly Shared[] {
    const first = holds.length - windows.length;
    return windows.flatMap(({ id }, at) => (holds[first + at]?.isShare ? (this.#byId.get(id) ?? []) : []));
  }

  /**
   * Returns the share of a budget that refused a call, and expired shares of other processes. Returns false if that
   * cannot change the refusal.
   */
  async end(budget: CountedBudget): Promise<boolean> {
    if (!this.#ledger.shareBudget || !canLease(budget)) return false;
    const now = performance.now();
    const known = this.#byId.get(budget.id);
    if (known && !known.isLeased && now - known.requestedAt < TICK_MS) return false;
    const shared = known ?? this.#add(budget, 0, 0, now);
    await shared.pending;
    await this.#lease(shared, 0);
    return true;
  }

  /** Returns all shares. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    const leased = [...this.#byId.values()].filter(({ isLeased }) => isLeased);
    await Promise.allSettled(
      leased.map(async (shared) => {
        await shared.pending;
        await this.#lease(shared, 0);
      }),
    );
  }

  #add(budget: CountedBudget, others: number, amount: number, now: number): Shared {
    if (this.#byId.size >= MAX_BUDGETS) this.#forget(now);
    const shared: Shared = {
      budget,
      shareId: `${budget.id}#${this.#process}`,
      free: 0,
      taken: 0,
      others,
      amount,
      usedAt: now,
      requestedAt: Number.NEGATIVE_INFINITY,
      isLeased: false,
      hasEnded: false,
      pending: undefined,
    };
    if (this.#byId.size < MAX_BUDGETS) this.#byId.set(budget.id, shared);
    this.#start();
    return shared;
  }

  #forget(now: number): void {
    for (const [id, { isLeased, pending, usedAt }] of this.#byId)
      if (!isLeased && !pending && now - usedAt > KEEP_MS) this.#byId.delete(id);
  }

  /** Leases a new free part in the background. */
  #request(shared: Shared): void {
    shared.pending ??= this.#lease(shared, wantedOf(shared)).finally(() => {
      shared.pending = undefined;
    });
  }

  /** If the store fails, calls use the budget itself, and the lease is ended later. */
  async #lease(shared: Shared, amount: number): Promise<void> {
    const { budget, shareId } = shared;
    const { id, limit, hold } = budget;
    shared.requestedAt = performance.now();
    shared.isLeased = true;
    shared.hasEnded = false;
    if (amount === 0) shared.free = 0;
    const { taken } = shared;
    this.#start();
    const request = { id, limit, until: hold.until, ttlMs: TTL_MS };
    try {
      const given = await this.#ledger.shareBudget?.({ ...request, shareId, amount });
      if (!given) return;
      // Calls that took from it meanwhile come after this request in the store.
      shared.free = given.free - (shared.taken - taken);
      shared.others = given.budget.spent + given.budget.held - given.free - given.held;
      shared.isLeased = given.free + given.held > 0;
      for (const expired of given.expired)
        await this.#ledger.shareBudget?.({ ...request, shareId: expired, amount: 0, ifExpired: true });
    } catch (error) {
      this.#log.debug({ err: error, budget: budget.rule.name }, 'a share of a budget was not leased or returned');
    }
  }

  #start(): void {
    if (this.#timer) return;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  #tick(): void {
    const now = performance.now();
    const doesRecover = now - this.#recoveredAt > RECOVER_MS;
    if (doesRecover) this.#recoveredAt = now;
    for (const [id, shared] of this.#byId) {
      const { isLeased, hasEnded, free, pending, usedAt, requestedAt } = shared;
      if (pending) continue;
      const isIdle = now - usedAt > KEEP_MS;
      const isDue = now - requestedAt >= (isIdle ? RECOVER_MS : RENEW_MS);
      if (isLeased && (isDue || hasEnded || (isIdle && free > 0))) this.#request(shared);
      else if (doesRecover) this.#request(shared);
      else if (!isLeased && now - usedAt > REMEMBER_MS) this.#byId.delete(id);
    }
    if (this.#byId.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Budgets of one account or key do not have other writers. An opening amount needs the time of each call. */
function canLease({ owner, since }: CountedBudget): boolean {
  return owner === undefined && since === undefined;
}

/** Returns the free part to request; 0 near the end of the budget. */
function wantedOf({ budget, others, amount, usedAt }: Shared): number {
  if (performance.now() - usedAt > KEEP_MS || amount === 0) return 0;
  const used = others;
  const { soft = Number.POSITIVE_INFINITY } = budget.rule;
  // The call that passes the soft limit must know it.
  const end = used < soft ? Math.min(budget.limit, soft) : budget.limit;
  const part = Math.floor((end - used) / PART);
  return part >= LEAST_CALLS * amount ? part : 0;
}
