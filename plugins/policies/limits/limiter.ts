import { type Call, createLocalCounters, type NamedPlan, type Outcome, type PluginApi } from '../../../core/index.ts';
import { steadyNow } from '../../../core/operators.ts';
import { createWriteQueue, isStoreFailure } from '../kit/write-queue.ts';
import {
  type CountedRequest,
  collectLimits,
  collectProviderLimits,
  type LimitHalf,
  type Limits,
} from './collect-limits.ts';
import { type LimitHold, reserveLimits, settleLimits } from './limit-holds.ts';

/** What a call counts against, as it goes on. */
interface CountedCall extends CountedRequest {
  /** Providers whose limits within the plan were counted, by half. */
  readonly counted: Readonly<Record<LimitHalf, Set<string>>>;
  readonly holds: LimitHold[];
}

interface LimiterOptions {
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  /** How long a call of a gateway that died still counts as one at once. */
  readonly leaseMs: number;
}

/** Counts calls against their limits. */
interface Limiter {
  /** Counts a call's request and its place against the limits of key, plan and first provider; throws `rate_limited`. */
  admit(call: Call, plan: NamedPlan | undefined): Promise<void> | undefined;
  /** Counts the tokens that will be sent. */
  reserve(call: Call): Promise<void> | undefined;
  /** Counts a call against the limits of a provider that it comes to later. */
  admitAt(call: Call, provider: string): Promise<void> | undefined;
  /** Frees what the call held, and corrects its tokens to what was used. */
  settle(call: Call, outcome: Outcome): Promise<void> | undefined;
  /** Begins to renew leases; returns how to stop. */
  start(): () => void;
  close(): Promise<void>;
}

const COUNTED = Symbol('limits.counted');

const HALVES: readonly LimitHalf[] = Object.freeze(['requests', 'tokens']);

export function createLimiter(
  { stores, log, estimate, keep }: Pick<PluginApi, 'stores' | 'log' | 'estimate' | 'keep'>,
  { onStoreFailure, leaseMs }: LimiterOptions,
): Limiter {
  // What was counted here goes on to count when the configuration changes.
  const local = keep('counters', createLocalCounters);
  const leases = createLeases(leaseMs);
  const queue = createWriteQueue({ log, otherwise: 'limits come right by their time' });

  const hold = ({ call, holds }: CountedCall, limits: Limits): Promise<void> | undefined => {
    if (limits.windows.length === 0 && limits.slots.length === 0) return undefined;
    const note = (held: LimitHold): void => {
      holds.push(held);
      leases.add(call.id, held);
    };
    return reserveLimits(stores.counters, call, limits, leaseMs).then(note, async (error: unknown) => {
      if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
      if (onStoreFailure === 'degrade') note(await reserveLimits(local, call, limits, leaseMs));
    });
  };
  /** One half of the limits, with those of the provider that is first in line now. */
  const holdHalf = (counted: CountedCall, half: LimitHalf): Promise<void> | undefined => {
    const [target] = counted.call.targets;
    if (target) counted.counted[half].add(target.provider);
    return hold(counted, collectLimits(counted, half));
  };
  const holdProvider = async (counted: CountedCall, provider: string, halves: readonly LimitHalf[]): Promise<void> => {
    for (const half of halves) {
      counted.counted[half].add(provider);
      await hold(counted, collectProviderLimits(counted, provider, half));
    }
  };
  const countedOf = (call: Call) => call.state.get(COUNTED) as CountedCall | undefined;

  return {
    admit(call, plan) {
      const counted = countedCall({ call, plan, estimate });
      call.state.set(COUNTED, counted);
      return holdHalf(counted, 'requests');
    },
    reserve(call) {
      const counted = countedOf(call);
      return counted && holdHalf(counted, 'tokens');
    },
    admitAt(call, provider) {
      const counted = countedOf(call);
      if (!counted?.plan) return undefined;
      const halves = HALVES.filter((half) => !counted.counted[half].has(provider));
      return halves.length === 0 ? undefined : holdProvider(counted, provider, halves);
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

function countedCall({ call, plan, estimate }: CountedRequest): CountedCall {
  return { call, plan, estimate, counted: { requests: new Set(), tokens: new Set() }, holds: [] };
}

/** The slots of running calls, renewed while their gateway lives, so that those of one that died are soon free. */
interface Leases {
  add(callId: string, hold: LimitHold): void;
  remove(callId: string): void;
  /** Begins to renew; returns how to stop. */
  start(): () => void;
}

/** How many times a lease is renewed within its life. */
const RENEWALS = 3;

/** No call takes longer; a plugin that never reads its response to the end does not keep a slot for ever. */
const LONGEST_CALL_MS = 3_600_000;

function createLeases(leaseMs: number): Leases {
  const held = new Map<string, { readonly since: number; readonly holds: LimitHold[] }>();
  const everyMs = leaseMs / RENEWALS;

  const renew = (): void => {
    const now = steadyNow();
    for (const [callId, { since, holds }] of held) {
      if (now - since < everyMs) continue;
      if (now - since > LONGEST_CALL_MS) {
        held.delete(callId);
        continue;
      }
      for (const { counters, slots } of holds) {
        // One that could not be renewed is tried again next time; its call goes on.
        for (const { key, limit } of slots) counters.lease(key, callId, limit, leaseMs, now).catch(() => undefined);
      }
    }
  };

  return {
    add(callId, hold) {
      if (hold.slots.length === 0) return;
      const known = held.get(callId);
      if (known) known.holds.push(hold);
      else held.set(callId, { since: steadyNow(), holds: [hold] });
    },
    remove: (callId) => void held.delete(callId),
    start() {
      const timer = setInterval(renew, everyMs);
      timer.unref();
      return () => clearInterval(timer);
    },
  };
}
