import {
  type Call,
  type ChatRequest,
  GatewayError,
  type Metered,
  type NamedPlan,
  type Outcome,
  type PluginApi,
  type Principal,
  type Window,
  type WindowState,
} from '../../../core/index.ts';
import { createLocalCounters, steadyNow } from '../kit/index.ts';
import { createWriteQueue, isStoreFailure, type WriteQueue } from '../kit/write-queue.ts';
import { type Entered, type Slot as LeasedSlot, Leases, type Place } from './leases.ts';

/** What a call counts against, as it goes on. */
interface CountedCall extends CountedRequest {
  /** Of its key, its user's token and its plan. */
  readonly sources: readonly Source[];
  /** Providers whose limits within the plan were counted, by half: `tokens openai`. */
  readonly counted: string[];
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
  const leases = new Leases(stores.counters, leaseMs);
  // What was counted here goes on to count when the configuration changes.
  const local = keep('counters', () => new Leases(createLocalCounters(), leaseMs));
  const queue = createWriteQueue({ log, otherwise: 'limits come right by their time' });

  const hold = ({ call, holds }: CountedCall, limits: Limits): Promise<void> | undefined => {
    if (limits.windows.length === 0 && limits.slots.length === 0) return undefined;
    const held = reserveLimits(leases, call, limits);
    if (!(held instanceof Promise)) return void holds.push(held);
    return held.then(
      (later) => void holds.push(later),
      async (error: unknown) => {
        if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
        if (onStoreFailure === 'degrade') holds.push(await reserveLimits(local, call, limits));
      },
    );
  };
  /** One half of the limits, with those of the provider that is first in line now. */
  const holdHalf = (counted: CountedCall, half: LimitHalf): Promise<void> | undefined => {
    const [target] = counted.call.targets;
    if (target) counted.counted.push(`${half} ${target.provider}`);
    return hold(counted, limitsOf(counted, half, counted.sources, target?.provider));
  };
  const holdProvider = async (counted: CountedCall, provider: string, halves: readonly LimitHalf[]): Promise<void> => {
    for (const half of halves) {
      counted.counted.push(`${half} ${provider}`);
      await hold(counted, limitsOf(counted, half, [], provider));
    }
  };

  return {
    admit(call, plan) {
      const sources = sourcesOf(call.principal, plan);
      const counted: CountedCall = { call, plan, estimate, sources, counted: [], holds: [] };
      call.state.set(COUNTED, counted);
      return holdHalf(counted, 'requests');
    },
    reserve(call) {
      const counted = call.state.get(COUNTED) as CountedCall | undefined;
      return counted && holdHalf(counted, 'tokens');
    },
    admitAt(call, provider) {
      const counted = call.state.get(COUNTED) as CountedCall | undefined;
      if (!counted?.plan?.plan.providers) return undefined;
      const halves = HALVES.filter((half) => !counted.counted.includes(`${half} ${provider}`));
      return halves.length === 0 ? undefined : holdProvider(counted, provider, halves);
    },
    settle(call, outcome) {
      const counted = call.state.get(COUNTED) as CountedCall | undefined;
      return counted && settleLimits(queue, call.id, counted.holds, outcome, leaseMs);
    },
    start() {
      const stops = [leases.start(), local.start()];
      return () => {
        for (const stop of stops) stop();
      };
    },
    async close() {
      await leases.giveBack();
      await queue.close();
    },
  };
}

/** What a call holds while it runs, to be released or corrected at its end. */
export interface LimitHold {
  readonly leases: Leases;
  readonly tokens: readonly TokenWindow[];
  readonly places: readonly Place[];
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
 * Reserves a slot of each kind, then its part of all windows, or nothing at all; at once where this process has enough of each. Throws
 * `rate_limited`, which names the first limit that is reached, or what the store throws.
 */
export function reserveLimits(
  leases: Leases,
  { id }: Pick<Call, 'id'>,
  { windows, slots }: Limits,
): LimitHold | Promise<LimitHold> {
  const now = steadyNow();
  const entered = slots.length === 0 ? NO_PLACES : leases.enter(slots, id, now);
  if (entered instanceof Promise) return entered.then((later) => takeWindows(leases, later, windows, now));
  return takeWindows(leases, entered, windows, now);
}

function takeWindows(
  leases: Leases,
  { places, full }: Entered<Slot>,
  windows: readonly Limit[],
  now: number,
): LimitHold | Promise<LimitHold> {
  if (full) throw slotRefusal(full);
  if (windows.length === 0) return { leases, tokens: [], places };
  const taken = leases.take(windows, now);
  if (!(taken instanceof Promise)) return { leases, tokens: tokenWindows(windows, taken.states, now), places };
  return taken
    .then(({ refused, states }) => {
      if (refused !== undefined) throw windowRefusal(windows, states, refused);
      return { leases, tokens: tokenWindows(windows, states, now), places };
    })
    .catch(async (error: unknown) => {
      await Promise.allSettled(places.map((place) => leases.release(place)));
      throw error;
    });
}

const NO_PLACES: Entered<Slot> = Object.freeze({ places: [] });

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
  const now = steadyNow();
  const { usage, sent } = outcome;
  // Undefined when it is not known: then the estimate stays.
  const used = usage ? usage.prompt_tokens + usage.completion_tokens : sent ? undefined : 0;
  const work: Promise<void>[] = [];
  const write = (waitMs: number, change: () => Promise<void>): void =>
    void work.push(queue.add({ id: callId, until: Date.now() + waitMs, write: change }));
  for (const { leases, places, tokens } of holds) {
    for (const place of places) if (!leases.keep(place)) write(leaseMs, () => leases.release(place));
    for (const { key, reserved, endsAt } of tokens) {
      const delta = (used ?? reserved) - reserved;
      // What was reserved too much in a window that has ended must not be credited to the next.
      const isDue = (at: number): boolean => delta > 0 || (delta < 0 && at < endsAt);
      if (!isDue(now) || leases.adjust(key, delta, now)) continue;
      write(MINUTE_MS, async () => {
        const at = steadyNow();
        if (isDue(at)) await leases.counters.adjust(key, MINUTE_MS, delta, at);
      });
    }
  }
  return work.length > 1 ? Promise.all(work).then(() => undefined) : work[0];
}

