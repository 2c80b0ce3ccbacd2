import {
  type BudgetHold,
  type Call,
  type CallFacts,
  GatewayError,
  type Ledger,
  type Log,
  type Outcome,
  type PluginApi,
  type Principal,
} from '../../../core/index.ts';
import { keyBudgetId, plannedFacts, summaryOf, userBudgetId } from '../kit/index.ts';
import type { WriteQueue } from '../kit/write-queue.ts';
import { type CountedBudget, countsTarget, holdsOf, isByTarget } from './budgets/budget-window.ts';
import type { CallBudgets } from './budgets/find-budgets.ts';

export interface ChargeRules {
  /** Whether the balance must cover a call. */
  readonly isEnforced: boolean;
  /** Whether a model without a known price may be called where money is limited. */
  readonly allowsUnknownPrice: boolean;
  /** How long a reservation lives for each target of a call, and once more. */
  readonly longestCallMs: number;
  readonly marginMs: number;
}

/** What a call holds while it runs. */
interface Hold {
  /** `unknown` while, or when, the store did not say whether it reserved anything. */
  state: 'unknown' | 'held' | 'refused';
  /** The budgets with windows that it counts in, and what of each was used when it was held. */
  budgets: readonly CountedBudget[];
  used: readonly number[];
  amount: number;
}

/** A call that this process runs, from its reservation to its end. */
export interface RunningCall {
  /** When its reservation expires, by the clock of the books. */
  readonly expiresAt: number;
  /** Micro-dollars that the ledger holds for it. */
  held: number;
}

/** What the policy works with beside the API. */
export interface Books {
  readonly rules: ChargeRules;
  readonly queues: WriteQueues;
  readonly clock: Pick<LedgerClock, 'now'>;
  /** By the id of the call. */
  readonly running: Map<string, RunningCall>;
  readonly budgets: CallBudgets;
  readonly refusals: RefusalCount;
}

/** How long a change may wait for the store: what comes after the sweeper still corrects it. */
const LONGEST_WAIT_MS = 43_200_000;

/** Where changes wait while the store is away. */
export interface WriteQueues {
  /** Of reservations that the store confirmed. */
  readonly certain: WriteQueue;
  /** Of those that may never have happened: many more than calls, and less worth keeping. */
  readonly uncertain: WriteQueue;
}

const HOLD = Symbol('accounts.hold');

/**
 * Reserves the most a call may cost. Throws `insufficient_balance`, `model_not_allowed` when the price is not known where money
 * is limited, and what the store throws; then the reservation may have happened all the same, and {@link settle} releases it.
 */
