import {
  type Call,
  GatewayError,
  type Outcome,
  type PluginApi,
  type ReserveOutcome,
  type UsageFacts,
} from '../../../core/index.ts';
import type { WriteQueue } from '../kit/write-queue.ts';

export interface ChargeRules {
  /** Whether the balance must cover a call. */
  readonly isEnforced: boolean;
  /** Whether a model without a known price may be called where money is limited. */
  readonly allowsUnknownPrice: boolean;
  /** How long a reservation lives for each target of a call, and once more. */
  readonly longestCallMs: number;
  readonly marginMs: number;
}

/** What a call may hold while it runs. */
interface Hold {
  readonly account: string;
  readonly expiresAt: number;
  readonly reserving: Promise<ReserveOutcome>;
  /** False while, or when, the store did not say whether it reserved anything. */
  isCertain: boolean;
}

/** Where changes wait while the store is away. */
export interface WriteQueues {
  /** Of reservations that the store confirmed. */
  readonly certain: WriteQueue;
  /** Of those that may never have happened: many more than calls, and less worth keeping. */
  readonly uncertain: WriteQueue;
}

const HOLD = Symbol('accounts.hold');

/** Whether the store can only say yes: then a reservation that turns out not to be needed keeps no call out. */
export function isUnlimited({ principal }: Call, { isEnforced }: ChargeRules): boolean {
  return !isEnforced && principal.budget === undefined;
}

/** Begins to reserve the most a call may cost. Throws `model_not_allowed` when its price is not known. */
export function beginReservation(api: PluginApi, call: Call, rules: ChargeRules): Hold {
  const { account, budget, keyId } = call.principal;
  const { cost: estimate } = api.estimate(call);
  if (estimate === undefined && !isUnlimited(call, rules) && !rules.allowsUnknownPrice) throw unknownPrice(call);
  const now = Date.now();
  const expiresAt = now + rules.longestCallMs * Math.max(call.targets.length, 1) + rules.marginMs;
  const reserving = api.ledger.reserve({
    account,
    requestId: call.id,
    amount: estimate ?? 0,
    floor: rules.isEnforced ? 0 : Number.NEGATIVE_INFINITY,
    expiresAt,
    facts: factsOf(call, undefined),
    now,
    // Also for keys without a budget, so that `spent_usd` is known of them too.
    ...(keyId !== undefined && { purse: { id: keyId, limit: budget ?? Number.POSITIVE_INFINITY } }),
  });
  // Whoever waits for it sees it fail; when a limit refuses the call in the meantime, nothing waits.
  reserving.catch(() => undefined);
  const hold: Hold = { account, expiresAt, reserving, isCertain: false };
  call.state.set(HOLD, hold);
  return hold;
}

/**
 * Reserves the most a call may cost, or waits for what has begun. Throws `insufficient_balance`, `model_not_allowed` when
 * the price is not known, and what the store throws; then the reservation may have happened all the same, and
 * {@link settle} releases it.
 */
export async function reserve(api: PluginApi, call: Call, rules: ChargeRules): Promise<void> {
  const hold = (call.state.get(HOLD) as Hold | undefined) ?? beginReservation(api, call, rules);
  const outcome = await hold.reserving;
  hold.isCertain = true;
  if (outcome === 'held') return;
  call.state.delete(HOLD);
  if (outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
  throw new GatewayError(
    'insufficient_balance',
    outcome === 'insufficient'
      ? 'The balance of this account does not cover the call. Credit the account, or ask for fewer tokens with "max_tokens".'
      : 'The budget of this API key does not cover the call. Use another key, or ask for fewer tokens with "max_tokens".',
  );
}

/** Settles a call's true cost, or releases what it held when it owes nothing. Once, now or when the store is back. */
export function settle(
  api: PluginApi,
  { certain, uncertain }: WriteQueues,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  const hold = call.state.get(HOLD) as Hold | undefined;
  if (!hold) return undefined;
  const { account, expiresAt: until, isCertain } = hold;
  const queue = isCertain ? certain : uncertain;
  const release = async (): Promise<boolean> => {
    // One that is still on its way must not arrive after its release.
    await hold.reserving.catch(() => undefined);
    return api.ledger.release(account, call.id);
  };
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
  const { usage, units = {} } = outcome ?? {};
  const { characters } = units;
  return {
    operation: call.operation,
    provider: target?.provider ?? '-',
    model: target?.model ?? '-',
    key: call.principal.keyId ?? '-',
    outcome: outcome?.status ?? 'unknown',
    estimated: outcome === undefined || outcome.estimated || outcome.cost === undefined,
    ...(usage && { tokens: { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens } }),
    ...(characters !== undefined && { characters }),
  };
}
