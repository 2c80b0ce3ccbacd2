import type { BudgetHold, Call, NamedPlan } from '../../../../contract/index.ts';
import type { Linked } from '../../kit/index.ts';
import type { CountedBudget } from '../budgets/budget-window.ts';
import type { Lease, Leases } from './leases.ts';
import type { CallerSource } from './limit-refusals.ts';

const NONE: readonly never[] = Object.freeze([]);

/** Tokens that a call has counted in a window of one minute; its end corrects them to the actual usage. */
export interface CountedTokens {
  readonly leases: Leases;
  readonly key: string;
  readonly amount: number;
  /** End of the window, by the steady clock. */
  readonly endsAt: number;
}

/** Capacity that an attempt holds at a provider with limits over all callers. */
export interface ProviderPlace {
  readonly provider: string;
  readonly leases: Leases;
  readonly place: Lease | undefined;
  readonly tokens: Pick<CountedTokens, 'amount' | 'endsAt'> | undefined;
}

/** All that a call holds until its end: tokens and places of its limits, and money. */
export class CallHold implements Linked<CallHold> {
  previous: CallHold | undefined = undefined;
  next: CallHold | undefined = undefined;
  isLinked = false;

  /** The limits have counted the call on arrival. */
  isCounted = false;
  /** Plan of its caller on arrival. */
  plan: NamedPlan | undefined = undefined;
  /** Limits of its key, its user and its plan. */
  sources: readonly CallerSource[] = NONE;
  /** Targets on arrival. */
  targets: Call['targets'] = NONE;
  /** Providers whose limits of the plan have counted the call's request, and those that have counted its tokens. */
  requestsAt: readonly string[] = NONE;
  tokensAt: readonly string[] = NONE;
  tokens: readonly CountedTokens[] = NONE;
  places: readonly Lease[] = NONE;
  /** Capacity at providers with limits over all callers. */
  providers: readonly ProviderPlace[] = NONE;

  /** `none` before the reservation; `unknown` until the store has confirmed or rejected it. */
  money: 'none' | 'unknown' | 'held' | 'refused' = 'none';
  /** Nano-dollars of the first reservation. */
  amount = 0;
  /** Budgets with windows that count the call, and the used amount of each at the time of the hold. */
  budgets: readonly CountedBudget[] = NONE;
  used: readonly number[] = NONE;
  /** Ledger holds: totals, then those of the budgets, or of shares in their place. */
  holds: readonly BudgetHold[] = NONE;
  /** Additional reservations, made when an interrupted stream resumed at another target. */
  more: readonly string[] = NONE;
  /** The balance or a budget must cover the call. */
  isLimited = false;
  /** The hold stays after a successful call; the plugin that made the call settles it later. */
  staysAfterCall = false;
  /** First expiry of its reservations, by the ledger's clock. */
  expiresAt = Number.POSITIVE_INFINITY;
  /** Nano-dollars of all its reservations. */
  held = 0;
}

const HOLD = Symbol('accounts.hold');

/** Returns what a call holds; undefined before its first limit or reservation. */
export function findHold({ state }: Pick<Call, 'state'>): CallHold | undefined {
  return state.get(HOLD) as CallHold | undefined;
}

/** Returns what a call holds, for more to be added. */
export function holdOf({ state }: Pick<Call, 'state'>): CallHold {
  let hold = state.get(HOLD) as CallHold | undefined;
  if (!hold) {
    hold = new CallHold();
    state.set(HOLD, hold);
  }
  return hold;
}