export async function reserve(api: PluginApi, call: Call, books: Books): Promise<void> {
  const { rules, clock, running } = books;
  const { account, budget, userLimits } = call.principal;
  const { cost } = api.estimate(call);
  const amount = cost ?? 0;
  const hold: Hold = { state: 'refused', budgets: [], used: [], amount };
  call.state.set(HOLD, hold);
  const counted = await books.budgets.find(call);
  const isLimited = rules.isEnforced || budget !== undefined || userLimits?.budget !== undefined || counted.length > 0;
  if (cost === undefined && isLimited && !rules.allowsUnknownPrice) throw unknownPrice(call);
  const expiresAt = clock.now() + rules.longestCallMs * Math.max(call.targets.length, 1) + rules.marginMs;
  const entry: RunningCall = { expiresAt, held: 0 };
  running.set(call.id, entry);
  const own = budgetsOf(call.principal);
  const budgets = [...own, ...holdsOf(counted)];
  hold.budgets = counted;
  hold.state = 'unknown';
  const result = await api.ledger.reserve({
    account,
    requestId: call.id,
    amount,
    floor: rules.isEnforced ? 0 : Number.NEGATIVE_INFINITY,
    expiresAt,
    budgets,
    facts: plannedFacts(call),
    now: Date.now(),
  });
  hold.state = result.outcome === 'held' ? 'held' : 'refused';
  if (result.outcome === 'held') {
    entry.held = amount;
    hold.used = result.used.slice(own.length);
    books.budgets.noteHeld(call, hold);
    return;
  }
  if (result.outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
  const refusing = result.outcome === 'over_budget' ? counted[result.budget - own.length] : undefined;
  if (refusing && result.outcome === 'over_budget') throw books.budgets.refuse(refusing, result.used, amount);
  const whose = result.outcome === 'insufficient' ? 'account' : (own[result.budget]?.whose ?? 'key');
  throw new GatewayError('insufficient_balance', REFUSALS[whose], { refusedBy: REFUSED_BY[whose] });
}

const REFUSED_BY = Object.freeze({
  account: 'balance of the account',
  key: 'budget of the API key',
  user: 'budget of the user',
});

const REFUSALS = Object.freeze({
  account:
    'The balance of this account does not cover the call. Credit the account, or ask for fewer tokens with "max_tokens".',
  key: 'The budget of this API key does not cover the call. Use another key, or ask for fewer tokens with "max_tokens".',
  user: 'The budget of this user, over all API keys, does not cover the call. Ask for fewer tokens with "max_tokens".',
});

/** A budget that a call counts in, and whose it is. */
interface OwnBudget extends BudgetHold {
  readonly whose: 'key' | 'user';
}

/** The budgets of a caller: that of the user over all keys, and that of the key, which counts also where it has no limit. */
function budgetsOf({ userId, keyId, limitsId = keyId, budget, userLimits }: Principal): readonly OwnBudget[] {
  const budgets: OwnBudget[] = [];
  if (userLimits?.budget !== undefined)
    budgets.push({ whose: 'user', id: userBudgetId(userId), limit: userLimits.budget });
  // Also for keys without a budget, so that `spent_usd` is known of them too.
  if (limitsId !== undefined)
    budgets.push({ whose: 'key', id: keyBudgetId(limitsId), limit: budget ?? Number.POSITIVE_INFINITY });
  return budgets;
}

/** Settles a call's true cost, or releases what it held when it owes nothing. Once, now or when the store is back. */
export function settle(api: PluginApi, books: Books, call: Call, outcome: Outcome): Promise<void> | undefined {
  const { queues, running } = books;
  running.delete(call.id);
  const hold = call.state.get(HOLD) as Hold | undefined;
  if (outcome.refusedBy !== undefined && hold?.state !== 'held') return recordRefused(api, books, call, outcome);
  // An `answer` hook responded before anything was reserved.
  if (!hold) return chargeAnswered(api, books, call, outcome);
  if (hold.state === 'refused') return undefined;
  const { account } = call.principal;
  const facts = summaryOf(call, outcome);
  const queue = hold.state === 'held' ? queues.certain : queues.uncertain;
  const now = Date.now();
  const until = now + LONGEST_WAIT_MS;
  const isOwed = outcome.units !== undefined && (outcome.sent || (outcome.cost ?? 0) > 0);
  if (!isOwed) return queue.add({ id: call.id, until, write: () => api.ledger.release(account, call.id, facts, now) });
  // Those of a provider or a model that did not answer it.
  const uncharged: string[] = [];
  const { target } = outcome;
  for (const { id, rule } of hold.budgets)
    if (isByTarget(rule) && !(target && countsTarget(rule, target))) uncharged.push(id);
  const settlement = { account, requestId: call.id, amount: outcome.cost ?? 0, facts, uncharged, now };
  const settled = queue.add({ id: call.id, until, write: () => api.ledger.settle(settlement) });
  return hold.budgets.length === 0 ? settled : settled.then(() => books.budgets.noteSettled(hold));
}

function unknownPrice({ targets: [target] }: Call): GatewayError {
  return new GatewayError(
    'model_not_allowed',
    `The model "${target?.provider}/${target?.model}" has no known price, so it cannot be charged. Its operator sets one under the provider's "prices".`,
    { param: 'model' },
  );
}

/** Refused calls of one key, or of a user without one, that get a record in a minute: a loop that is refused must not fill the store. */
const MAX_REFUSED = 60;
const MAX_CALLERS = 10_000;
const MINUTE_MS = 60_000;

/** Counts the records of refused calls; made once for a process. */
export class RefusalCount {
  #since = 0;
  readonly #counts = new Map<string, number>();

  /** Whether one more call of a caller may be recorded in this minute. */
  admit({ keyId, userId }: Principal, now: number): boolean {
    if (now - this.#since >= MINUTE_MS) {
      this.#since = now;
      this.#counts.clear();
    }
    const caller = keyId ?? `user ${userId}`;
    const count = (this.#counts.get(caller) ?? 0) + 1;
    if (count > MAX_REFUSED || (count === 1 && this.#counts.size >= MAX_CALLERS)) return false;
    this.#counts.set(caller, count);
    return true;
  }
}

/** Writes the record of a call that was refused before anything was sent. It costs nothing, and counts in no budget. */
function recordRefused(
  api: Pick<PluginApi, 'ledger'>,
  { queues, refusals }: Books,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  if (!refusals.admit(call.principal, performance.now())) return undefined;
  return queues.uncertain.add({
    id: call.id,
    until: Date.now() + CHARGE_WAIT_MS,
    write: () => writeFree(api, call, summaryOf(call, outcome)),
  });
}

/** Holds nothing and releases it: what is left is the record. */
async function writeFree(api: Pick<PluginApi, 'ledger'>, call: Call, facts: CallFacts): Promise<void> {
  const { account } = call.principal;
  const now = Date.now();
  const floor = Number.NEGATIVE_INFINITY;
  await api.ledger.reserve({ account, requestId: call.id, amount: 0, floor, expiresAt: now + HOLD_MS, facts, now });
  await api.ledger.release(account, call.id, facts, now);
}

/** How long the charge may wait for the store. */
const CHARGE_WAIT_MS = 3_600_000;
/** How long it is held between reserving and settling: should the gateway die there, the sweeper settles it. */
const HOLD_MS = 60_000;

/**
 * Records a call that an `answer` hook responded to, and charges what the hook says that its response costs. Such a call reserves
 * nothing, and when it ends its response is out: neither the balance nor a budget refuses the charge, all may go below zero for it.
 */
export function chargeAnswered(
  api: Pick<PluginApi, 'ledger'>,
  { queues, budgets: callBudgets }: Pick<Books, 'queues' | 'budgets'>,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  const amount = Math.ceil(outcome.cost ?? 0);
  // Neither cost nor saving: it was refused, or answered for nothing.
  if (outcome.sent || (amount <= 0 && outcome.saved === undefined)) return undefined;
  const { id, principal } = call;
  const { account } = principal;
  const facts = summaryOf(call, outcome);
  const floor = Number.NEGATIVE_INFINITY;
  const now = Date.now();
  return queues.certain.add({
    id,
    until: now + CHARGE_WAIT_MS,
    async write() {
      // Said again after its reply was lost it is a duplicate, which is as well.
      const expiresAt = Date.now() + HOLD_MS;
      const counted = holdsOf(await callBudgets.findWithoutTarget(call));
      const all = [...budgetsOf(principal), ...counted];
      const budgets = all.map(({ id: budget, until }) => ({ id: budget, limit: Infinity, ...(until && { until }) }));
      await api.ledger.reserve({ account, requestId: id, amount, floor, expiresAt, budgets, facts, now });
      if (amount > 0) await api.ledger.settle({ account, requestId: id, amount, facts, now });
      else await api.ledger.release(account, id, facts, now);
    },
  });
}

/** The time that reservations expire by, in Unix milliseconds: that of the store where it has a clock of its own. */
export interface LedgerClock {
  now(): number;
  /** Compares with the store's clock. Rejects when the store does not answer. */
  adjust(): Promise<void>;
}

/** How far a machine's clock may be from the store's before its operator is told. */
const TOLD_MS = 30_000;

/**
 * Makes a clock that does not jump when somebody sets that of the machine: a call must not look forgotten because of it.
 * The machine's clock counts only at the start, and for stores without one of their own.
 */
export function createLedgerClock(ledger: Pick<Ledger, 'clock'>, log: Log): LedgerClock {
  let offsetMs = Date.now() - performance.now();
  let isTold = false;
  const now = (): number => Math.round(performance.now() + offsetMs);
  return {
    now,
    async adjust() {
      if (!ledger.clock) return;
      const startedMs = performance.now();
      const storeMs = await ledger.clock();
      // The store read its clock somewhere between the request and the response.
      offsetMs = storeMs - (startedMs + performance.now()) / 2;
      const aheadMs = Date.now() - now();
      if (!isTold && Math.abs(aheadMs) > TOLD_MS)
        log.warn(
          { ahead_s: Math.round(aheadMs / 1000) },
          'the clock of this machine differs from that of the store: set it right (NTP), or limits, expiries and days of usage are wrong by as much',
        );
      isTold = Math.abs(aheadMs) > TOLD_MS;
    },
  };
}