function slotRefusal(full: Slot): GatewayError {
  return refusal(`${full.limit} calls at once ${describeOrigin(full)}`, SLOT_RETRY_MS, {
    'x-ratelimit-limit-concurrency': String(full.limit),
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
  readonly ofUser?: boolean | undefined;
  readonly plan: string | undefined;
  /** Where the plan limits one provider. */
  readonly provider: string | undefined;
}

/** A window of one minute, with what the call uses of it. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** A number of calls at once. */
export interface Slot extends LeasedSlot, Origin {}

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

/** Whose limits a call counts against: its key's, its user's over all keys, and its plan's. */
export function sourcesOf(principal: Principal, plan: NamedPlan | undefined): readonly Source[] {
  const { keyId, limitsId = keyId, rpm, tpm, account, userId, userLimits } = principal;
  const sources: Source[] = [];
  if (limitsId !== undefined) sources.push({ ...OF_KEY, id: limitsId, rates: { rpm, tpm } });
  if (userLimits) sources.push({ ...OF_KEY, scope: 'owner', id: userId, rates: userLimits, ofUser: true });
  if (plan) sources.push({ scope: 'user', id: account, rates: plan.plan, plan: plan.name, provider: undefined });
  return sources;
}

const OF_KEY = Object.freeze({ scope: 'key', plan: undefined, provider: undefined });

/** One half of the limits of these sources, and of a provider within the call's plan. */
export function limitsOf(request: CountedRequest, half: LimitHalf, of: readonly Source[], provider?: string): Limits {
  const { call, plan } = request;
  const rates = provider === undefined ? undefined : ratesAt(plan, provider);
  // Names of providers hold no colon, user ids may.
  const id = `${provider}:${call.principal.account}`;
  const sources = rates ? [...of, { scope: 'provider' as const, id, rates, plan: plan?.name, provider }] : of;
  return half === 'requests' ? requestLimits(call, sources) : tokenLimits(request, sources);
}

function ratesAt(plan: NamedPlan | undefined, provider: string): Source['rates'] | undefined {
  const providers = plan?.plan.providers;
  return providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
}

/** Whose a limit is, in words. */
function describeOrigin({ plan, provider, ofUser }: Origin): string {
  if (ofUser) return 'of this user, over all API keys';
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}

function requestLimits(call: Call, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  for (const { scope, id, rates, ofUser, plan, provider } of sources) {
    const { rpm, concurrency } = rates;
    const origin = { ofUser, plan, provider };
    if (rpm !== undefined && !call.skip.has('rpm'))
      windows.push({
        key: `rpm:${scope}:${id}`,
        windowMs: MINUTE_MS,
        limit: rpm,
        amount: 1,
        unit: 'requests',
        ...origin,
      });
    if (concurrency !== undefined && !call.skip.has('concurrency'))
      slots.push({ key: `calls:${scope}:${id}`, limit: concurrency, ...origin });
  }
  return { windows, slots };
}

function tokenLimits({ call, estimate }: CountedRequest, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  let tokens: number | undefined;
  for (const { scope, id, rates, ofUser, plan, provider } of sources) {
    const { tpm: limit } = rates;
    if (limit === undefined) continue;
    tokens ??= tokensOf(call, estimate(call));
    if (tokens === 0) break;
    // A call that is larger than the limit uses all of it.
    const amount = Math.min(tokens, limit);
    const origin = { ofUser, plan, provider };
    windows.push({ key: `tpm:${scope}:${id}`, windowMs: MINUTE_MS, limit, amount, unit: 'tokens', ...origin });
  }
  return { windows, slots: [] };
}

/** The prompt, estimated, and as much output as the caller asks for. */
function tokensOf({ request }: Call, { units }: Metered): number {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return (units['prompt_tokens'] ?? 0) + Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
}
