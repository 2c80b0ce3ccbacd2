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
} from '../../../contract/index.ts';
import {
  keyBudgetId,
  type Linked,
  type LinkedList,
  noteHeld,
  plannedFacts,
  summaryOf,
  userBudgetId,
} from '../kit/index.ts';
import type { WriteQueue } from '../kit/write-queue.ts';
import { type CountedBudget, countsTarget, isByTarget, lessOf } from './budgets/budget-window.ts';
import type { CallBudgets } from './budgets/find-budgets.ts';

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

/** Hold of a running call. */
interface Hold {
  /** `unknown` until the store has confirmed or rejected the reservation. */
  state: 'unknown' | 'held' | 'refused';
  /** Budgets with windows that count the call, and the used amount of each at the time of the hold. */
  budgets: readonly CountedBudget[];
  used: readonly number[];
  amount: number;
  /** Additional reservations, made when an interrupted stream resumed at another target. */
  more: readonly string[];
  /** All reservations, until the call ends. */
  running: readonly RunningCall[];
  /** The balance or a budget must cover the call. */
  isLimited: boolean;
  /** The hold stays after a successful call; the plugin that made the call settles it later. */
  readonly isKept: boolean;
}

/** Running call of this process, from its reservation to its end. */
export interface RunningCall extends Linked<RunningCall> {
  /** Expiry of its reservation, by the ledger's clock. */
  readonly expiresAt: number;
  /** Nano-dollars that the ledger holds for it. */
  held: number;
}

