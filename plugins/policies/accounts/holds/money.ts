import {
  type AccountBalance,
  type BudgetHold,
  type BudgetState,
  type Call,
  type CallFacts,
  type ChatRequest,
  formatUsd,
  GatewayError,
  type Outcome,
  type PluginApi,
  type Principal,
  picoRate,
  type Reservation,
  type ReserveResult,
  type ReserveStates,
  roundCost,
} from '../../../../contract/index.ts';
import { type LinkedList, plannedFacts, recordHold, summaryOf } from '../../kit/index.ts';
import type { WriteQueue } from '../../kit/write-queue.ts';
import type { CallBudgetList, TotalBudget } from '../budgets/budget-table.ts';
import { countsTarget, isByTarget, lessOf } from '../budgets/budget-window.ts';
import type { CallBudgets } from '../budgets/find-budgets.ts';
import type { BudgetShares } from '../budgets/shares.ts';
import { CallHold, findHold, holdOf } from './call-hold.ts';

export interface ChargeRules {
  /** The balance must cover each call. */
  readonly isEnforced: boolean;
  /** Calls to models without a known price are allowed even if money is limited. */
  readonly allowsUnknownPrice: boolean;
  /** Lifetime of a reservation per target of a call, and an additional margin. */
  readonly longestCallMs: number;
  readonly marginMs: number;
  /** Minimum number of output tokens for a call whose limit is lowered to the remaining money. */
  readonly leastOutput: number;
}

/** Dependencies of the policy in addition to the API. */
export interface LedgerContext {
  readonly ledger: PluginApi['books']['ledger'];
  readonly rules: ChargeRules;
  readonly queues: WriteQueues;
  /** Clock for the expiry of reservations; it never jumps. */
  readonly clock: { now(): number };
  /** Clock for counting calls in budgets and reports. Each call counts at the time of its reservation. */
  readonly now: () => number;
  /** Running calls of this process with a reservation. */
  readonly running: LinkedList<CallHold>;
  readonly budgets: CallBudgets;
  readonly shares: BudgetShares;
  readonly refusals: RefusalCount;
}

/** Maximum time that a change waits for the store. Later changes still correct the sweeper's charge. */
const LONGEST_WAIT_MS = 43_200_000;

/** Queues of changes while the store is unavailable. */
export interface WriteQueues {
  /** Changes of reservations that the store confirmed. */
  readonly certain: WriteQueue;
  /**
   * Changes of reservations that may not exist. There are many more of them than calls, and they are less important.
   */
  readonly uncertain: WriteQueue;
}

const NONE: readonly never[] = Object.freeze([]);

/**
 * Money of calls: `hold` reserves the maximum cost of a call in the ledger, and `end` settles its actual cost or releases the
 * reservation.
 */
export class CallMoney {
  readonly #api: Pick<PluginApi, 'books'>;
  readonly #context: LedgerContext;

  constructor(api: Pick<PluginApi, 'books'>, context: LedgerContext) {
    this.#api = api;
    this.#context = context;
  }

