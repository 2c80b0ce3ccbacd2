import { type Call, createLocalCounters, type Outcome, type PluginApi } from '../../../core/index.ts';
import type { NamedPlan } from '../kit/plan-finder.ts';
import { isStoreFailure } from '../kit/store-failure.ts';
import { createWriteQueue } from '../kit/write-queue.ts';
import { collectLimits, collectProviderLimits, type Limits } from './collect-limits.ts';
import { createLeases } from './leases.ts';
import { type LimitHold, reserveLimits, settleLimits } from './limit-holds.ts';

/** What a call counts against, as it goes on. */
interface CountedCall {
  readonly plan: NamedPlan | undefined;
  /** Providers whose limits within the plan were counted. */
  readonly providers: string[];
  readonly holds: LimitHold[];
}

export interface LimiterOptions {
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  /** How long a call of a gateway that died still counts as one at once. */
  readonly leaseMs: number;
}

/** Counts calls against their limits. A call without any costs no promise. */
export interface Limiter {
  /** Counts a call against the limits of its key, its plan and its first provider; throws `rate_limited`. */
  admit(call: Call, plan: NamedPlan | undefined): Promise<void> | undefined;
  /** Counts a call against the limits of a provider that it comes to later. */
  admitAt(call: Call, provider: string): Promise<void> | undefined;
  /** Frees what the call held, and corrects its tokens to what was used. */
  settle(call: Call, outcome: Outcome): Promise<void> | undefined;
  /** Begins to renew leases; returns how to stop. */
  start(): () => void;
  close(): Promise<void>;
}

const COUNTED = Symbol('limits.counted');

export function createLimiter(
  { stores, log }: Pick<PluginApi, 'stores' | 'log'>,
  { onStoreFailure, leaseMs }: LimiterOptions,
): Limiter {
  const local = createLocalCounters();
  const leases = createLeases(leaseMs);
  const queue = createWriteQueue({ log, otherwise: 'limits come right by their time' });

  const reserve = async (call: Call, counted: CountedCall, limits: Limits): Promise<void> => {
    let hold: LimitHold;
    try {
      hold = await reserveLimits(stores.counters, call, limits, leaseMs);
    } catch (error) {
      if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
      if (onStoreFailure === 'open') return;
      hold = await reserveLimits(local, call, limits, leaseMs);
    }
    counted.holds.push(hold);
    leases.add(call.id, hold);
  };
  const reserveAny = (call: Call, counted: CountedCall, limits: Limits): Promise<void> | undefined =>
    limits.windows.length > 0 || limits.slots.length > 0 ? reserve(call, counted, limits) : undefined;
  const countedOf = (call: Call) => call.state.get(COUNTED) as CountedCall | undefined;

  return {
    admit(call, plan) {
      const [target] = call.targets;
      const counted: CountedCall = { plan, providers: target ? [target.provider] : [], holds: [] };
      call.state.set(COUNTED, counted);
      return reserveAny(call, counted, collectLimits(call, plan));
    },
    admitAt(call, provider) {
      const counted = countedOf(call);
      if (!counted?.plan || counted.providers.includes(provider)) return undefined;
      counted.providers.push(provider);
      return reserveAny(call, counted, collectProviderLimits(call, counted.plan, provider));
    },
    settle(call, outcome) {
      const counted = countedOf(call);
      if (!counted || counted.holds.length === 0) return undefined;
      leases.remove(call.id);
      return settleLimits(queue, call.id, counted.holds, outcome, leaseMs);
    },
    start: leases.start,
    close: queue.close,
  };
}
