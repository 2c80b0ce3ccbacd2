import {
  type Call,
  type ChatRequest,
  type Counters,
  GatewayError,
  type Metered,
  type NamedPlan,
  type Outcome,
  type PluginApi,
  type Window,
  type WindowState,
} from '../../../core/index.ts';
import { createLocalCounters, steadyNow } from '../kit/index.ts';
import { createWriteQueue, isStoreFailure, type WriteQueue } from '../kit/write-queue.ts';

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

/** What a call holds while it runs, to be released or corrected at its end. */
export interface LimitHold {
  readonly counters: Counters;
  readonly tokens: readonly TokenWindow[];
  readonly slots: readonly Slot[];
}

/** A token window as it was when the call reserved its estimate. */
interface TokenWindow {
  readonly key: string;
  readonly reserved: number;
  /** Unix milliseconds; a later window has nothing of this call. */
  readonly endsAt: number;
}

/** How soon a caller who found no free slot may try again: calls end at any time. */
const SLOT_RETRY_MS = 1000;

/**
 * Reserves a slot of each kind, then its part of all windows, or nothing at all. Throws `rate_limited`, which names the first limit
 * that is reached, or what the store throws.
 */
export async function reserveLimits(
  counters: Counters,
  call: Pick<Call, 'id'>,
  { windows, slots }: Limits,
  leaseMs: number,
): Promise<LimitHold> {
  const now = steadyNow();
  if (slots.length > 0) await reserveSlots(counters, call.id, slots, leaseMs, now);
  if (windows.length === 0) return { counters, tokens: [], slots };
  try {
    const { refused, states } = await counters.take(windows, now);
    if (refused !== undefined) throw windowRefusal(windows, states, refused);
    return { counters, tokens: tokenWindows(windows, states, now), slots };
  } catch (error) {
    if (slots.length > 0) await Promise.allSettled(slots.map(({ key }) => counters.release(key, call.id)));
    throw error;
  }
}

function tokenWindows(windows: readonly Limit[], states: readonly WindowState[], now: number): readonly TokenWindow[] {
  const tokens: TokenWindow[] = [];
  for (const [at, { key, unit, amount }] of windows.entries())
    if (unit === 'tokens') tokens.push({ key, reserved: amount, endsAt: now + (states[at]?.resetMs ?? MINUTE_MS) });
  return tokens;
}

/** Ends the leases, and corrects the token windows from the estimate to what was used. */
export function settleLimits(
  queue: WriteQueue,
  callId: string,
  holds: readonly LimitHold[],
  outcome: Outcome,
  leaseMs: number,
): Promise<void> | undefined {
  const now = Date.now();
  const used = tokensUsed(outcome);
  const work: Promise<void>[] = [];
  for (const { counters, slots, tokens } of holds) {
    for (const { key } of slots)
      work.push(queue.add({ id: callId, until: now + leaseMs, write: () => counters.release(key, callId) }));
    if (used === undefined) continue;
    for (const { key, reserved, endsAt } of tokens) {
      const delta = used - reserved;
      if (delta === 0) continue;
      const write = (): Promise<void> => {
        const at = steadyNow();
        // What was reserved too much in a window that has ended must not be credited to the next.
        return delta > 0 || at < endsAt ? counters.adjust(key, MINUTE_MS, delta, at) : Promise.resolve();
      };
      work.push(queue.add({ id: callId, until: now + MINUTE_MS, write }));
    }
  }
  return work.length > 1 ? Promise.all(work).then(() => undefined) : work[0];
}

/** Undefined when it is not known: then the estimate stays. */
function tokensUsed({ usage, sent }: Outcome): number | undefined {
  if (usage) return usage.prompt_tokens + usage.completion_tokens;
  return sent ? undefined : 0;
}

async function reserveSlots(
  counters: Counters,
  id: string,
  slots: readonly Slot[],
  leaseMs: number,
  now: number,
): Promise<void> {
  const leases = await Promise.allSettled(slots.map(({ key, limit }) => counters.lease(key, id, limit, leaseMs, now)));
  const failed = leases.find((lease) => lease.status === 'rejected');
  const full = slots.find((_, at) => {
    const lease = leases[at];
    return lease?.status === 'fulfilled' && !lease.value;
  });
  if (!failed && !full) return;
  // A lease whose response was lost may have been given: releasing one that was not does no harm.
  await Promise.allSettled(slots.map(({ key }) => counters.release(key, id)));
  if (failed) throw failed.reason;
  if (!full) return;
  const { limit } = full;
  throw refusal(`${limit} calls at once ${describeOrigin(full)}`, SLOT_RETRY_MS, {
    'x-ratelimit-limit-concurrency': String(limit),
    'x-ratelimit-remaining-concurrency': '0',
  });
}

function windowRefusal(windows: readonly Limit[], states: readonly WindowState[], refused: number): GatewayError {
  const window = windows[refused];
  const words = window ? `${window.limit} ${window.unit} a minute ${describeOrigin(window)}` : 'a window';
  return refusal(words, states[refused]?.resetMs ?? MINUTE_MS, rateHeaders(windows, states, refused));
}

function refusal(limit: string, retryAfterMs: number, headers: Record<string, string>): GatewayError {
  return new GatewayError(
    'rate_limited',
    `The limit of ${limit} is reached. Try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s.`,
    { retryAfterMs, headers, refusedBy: `limit of ${limit}` },
  );
}