  /**
   * Reserves the maximum cost of a call. If no one set an output limit and the remaining money does not cover the model's
   * maximum output, sets the limit that it covers. If the call has a reservation already, reserves that much in addition.
   *
   * Throws `insufficient_balance`, or `rate_limited` if only holds of other calls are in the way. Throws
   * `model_not_allowed` if the price is unknown and money is limited. Also throws errors of the store; `end` then releases
   * a possible reservation.
   */
  async hold(call: Call): Promise<void> {
    const { ledger, rules, shares, budgets } = this.#context;
    const now = this.#context.now();
    const { cost, heldUntil, owed = false } = this.#api.books.estimate(call);
    const owner = holdOf(call);
    const isFirst = owner.money === 'none';
    const hold = isFirst ? owner : new CallHold();
    const requestId = isFirst ? call.id : `${call.id}.${owner.more.length + 1}`;
    if (!isFirst) owner.more = [...owner.more, requestId];
    hold.money = 'refused';
    hold.amount = cost ?? 0;
    hold.staysAfterCall = heldUntil !== undefined;
    const found = budgets.find(call, now);
    const counted = found instanceof Promise ? await found : found;
    hold.isLimited = rules.isEnforced || counted.isLimited;
    if (cost === undefined && hold.isLimited && !rules.allowsUnknownPrice) throw unknownPrice(call);
    const expiresAt = heldUntil ?? this.#expiryOf(call);
    this.#run(owner, expiresAt);
    const isUnlimited = owed || call.client?.ownSubscription === true;
    const limited = holdsOf(counted);
    const exact = isUnlimited ? limited.map(withoutLimit) : limited;
    const mayShare = !isUnlimited && isFirst && !hold.staysAfterCall;
    hold.budgets = counted.windows;
    hold.holds = mayShare ? shares.holdsFor(exact, counted.windows, hold.amount) : exact;
    const reservation = new CallReservation(this.#api, rules, call, {
      requestId,
      amount: hold.amount,
      floor: rules.isEnforced && !isUnlimited ? 0 : Number.NEGATIVE_INFINITY,
      expiresAt,
      budgets: hold.holds,
      now,
    });
    hold.money = 'unknown';
    let result = await ledger.reserve(reservation);
    if (result.outcome !== 'held') shares.recordUnused(hold.holds, counted.windows, hold.amount);
    const refusing = result.outcome === 'over_budget' ? hold.budgets[result.budget - counted.totals.length] : undefined;
    // A share that another call has returned meanwhile says nothing about the whole budget.
    const isOfShare = result.outcome === 'over_budget' && hold.holds[result.budget]?.isShare === true;
    if (refusing && mayShare && ((await shares.end(refusing)) || isOfShare)) {
      hold.holds = exact;
      reservation.budgets = exact;
      result = await ledger.reserve(reservation);
    }
    if (result.outcome === 'held') {
      this.#take(call, hold, result, reservation, counted);
      owner.held += hold.amount;
      if (hold.staysAfterCall) recordHold(call, { amount: hold.amount, budgets: exact });
      if (isFirst) budgets.recordHold(call, hold);
      return;
    }
    hold.money = 'refused';
    if (result.outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
    throw refusalOf(this.#context, reservation, hold, result, counted.totals);
  }

  #expiryOf({ targets }: Call): number {
    const { rules, clock } = this.#context;
    return clock.now() + rules.longestCallMs * Math.max(targets.length, 1) + rules.marginMs;
  }

