import {
  type Call,
  GatewayError,
  type Outcome,
  type PluginApi,
  type Principal,
  type Reservation,
  type UsageFacts,
} from '../../../core/index.ts';
import type { WriteQueue } from '../kit/write-queue.ts';
import type { LedgerClock } from './ledger-clock.ts';

export interface ChargeRules {
  /** Whether the balance must cover a call. */
  readonly isEnforced: boolean;
  /** Whether a model without a known price may be called where money is limited. */
  readonly allowsUnknownPrice: boolean;
  /** How long a reservation lives for each target of a call, and once more. */
  readonly longestCallMs: number;
  readonly marginMs: number;
}

/** What a call may hold in one account while it runs. */
interface Hold {
  readonly account: string;
  /** False while, or when, the store did not say whether it reserved anything. */
  isCertain: boolean;
}

/** What the policy works with beside the API. */
export interface Books {
  readonly rules: ChargeRules;
  readonly queues: WriteQueues;
  readonly clock: Pick<LedgerClock, 'now'>;
  /** When the reservations of calls that this process runs expire, by call. */
  readonly running: Map<string, number>;
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

const HOLDS = Symbol('accounts.holds');

/**
 * Reserves the most a call may cost. Throws `insufficient_balance`, `model_not_allowed` when the price is not known where money
 * is limited, and what the store throws; then the reservation may have happened all the same, and {@link settle} releases it.
 */
export async function reserve(api: PluginApi, call: Call, books: Books): Promise<void> {
  const { rules, clock, running } = books;
  const { account, budget, keyId, limitsId = keyId, userLimits } = call.principal;
  const { cost } = api.estimate(call);
  const isLimited = rules.isEnforced || budget !== undefined || userLimits?.budget !== undefined;
  if (cost === undefined && isLimited && !rules.allowsUnknownPrice) throw unknownPrice(call);
  const holds: Hold[] = [];
  call.state.set(HOLDS, holds);
  const now = Date.now();
  const expiresAt = clock.now() + rules.longestCallMs * Math.max(call.targets.length, 1) + rules.marginMs;
  running.set(call.id, expiresAt);
  const amount = cost ?? 0;
  const requestId = call.id;
  const facts = factsOf(call, undefined);
  // An account of its own whose balance is what the user has spent, and which may go down to the budget.
  const ofUser = userBudgetAccount(call.principal);
  if (ofUser !== undefined)
    await hold(
      api,
      holds,
      { requestId, amount, expiresAt, facts, now, account: ofUser, floor: -(userLimits?.budget ?? 0) },
      'user',
    );
  const floor = rules.isEnforced ? 0 : Number.NEGATIVE_INFINITY;
  const reservation = { requestId, amount, expiresAt, facts, now, account, floor };
  // Also for keys without a budget, so that `spent_usd` is known of them too.
  const ofKey = limitsId === undefined ? {} : { budget: { id: limitsId, limit: budget ?? Number.POSITIVE_INFINITY } };
  await hold(api, holds, Object.assign(reservation, ofKey), 'account');
}

async function hold(api: PluginApi, holds: Hold[], reservation: Reservation, whose: 'user' | 'account'): Promise<void> {
  const held: Hold = { account: reservation.account, isCertain: false };
  holds.push(held);
  const outcome = await api.ledger.reserve(reservation);
  held.isCertain = true;
  if (outcome === 'held') return;
  holds.pop();
  if (outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
  throw new GatewayError('insufficient_balance', REFUSALS[outcome === 'over_budget' ? 'key' : whose]);
}

const REFUSALS = Object.freeze({
  account:
    'The balance of this account does not cover the call. Credit the account, or ask for fewer tokens with "max_tokens".',
  key: 'The budget of this API key does not cover the call. Use another key, or ask for fewer tokens with "max_tokens".',
  user: 'The budget of this user, over all API keys, does not cover the call. Ask for fewer tokens with "max_tokens".',
});

/** Settles a call's true cost, or releases what it held when it owes nothing. Once, now or when the store is back. */
export function settle(api: PluginApi, books: Books, call: Call, outcome: Outcome): Promise<void> | undefined {
  const { queues, running } = books;
  running.delete(call.id);
  const [first, ...others] = (call.state.get(HOLDS) as readonly Hold[] | undefined) ?? [];
  // Without any a call was refused, or an `answer` hook responded before anything was reserved.
  if (!first && call.state.has(HOLDS)) return undefined;
  if (!first) return chargeAnswered(api, queues.certain, call, outcome, factsOf(call, outcome));
  const work = settleHold(api, queues, call, outcome, first);
  if (others.length === 0) return work;
  return Promise.all([work, ...others.map((each) => settleHold(api, queues, call, outcome, each))]).then(
    () => undefined,
  );
}

function settleHold(
  api: PluginApi,
  { certain, uncertain }: WriteQueues,
  call: Call,
  outcome: Outcome,
  { account, isCertain }: Hold,
): Promise<void> {
  const queue = isCertain ? certain : uncertain;
  const until = Date.now() + LONGEST_WAIT_MS;
  const release = (): Promise<boolean> => api.ledger.release(account, call.id);
  const isOwed = outcome.units !== undefined && (outcome.sent || (outcome.cost ?? 0) > 0);
  if (!isOwed) return queue.add({ id: call.id, until, write: release });
  const settlement = {
    account,
    requestId: call.id,
    amount: outcome.cost ?? 0,
    usage: factsOf(call, outcome),
    now: Date.now(),
  };
  return queue.add({ id: call.id, until, write: () => api.ledger.settle(settlement) });
}

function unknownPrice({ targets: [target] }: Call): GatewayError {
  return new GatewayError(
    'model_not_allowed',
    `The model "${target?.provider}/${target?.model}" has no known price, so it cannot be charged. Its operator sets one under the provider's "prices".`,
    { param: 'model' },
  );
}

function factsOf(call: Call, outcome: Outcome | undefined): UsageFacts {
  const target = outcome?.target ?? call.targets[0];
  const usage = outcome?.usage;
  const characters = outcome?.units?.['characters'];
  const facts: { -readonly [Fact in keyof UsageFacts]: UsageFacts[Fact] } = {
    operation: call.operation,
    provider: target?.provider ?? '-',
    model: target?.model ?? '-',
    key: call.principal.keyId ?? '-',
    outcome: outcome?.status ?? 'unknown',
    estimated: outcome === undefined || outcome.estimated || outcome.cost === undefined,
  };
  if (usage) facts.tokens = { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens };
  if (characters !== undefined) facts.characters = characters;
  return facts;
}

/** How long the charge may wait for the store. */
const CHARGE_WAIT_MS = 3_600_000;
/** How long it is held between reserving and settling: should the gateway die there, the sweeper settles it. */
const HOLD_MS = 60_000;

/**
 * Charges what an `answer` hook says that its response costs. Such a call reserves nothing, and when it ends its response
 * is out: neither the balance nor the key's budget refuses the charge, both may go below zero for it.
 */
export function chargeAnswered(
  api: Pick<PluginApi, 'ledger'>,
  queue: WriteQueue,
  { id, principal }: Call,
  outcome: Outcome,
  usage: UsageFacts,
): Promise<void> | undefined {
  const amount = Math.ceil(outcome.cost ?? 0);
  if (outcome.sent || amount <= 0) return undefined;
  const { account, keyId, limitsId = keyId } = principal;
  const ofUser = userBudgetAccount(principal);
  const charge = async (of: string, budget?: { readonly id: string; readonly limit: number }): Promise<void> => {
    const now = Date.now();
    const floor = Number.NEGATIVE_INFINITY;
    // Said again after its reply was lost it is a duplicate, which is as well.
    await api.ledger.reserve({
      ...{ account: of, requestId: id, amount, floor, expiresAt: now + HOLD_MS, facts: usage, now },
      ...(budget && { budget }),
    });
    await api.ledger.settle({ account: of, requestId: id, amount, usage, now });
  };
  return queue.add({
    id,
    until: Date.now() + CHARGE_WAIT_MS,
    async write() {
      await charge(account, limitsId === undefined ? undefined : { id: limitsId, limit: Number.POSITIVE_INFINITY });
      if (ofUser !== undefined) await charge(ofUser);
    },
  });
}

/** Begins the names of accounts that count what a user with a budget has spent. No user id holds a control character. */
const USER_BUDGET = '\u0001user:';

/** The account whose balance is what a user has spent of the budget that binds all keys; undefined for users without one. */
function userBudgetAccount({ userId, userLimits }: Principal): string | undefined {
  return userLimits?.budget === undefined ? undefined : USER_BUDGET + userId;
}