/** OpenAI's headers: the window that refused, and of the other unit the one with the least left. */
function rateHeaders(
  windows: readonly Limit[],
  states: readonly WindowState[],
  refused: number,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of ['requests', 'tokens'] as const) {
    const own = windows.flatMap((window, at) => {
      const state = states[at];
      return window.unit === unit && state ? [{ window, state, isRefused: at === refused }] : [];
    });
    const shown =
      own.find(({ isRefused }) => isRefused) ?? own.sort((a, b) => a.state.remaining - b.state.remaining)[0];
    if (!shown) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(shown.window.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(Math.max(0, shown.state.remaining));
    headers[`x-ratelimit-reset-${unit}`] = `${Math.ceil(shown.state.resetMs / 1000)}s`;
  }
  return headers;
}

/** Who set a limit: the key, or the token that its user made it with, unless a plan is named. */
interface Origin {
  readonly ofUser?: boolean;
  readonly plan: string | undefined;
  /** Where the plan limits one provider. */
  readonly provider: string | undefined;
}

/** A window of one minute, with what the call uses of it. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** A number of calls at once. */
export interface Slot extends Origin {
  readonly key: string;
  readonly limit: number;
}

interface Limits {
  readonly windows: readonly Limit[];
  readonly slots: readonly Slot[];
}

/** Rates, and whose they are. */
interface Source extends Origin {
  readonly scope: 'key' | 'owner' | 'user' | 'provider';
  readonly id: string;
  readonly rates: {
    readonly rpm?: number | undefined;
    readonly tpm?: number | undefined;
    readonly concurrency?: number | undefined;
  };
}

export const MINUTE_MS = 60_000;

/** Which half of the limits: requests and calls at once are known when a call comes, tokens when its request is final. */
type LimitHalf = 'requests' | 'tokens';

/** What the limits of a call are made of. */
export interface CountedRequest {
  readonly call: Call;
  readonly plan: NamedPlan | undefined;
  /** What the call may come to, asked for when tokens are limited. */
  readonly estimate: (call: Call) => Metered;
}

/** Every limit that a call counts against: of its key, of its user's token, of its user's plan, and of its first provider within that plan. */
export function collectLimits(request: CountedRequest, half: LimitHalf): Limits {
  const { call, plan } = request;
  const { keyId, limitsId = keyId, rpm, tpm, account, userId, userLimits } = call.principal;
  const sources: Source[] = [];
  if (limitsId !== undefined)
    sources.push({ scope: 'key', id: limitsId, rates: { rpm, tpm }, plan: undefined, provider: undefined });
  if (userLimits)
    sources.push({ scope: 'owner', id: userId, rates: userLimits, plan: undefined, provider: undefined, ofUser: true });
  if (plan) {
    sources.push({ scope: 'user', id: account, rates: plan.plan, plan: plan.name, provider: undefined });
    const [target] = call.targets;
    if (target) sources.push(...sourcesOf(plan, target.provider, account));
  }
  return half === 'requests' ? requestLimits(call, sources) : tokenLimits(request, sources);
}

/** The limits of one provider within the plan. */
export function collectProviderLimits(request: CountedRequest, provider: string, half: LimitHalf): Limits {
  const { call, plan } = request;
  const sources = plan ? sourcesOf(plan, provider, call.principal.account) : [];
  return half === 'requests' ? requestLimits(call, sources) : tokenLimits(request, sources);
}

/** Whose a limit is, in words. */
function describeOrigin({ plan, provider, ofUser }: Origin): string {
  if (ofUser) return 'of this user, over all API keys';
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}

function sourcesOf({ name, plan: { providers } }: NamedPlan, provider: string, account: string): readonly Source[] {
  const rates = providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  // Names of providers hold no colon, user ids may.
  return rates ? [{ scope: 'provider', id: `${provider}:${account}`, rates, plan: name, provider }] : [];
}

function requestLimits(call: Call, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  for (const source of sources) {
    const { scope, id, rates } = source;
    const { rpm, concurrency } = rates;
    if (rpm !== undefined && !call.skip.has('rpm')) windows.push(windowOf(source, 'requests', 'rpm', rpm, 1));
    if (concurrency !== undefined && !call.skip.has('concurrency'))
      slots.push({ key: `calls:${scope}:${id}`, limit: concurrency, ...originOf(source) });
  }
  return { windows, slots };
}

function tokenLimits({ call, estimate }: CountedRequest, sources: readonly Source[]): Limits {
  const limited = sources.filter(({ rates }) => rates.tpm !== undefined);
  const tokens = limited.length > 0 ? tokensOf(call, estimate(call)) : 0;
  if (tokens === 0) return { windows: [], slots: [] };
  const windows = limited.map((source): Limit => {
    const { tpm: limit = 0 } = source.rates;
    // A call that is larger than the limit uses all of it.
    return windowOf(source, 'tokens', 'tpm', limit, Math.min(tokens, limit));
  });
  return { windows, slots: [] };
}

function windowOf(source: Source, unit: Limit['unit'], rate: 'rpm' | 'tpm', limit: number, amount: number): Limit {
  const key = `${rate}:${source.scope}:${source.id}`;
  return Object.assign({ key, windowMs: MINUTE_MS, limit, amount, unit }, originOf(source));
}

function originOf({ ofUser, plan, provider }: Origin): Origin {
  return ofUser ? { ofUser, plan, provider } : { plan, provider };
}

/** The prompt, estimated, and as much output as the caller asks for. */
function tokensOf({ request }: Call, { units }: Metered): number {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return (units['prompt_tokens'] ?? 0) + Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
}