  /** Adds a call to those that the sweeper of this process never charges. */
  #run(hold: CallHold, expiresAt: number): void {
    hold.expiresAt = Math.min(hold.expiresAt, expiresAt);
    if (!hold.isLinked) this.#context.running.add(hold);
  }

  /** Notes what the store holds, and lowers the output limit of a call for which it holds less. */
  #take(
    call: Call,
    hold: CallHold,
    { amount, used: ofHolds }: Extract<ReserveResult, { readonly outcome: 'held' }>,
    { tokens }: CallReservation,
    { totals, windows }: CallBudgetList,
  ): void {
    const { shares } = this.#context;
    hold.money = 'held';
    if (amount !== undefined && tokens !== undefined) {
      this.#api.books.limitOutput(call, tokens);
      call.headers.set(MAX_TOKENS_HEADER, String(tokens));
      shares.recordUnused(hold.holds, windows, hold.amount - amount);
      hold.amount = amount;
    }
    const used = totals.length === 0 ? ofHolds : ofHolds.slice(totals.length);
    hold.used = shares.recordHold(hold.holds, windows, used, hold.amount);
  }

  /**
   * Settles the actual cost of a call, or releases its reservation if the call costs nothing. Runs once, now or after the
   * store recovers.
   */
  end(call: Call, outcome: Outcome): Promise<void> | undefined {
    const { ledger, queues, running, shares } = this.#context;
    const hold = findHold(call);
    if (hold) running.remove(hold);
    const money = hold?.money ?? 'none';
    if (outcome.refusedBy !== undefined && money !== 'held') return recordUnsent(this.#context, call, outcome);
    // An `answer` hook responded before the reservation, or a plugin failed.
    if (!hold || money === 'none')
      return (
        chargeAnswered(this.#context, call, outcome) ??
        (outcome.hooks && !outcome.sent ? recordUnsent(this.#context, call, outcome) : undefined)
      );
    if (money === 'refused' || (hold.staysAfterCall && outcome.status === 'ok')) return undefined;
    const { account } = call.principal;
    const facts = summaryOf(call, outcome);
    const queue = money === 'held' ? queues.certain : queues.uncertain;
    const now = this.#context.now();
    const until = Date.now() + LONGEST_WAIT_MS;
    const released = hold.more.map((id) => queue.add({ id, until, write: () => ledger.release(account, id) }));
    const isOwed = outcome.units !== undefined && (outcome.sent || (outcome.cost ?? 0) > 0);
    if (!isOwed) {
      const releasing = queue.add({ id: call.id, until, write: () => ledger.release(account, call.id, facts, now) });
      return hold.budgets.length === 0
        ? releasing
        : releasing.then(() => shares.recordEnd(hold.holds, hold.budgets, hold.amount));
    }
    const amount = outcome.cost ?? (hold.isLimited ? boundOf(hold, outcome) : 0);
    const settlement = { account, requestId: call.id, amount, facts, uncharged: unchargedBy(hold, outcome), now };
    const settling = queue.add({ id: call.id, until, write: () => ledger.settle(settlement) });
    const settled = released.length === 0 ? settling : Promise.all([settling, ...released]).then(() => undefined);
    if (hold.budgets.length === 0) return settled;
    return settled.then(() => {
      shares.recordEnd(hold.holds, hold.budgets, hold.amount - amount);
      return this.#context.budgets.recordSettled(hold);
    });
  }
}

function withoutLimit(budget: BudgetHold): BudgetHold {
  return { ...budget, limit: Number.POSITIVE_INFINITY };
}

/** Returns the holds of budgets of a provider or model that did not serve the call. */
function unchargedBy({ budgets, holds }: CallHold, { target }: Outcome): readonly string[] {
  let uncharged: string[] | undefined;
  const first = holds.length - budgets.length;
  for (let at = 0; at < budgets.length; at += 1) {
    const budget = budgets[at];
    if (!budget || !isByTarget(budget.rule) || (target && countsTarget(budget, target))) continue;
    uncharged ??= [];
    uncharged.push(holds[first + at]?.id ?? budget.id);
  }
  return uncharged ?? NONE;
}

/** Reservation of a call. If the remaining money does not cover its amount, it asks for a lower output limit. */
class CallReservation implements Reservation {
  readonly account: string;
  readonly requestId: string;
  readonly amount: number;
  readonly floor: number;
  readonly expiresAt: number;
  budgets: readonly BudgetHold[];
  readonly facts: CallFacts;
  readonly now: number;
  readonly call: Call;
  /** Remaining money by the last refusal; undefined before one. */
  room: Room | undefined = undefined;
  /** Output limit that the remaining money covers. */
  tokens: number | undefined = undefined;
  readonly #rules: ChargeRules;
  readonly #api: Pick<PluginApi, 'books'>;

  /** A function of its own, because stores call it without its object. */
  readonly lower = (states: ReserveStates): number | undefined => {
    // The rest of a share says nothing about the rest of its budget.
    const budgets = this.budgets.map((each) => (each.isShare ? withoutLimit(each) : each));
    this.room = roomIn(budgets, this.#rules.isEnforced ? states.account : undefined, states.budgets);
    this.tokens = fitOutput(this.#api, this.#rules, this.call, this.room);
    return this.tokens === undefined ? undefined : (this.#api.books.estimate(this.call, this.tokens).cost ?? 0);
  };

  constructor(
    api: Pick<PluginApi, 'books'>,
    rules: ChargeRules,
    call: Call,
    {
      requestId,
      amount,
      floor,
      expiresAt,
      budgets,
      now,
    }: Omit<Reservation, 'account' | 'facts' | 'lower'> & Required<Pick<Reservation, 'budgets'>>,
  ) {
    this.account = call.principal.account;
    this.requestId = requestId;
    this.amount = amount;
    this.floor = floor;
    this.expiresAt = expiresAt;
    this.budgets = budgets;
    this.facts = plannedFacts(call);
    this.now = now;
    this.call = call;
    this.#rules = rules;
    this.#api = api;
  }

  /** Returns the maximum number of output tokens for an amount. */
  outputFor(amount: number): number | undefined {
    return outputFor(this.#api, this.call, amount);
  }

  /** Checks if an amount covers the call, possibly with a lowered output limit. */
  isCoveredBy(amount: number): boolean {
    return isCovered(this.#api, this.#rules, this.call, this.amount, amount);
  }
}

/** Money that the balance and the budgets of a call leave for it. */
interface Room {
  /** Minimum over all of them. */
  readonly now: number;
  /** Minimum over all of them after all other holds are released. */
  readonly later: number;
  /** Balance first, then each budget. */
  readonly each: readonly number[];
}

export async function readRoom(
  { ledger, rules }: Pick<LedgerContext, 'ledger' | 'rules'>,
  call: Call,
  budgets: readonly BudgetHold[],
): Promise<Room> {
  const [account, states] = await Promise.all([
    rules.isEnforced ? ledger.balance(call.principal.account) : undefined,
    ledger.budgets(budgets.map(({ id }) => id)),
  ]);
  return roomIn(budgets, account, states);
}

/** `account` is undefined if the balance is not enforced. */
function roomIn(
  budgets: readonly BudgetHold[],
  account: AccountBalance | undefined,
  states: readonly BudgetState[],
): Room {
  const left = [account?.balance, ...states.map(({ spent }, at) => (budgets[at]?.limit ?? 0) - spent)];
  const held = [account, ...states].map((state) => state?.held ?? 0);
  const each = left.map((amount = Number.POSITIVE_INFINITY, at) => amount - (held[at] ?? 0));
  return { each, now: Math.min(...each), later: Math.min(...left.map((amount = Number.POSITIVE_INFINITY) => amount)) };
}

/**
 * Number of output tokens that is enough for most responses. A call takes half of the remaining money to leave some for
 * others, and more only to reach this number.
 */
const ENOUGH_OUTPUT = 4096;
const MAX_TOKENS_HEADER = 'x-tollgate-max-tokens';

/**
 * Returns the maximum number of output tokens for an amount; undefined if the operation has no such limit or the price
 * is unknown.
 */
function outputFor(api: Pick<PluginApi, 'books'>, call: Call, amount: number): number | undefined {
  const { completion_tokens: most } = api.books.estimate(call).units;
  if (most === undefined) return undefined;
  let fits = 0;
  let tooMany = most + 1;
  while (tooMany - fits > 1) {
    const limit = Math.floor((fits + tooMany) / 2);
    const { cost } = api.books.estimate(call, limit);
    if (cost === undefined) return undefined;
    if (cost <= amount) fits = limit;
    else tooMany = limit;
  }
  return fits;
}

/** Returns the output limit that the caller requested; undefined if the gateway chooses it. */
function namedLimit({ client, request }: Call): number | undefined {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  const limit = Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  return limit > 0 && client?.demandsLimit !== true ? limit : undefined;
}

/**
 * Returns the output limit that the remaining money covers. Undefined if it is too small, or if the caller has set a
 * limit.
 */
function fitOutput(api: Pick<PluginApi, 'books'>, rules: ChargeRules, call: Call, { now }: Room): number | undefined {
  const most = outputFor(api, call, now) ?? 0;
  if (namedLimit(call) !== undefined || most < leastOf(call, rules)) return undefined;
  return Math.max(outputFor(api, call, Math.floor(now / 2)) ?? 0, Math.min(most, ENOUGH_OUTPUT));
}

/** Minimum number of output tokens for a call with a lowered limit. */
function leastOf({ request }: Call, { leastOutput }: ChargeRules): number {
  const { max_completion_tokens: most, max_tokens } = request as Partial<ChatRequest>;
  return Math.min(leastOutput, Math.max(most ?? 0, max_tokens ?? 0) || leastOutput);
}

/** Checks if the remaining money covers a call of a cost, possibly with a lowered output limit. */
export function isCovered(
  api: Pick<PluginApi, 'books'>,
  rules: ChargeRules,
  call: Call,
  cost: number,
  left: number,
): boolean {
  if (cost <= left) return true;
  return namedLimit(call) === undefined && (outputFor(api, call, left) ?? 0) >= leastOf(call, rules);
}

/** Retry delay if holds of other calls are in the way: they may end at any time. */
const HELD_RETRY_MS = 5000;

function refusalOf(
  { budgets }: LedgerContext,
  reservation: CallReservation,
  hold: CallHold,
  result: Exclude<ReserveResult, { readonly outcome: 'held' | 'duplicate' }>,
  totals: readonly TotalBudget[],
): GatewayError {
  const { amount, call, room = NO_ROOM } = reservation;
  const index = result.outcome === 'over_budget' ? result.budget : -1;
  const refusing = hold.budgets[index - totals.length];
  const whose = totals[index]?.whose ?? 'account';
  const refusedBy = refusing ? `budget "${refusing.rule.name}"` : REFUSED_BY[whose];
  const isNamed = namedLimit(call) !== undefined;
  const fitsLater = reservation.isCoveredBy(room.later);
  if (fitsLater)
    throw new GatewayError(
      'rate_limited',
      `Running calls hold the rest of the ${refusedBy}. Try again in ${HELD_RETRY_MS / 1000} s${isNamed ? ', or lower "max_tokens"' : ''}.`,
      { retryAfterMs: HELD_RETRY_MS, headers: { 'x-should-retry': 'true' }, refusedBy },
    );
  const affordable = reservation.outputFor(room.now);
  if (refusing && result.outcome === 'over_budget')
    return budgets.refuse(refusing, { used: result.used, amount, affordable });
  const left = `${formatUsd(Math.max(room.each[index + 1] ?? 0, 0))} USD are left, and the call may cost ${formatUsd(amount)} USD`;
  const { what, instead } = REFUSALS[whose];
  return new GatewayError(
    'insufficient_balance',
    `The ${what} does not cover the call: ${left}. ${instead} ${lessOf(affordable)}.`,
    { refusedBy },
  );
}

const NO_ROOM: Room = Object.freeze({ now: 0, later: 0, each: NONE });

const REFUSED_BY = Object.freeze({
  account: 'balance of the account',
  key: 'budget of the API key',
  user: 'budget of the user',
});

const REFUSALS = Object.freeze({
  account: { what: 'balance of this account', instead: 'Credit the account, or' },
  key: { what: 'budget of this API key', instead: 'Use another key, or' },
  user: { what: 'budget of this user, over all API keys,', instead: 'Ask its operator to raise it, or' },
});

/**
 * Returns the charge of a call with unknown cost if money is limited. It is the hold of the call, or the sum of its
 * known parts if that is larger.
 */
function boundOf({ amount }: CallHold, { costParts = [] }: Outcome): number {
  const known = costParts.reduce((sum, { usd }) => sum + picoRate((usd ?? 0) * 1_000_000), 0);
  return Math.max(amount, roundCost(known));
}

function unknownPrice({ targets: [target] }: Call): GatewayError {
  return new GatewayError(
    'model_not_allowed',
    `The model "${target?.provider}/${target?.model}" has no known price, so it cannot be charged. The operator must set one under the provider's "prices".`,
    { param: 'model' },
  );
}

/**
 * Maximum number of records of rejected calls per minute and key, or user without a key. A client that loops on errors
 * must not fill the store.
 */
const MAX_REFUSED = 60;
const MAX_CALLERS = 10_000;
const MINUTE_MS = 60_000;

/** Counts the records of rejected calls; created once per process. */
export class RefusalCount {
  #since = 0;
  #counts = new Map<string, number>();

  /** Returns if a rejected call of a caller may be recorded in this minute. */
  admit({ keyId, userId }: Principal, now: number): boolean {
    if (now - this.#since >= MINUTE_MS) {
      this.#since = now;
      this.#counts = new Map();
    }
    const caller = keyId ?? `user ${userId}`;
    const count = (this.#counts.get(caller) ?? 0) + 1;
    if (count > MAX_REFUSED || (count === 1 && this.#counts.size >= MAX_CALLERS)) return false;
    this.#counts.set(caller, count);
    return true;
  }
}

/**
 * Writes the record of a call that ended before anything was sent: rejected, or answered or failed by a plugin. It
 * costs nothing, and no budget counts it.
 */
function recordUnsent(
  { ledger, queues, refusals, now }: LedgerContext,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  if (!refusals.admit(call.principal, performance.now())) return undefined;
  return queues.uncertain.add({
    id: call.id,
    until: Date.now() + CHARGE_WAIT_MS,
    write: () => writeFree(ledger, call, summaryOf(call, outcome), now()),
  });
}

/** Reserves zero and releases it, which leaves only the record. */
async function writeFree(ledger: LedgerContext['ledger'], call: Call, facts: CallFacts, now: number): Promise<void> {
  const { account } = call.principal;
  const floor = Number.NEGATIVE_INFINITY;
  await ledger.reserve({ account, requestId: call.id, amount: 0, floor, expiresAt: now + HOLD_MS, facts, now });
  await ledger.release(account, call.id, facts, now);
}

/** Maximum time that the charge waits for the store. */
const CHARGE_WAIT_MS = 3_600_000;
/** Lifetime of the hold between reservation and settlement. If the gateway dies in between, the sweeper settles it. */
const HOLD_MS = 60_000;

/**
 * Records a call that an `answer` hook responded to, and charges the cost that the hook set. Such a call has no
 * reservation, and its response is sent before it ends. So the charge is never rejected, and the balance and budgets
 * may become negative.
 */
export function chargeAnswered(
  context: Pick<LedgerContext, 'ledger' | 'queues' | 'budgets' | 'now'>,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  const amount = Math.ceil(outcome.cost ?? 0);
  // Neither cost nor saving: the call was rejected, or answered at no cost.
  if (outcome.sent || (amount <= 0 && outcome.saved === undefined)) return undefined;
  const { id, principal } = call;
  const { account } = principal;
  const { ledger } = context;
  const facts = summaryOf(call, outcome);
  const floor = Number.NEGATIVE_INFINITY;
  const now = context.now();
  return context.queues.certain.add({
    id,
    until: Date.now() + CHARGE_WAIT_MS,
    async write() {
      // A repetition after a lost reply is a `duplicate`, which is fine.
      const expiresAt = Date.now() + HOLD_MS;
      const counted = holdsOf(await context.budgets.findWithoutTarget(call, now));
      const budgets = counted.map(({ id: budget, until }) => ({
        id: budget,
        limit: Infinity,
        ...(until && { until }),
      }));
      await ledger.reserve({ account, requestId: id, amount, floor, expiresAt, budgets, facts, now });
      if (amount > 0) await ledger.settle({ account, requestId: id, amount, facts, now });
      else await ledger.release(account, id, facts, now);
    },
  });
}

/** Maximum number of budgets in one ledger reservation, in addition to the totals of its key and user. */
const MAX_BUDGETS = 30;

/** Returns the ledger holds of a call. Throws if there are too many. */
export function holdsOf({ windows, holds }: CallBudgetList): readonly BudgetHold[] {
  if (windows.length <= MAX_BUDGETS) return holds;
  throw new GatewayError(
    'permission_denied',
    `More than ${MAX_BUDGETS} budgets count this call, which is the maximum. The operator must delete some.`,
  );
}