/** Dependencies of the policy in addition to the API. */
export interface Books {
  readonly ledger: PluginApi['books']['ledger'];
  readonly rules: ChargeRules;
  readonly queues: WriteQueues;
  /** Clock for the expiry of reservations; it never jumps. */
  readonly clock: { now(): number };
  /** Clock for counting calls in budgets and reports. Each call counts at the time of its reservation. */
  readonly now: () => number;
  readonly running: LinkedList<RunningCall>;
  readonly budgets: CallBudgets;
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

const HOLD = Symbol('accounts.hold');

const NONE: readonly never[] = Object.freeze([]);

/**
 * Reserves the maximum cost of a call. If no one set an output limit and the remaining money does not cover the model's
 * maximum output, sets the limit that it covers. If the call has a hold already, reserves that much in addition.
 *
 * Throws `insufficient_balance`, or `rate_limited` if only holds of other calls are in the way. Throws
 * `model_not_allowed` if the price is unknown and money is limited. Also throws errors of the store; {@link settle}
 * then releases a possible reservation.
 */
export async function reserve(api: PluginApi, call: Call, books: Books): Promise<void> {
  const { ledger, rules, clock, running } = books;
  const { budget, userLimits } = call.principal;
  const now = books.now();
  const { cost, heldUntil, owed = false } = api.books.estimate(call);
  const first = call.state.get(HOLD) as Hold | undefined;
  const hold: Hold = {
    state: 'refused',
    budgets: NONE,
    used: NONE,
    amount: cost ?? 0,
    more: NONE,
    running: NONE,
    isLimited: false,
    isKept: heldUntil !== undefined,
  };
  const requestId = first ? `${call.id}.${first.more.length + 1}` : call.id;
  if (first) first.more = [...first.more, requestId];
  else call.state.set(HOLD, hold);
  const found = books.budgets.find(call, now);
  const counted = found instanceof Promise ? await found : found;
  const isUnlimited = owed || call.client?.ownSubscription === true;
  hold.isLimited = rules.isEnforced || budget !== undefined || userLimits?.budget !== undefined || counted.length > 0;
  if (cost === undefined && hold.isLimited && !rules.allowsUnknownPrice) throw unknownPrice(call);
  const expiresAt = heldUntil ?? clock.now() + rules.longestCallMs * Math.max(call.targets.length, 1) + rules.marginMs;
  const entry: RunningCall = { expiresAt, held: 0, previous: undefined, next: undefined, isLinked: false };
  running.add(entry);
  const owner = first ?? hold;
  owner.running = [...owner.running, entry];
  const own = budgetsOf(call.principal);
  hold.budgets = counted;
  const limited = counted.length === 0 ? own : [...own, ...holdsOf(counted)];
  const budgets = isUnlimited ? limited.map((budget) => ({ ...budget, limit: Number.POSITIVE_INFINITY })) : limited;
  const wanted: Wanted = { api, ledger, call, rules, hold, budgets };
  let room: Room | undefined;
  let tokens: number | undefined;
  const reservation: Reservation = {
    account: call.principal.account,
    requestId,
    amount: hold.amount,
    facts: plannedFacts(call),
    floor: rules.isEnforced && !isUnlimited ? 0 : Number.NEGATIVE_INFINITY,
    expiresAt,
    budgets,
    now,
    lower(states) {
      room = roomOf(wanted, states);
      tokens = fitOutput(wanted, room);
      return tokens === undefined ? undefined : (api.books.estimate(call, tokens).cost ?? 0);
    },
  };
  hold.state = 'unknown';
  const result = await ledger.reserve(reservation);
  hold.state = result.outcome === 'held' ? 'held' : 'refused';
  if (result.outcome === 'held') {
    if (result.amount !== undefined && tokens !== undefined) {
      api.books.limitOutput(call, tokens);
      call.headers.set(MAX_TOKENS_HEADER, String(tokens));
      hold.amount = result.amount;
    }
    entry.held = hold.amount;
    if (hold.isKept) noteHeld(call, { amount: hold.amount, budgets });
    hold.used = result.used.slice(own.length);
    if (!first) books.budgets.noteHeld(call, hold);
    return;
  }
  if (result.outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
  throw refusalOf(books, wanted, result, own, room);
}

/** Call to reserve, with a retry at a lower amount if the remaining money does not cover it. */
interface Wanted {
  readonly api: PluginApi;
  readonly ledger: Books['ledger'];
  readonly call: Call;
  readonly rules: ChargeRules;
  readonly hold: Hold;
  readonly budgets: readonly BudgetHold[];
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

export async function readRoom({
  ledger,
  call,
  rules,
  budgets,
}: Pick<Wanted, 'ledger' | 'call' | 'rules' | 'budgets'>): Promise<Room> {
  const [account, states] = await Promise.all([
    rules.isEnforced ? ledger.balance(call.principal.account) : undefined,
    ledger.budgets(budgets.map(({ id }) => id)),
  ]);
  return roomIn(budgets, account, states);
}

function roomOf({ rules, budgets }: Pick<Wanted, 'rules' | 'budgets'>, states: ReserveStates): Room {
  return roomIn(budgets, rules.isEnforced ? states.account : undefined, states.budgets);
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
export function outputFor(api: PluginApi, call: Call, amount: number): number | undefined {
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
export function namedLimit({ client, request }: Call): number | undefined {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  const limit = Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  return limit > 0 && client?.demandsLimit !== true ? limit : undefined;
}

/**
 * Returns the output limit that the remaining money covers. Undefined if it is too small, or if the caller has set a
 * limit.
 */
function fitOutput({ api, call, rules }: Wanted, { now }: Room): number | undefined {
  const most = outputFor(api, call, now) ?? 0;
  if (namedLimit(call) !== undefined || most < leastOf(call, rules)) return undefined;
  return Math.max(outputFor(api, call, Math.floor(now / 2)) ?? 0, Math.min(most, ENOUGH_OUTPUT));
}

/** Minimum number of output tokens for a call with a lowered limit. */
export function leastOf({ request }: Call, { leastOutput }: ChargeRules): number {
  const { max_completion_tokens: most, max_tokens } = request as Partial<ChatRequest>;
  return Math.min(leastOutput, Math.max(most ?? 0, max_tokens ?? 0) || leastOutput);
}

/** Retry delay if holds of other calls are in the way: they may end at any time. */
const HELD_RETRY_MS = 5000;

function refusalOf(
  { budgets }: Books,
  { api, call, rules, hold }: Wanted,
  result: Exclude<ReserveResult, { readonly outcome: 'held' | 'duplicate' }>,
  own: readonly OwnBudget[],
  room: Room = { now: 0, later: 0, each: [] },
): GatewayError {
  const { amount } = hold;
  const index = result.outcome === 'over_budget' ? result.budget : -1;
  const refusing = hold.budgets[index - own.length];
  const whose = own[index]?.whose ?? 'account';
  const refusedBy = refusing ? `budget "${refusing.rule.name}"` : REFUSED_BY[whose];
  const isNamed = namedLimit(call) !== undefined;
  const fitsLater =
    amount <= room.later || (!isNamed && (outputFor(api, call, room.later) ?? 0) >= leastOf(call, rules));
  if (fitsLater)
    throw new GatewayError(
      'rate_limited',
      `Other calls that are under way hold what is left of the ${refusedBy}. Try again in ${HELD_RETRY_MS / 1000} s${isNamed ? ', or ask for fewer tokens with "max_tokens"' : ''}.`,
      { retryAfterMs: HELD_RETRY_MS, headers: { 'x-should-retry': 'true' }, refusedBy },
    );
  const affordable = outputFor(api, call, room.now);
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

/** Budget that counts a call, and its owner. */
interface OwnBudget extends BudgetHold {
  readonly whose: 'key' | 'user';
}

/** Cached by principal, which is the same object until its key changes. */
const ownBudgets = new WeakMap<Principal, readonly OwnBudget[]>();

/**
 * Returns the budgets of a caller: the user's over all keys, and the key's. The key's budget counts even without a
 * limit.
 */
export function budgetsOf(principal: Principal): readonly OwnBudget[] {
  const known = ownBudgets.get(principal);
  if (known) return known;
  const { userId, keyId, limitsId = keyId, budget, userLimits } = principal;
  const budgets: OwnBudget[] = [];
  if (userLimits?.budget !== undefined)
    budgets.push({ whose: 'user', id: userBudgetId(userId), limit: userLimits.budget });
  // Also counts for keys without a budget, so that their `spent_usd` is known.
  if (limitsId !== undefined)
    budgets.push({ whose: 'key', id: keyBudgetId(limitsId), limit: budget ?? Number.POSITIVE_INFINITY });
  ownBudgets.set(principal, budgets);
  return budgets;
}

/**
 * Settles the actual cost of a call, or releases its hold if the call costs nothing. Runs once, now or after the store
 * recovers.
 */
export function settle(books: Books, call: Call, outcome: Outcome): Promise<void> | undefined {
  const { ledger, queues, running } = books;
  const hold = call.state.get(HOLD) as Hold | undefined;
  for (const entry of hold?.running ?? NONE) running.remove(entry);
  if (outcome.refusedBy !== undefined && hold?.state !== 'held') return recordUnsent(books, call, outcome);
  // An `answer` hook responded before the reservation, or a plugin failed.
  if (!hold)
    return (
      chargeAnswered(books, call, outcome) ??
      (outcome.hooks && !outcome.sent ? recordUnsent(books, call, outcome) : undefined)
    );
  if (hold.state === 'refused' || (hold.isKept && outcome.status === 'ok')) return undefined;
  const { account } = call.principal;
  const facts = summaryOf(call, outcome);
  const queue = hold.state === 'held' ? queues.certain : queues.uncertain;
  const now = books.now();
  const until = Date.now() + LONGEST_WAIT_MS;
  const released = hold.more.map((id) => queue.add({ id, until, write: () => ledger.release(account, id) }));
  const isOwed = outcome.units !== undefined && (outcome.sent || (outcome.cost ?? 0) > 0);
  if (!isOwed) return queue.add({ id: call.id, until, write: () => ledger.release(account, call.id, facts, now) });
  // Budgets of a provider or model that did not serve the call.
  const { target } = outcome;
  const uncharged = hold.budgets
    .filter((budget) => isByTarget(budget.rule) && !(target && countsTarget(budget, target)))
    .map(({ id }) => id);
  const amount = outcome.cost ?? (hold.isLimited ? boundOf(hold, outcome) : 0);
  const settlement = { account, requestId: call.id, amount, facts, uncharged, now };
  const settling = queue.add({ id: call.id, until, write: () => ledger.settle(settlement) });
  const settled = released.length === 0 ? settling : Promise.all([settling, ...released]).then(() => undefined);
  return hold.budgets.length === 0 ? settled : settled.then(() => books.budgets.noteSettled(hold));
}

/**
 * Returns the charge of a call with unknown cost if money is limited. It is the hold of the call, or the sum of its
 * known parts if that is larger.
 */
function boundOf({ amount }: Hold, { costParts = [] }: Outcome): number {
  const known = costParts.reduce((sum, { usd }) => sum + picoRate((usd ?? 0) * 1_000_000), 0);
  return Math.max(amount, roundCost(known));
}

function unknownPrice({ targets: [target] }: Call): GatewayError {
  return new GatewayError(
    'model_not_allowed',
    `The model "${target?.provider}/${target?.model}" has no known price, so it cannot be charged. Its operator sets one under the provider's "prices".`,
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
  { ledger, queues, refusals, now }: Books,
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
async function writeFree(ledger: Books['ledger'], call: Call, facts: CallFacts, now: number): Promise<void> {
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
  books: Pick<Books, 'ledger' | 'queues' | 'budgets' | 'now'>,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  const amount = Math.ceil(outcome.cost ?? 0);
  // Neither cost nor saving: the call was rejected, or answered at no cost.
  if (outcome.sent || (amount <= 0 && outcome.saved === undefined)) return undefined;
  const { id, principal } = call;
  const { account } = principal;
  const { ledger } = books;
  const facts = summaryOf(call, outcome);
  const floor = Number.NEGATIVE_INFINITY;
  const now = books.now();
  return books.queues.certain.add({
    id,
    until: Date.now() + CHARGE_WAIT_MS,
    async write() {
      // A repetition after a lost reply is a `duplicate`, which is fine.
      const expiresAt = Date.now() + HOLD_MS;
      const counted = holdsOf(await books.budgets.findWithoutTarget(call, now));
      const all = [...budgetsOf(principal), ...counted];
      const budgets = all.map(({ id: budget, until }) => ({ id: budget, limit: Infinity, ...(until && { until }) }));
      await ledger.reserve({ account, requestId: id, amount, floor, expiresAt, budgets, facts, now });
      if (amount > 0) await ledger.settle({ account, requestId: id, amount, facts, now });
      else await ledger.release(account, id, facts, now);
    },
  });
}

/** Maximum number of budgets in one ledger reservation, in addition to the totals of its key and user. */
const MAX_BUDGETS = 30;

/** Returns the ledger holds of a call for these budgets. Throws if there are too many. */
export function holdsOf(budgets: readonly CountedBudget[]): readonly BudgetHold[] {
  if (budgets.length <= MAX_BUDGETS) return budgets.map(({ hold }) => hold);
  throw new GatewayError(
    'permission_denied',
    `More than ${MAX_BUDGETS} budgets count this call, the most that are counted at once. The operator of this gateway has to remove some.`,
  );
}
