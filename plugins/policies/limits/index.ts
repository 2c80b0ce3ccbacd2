import {
  type Call,
  type ChatRequest,
  definePlugin,
  type Metered,
  type NamedPlan,
  type Outcome,
  type PluginApi,
  type Principal,
  parseDuration,
  problemsOf,
  type Target,
  type WindowState,
} from '../../../contract/index.ts';
import { assertInPlan, createLocalCounters, createPlanFinder, steadyNow } from '../kit/index.ts';
import { createWriteQueue, isStoreFailure, type WriteQueue } from '../kit/write-queue.ts';
import { type Entered, Leases, type Place } from './leases.ts';
import { checkProviderLimits, limitProviders, PROVIDER_LIMITS } from './provider-limits.ts';
import { type Limit, MINUTE_MS, type Origin, type Slot, slotRefusal, windowRefusal } from './refusals.ts';

/** Limits requests and tokens per minute and concurrent calls: by key, by plan, and by provider within the plan. */
export default definePlugin({
  name: 'limits',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['records', 'operators'],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      onStoreFailure: {
        enum: ['degrade', 'closed', 'open'],
        default: 'degrade',
        description:
          'While the store is down: `degrade` counts in this process alone, `closed` answers 503, `open` does not limit.',
      },
      leaseFor: {
        type: 'string',
        format: 'duration',
        default: '1m',
        description:
          'How long a call of a gateway that died still counts as one at once. Living gateways renew theirs three times in it.',
      },
      providers: PROVIDER_LIMITS,
    },
  },
  check: ({ providers }) => problemsOf(() => checkProviderLimits(providers)),
  setup(api, config) {
    const { onStoreFailure } = config;
    const findPlan = createPlanFinder(api);
    const limiter = new Limiter(api, { onStoreFailure, leaseMs: parseDuration(config.leaseFor) });

    /** If the store cannot return the plan, only the limits of the key apply. */
    const planOrNone = async (found: Promise<NamedPlan | undefined>): Promise<NamedPlan | undefined> => {
      try {
        return await found;
      } catch (error) {
        if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
        return undefined;
      }
    };

    api.hook('arrive', (principal) => {
      const found = findPlan(principal);
      if (!(found instanceof Promise)) return limiter.arrive(principal, found);
      return planOrNone(found).then((plan) => limiter.arrive(principal, plan));
    });
    api.hook('admit', {
      order: 'pre',
      handler(call) {
        const found = findPlan(call.principal);
        if (!(found instanceof Promise)) return limiter.admit(call, found);
        return planOrNone(found).then((plan) => limiter.admit(call, plan));
      },
    });
    api.hook('reserve', { order: 'pre', handler: limiter.reserve });
    // Fallbacks and targets chosen by a hook count at their own provider when they are tried. The hook is always
    // registered, because plans may be added at run time.
    api.hook('send', limiter.send);
    api.hook('finish', limiter.finish);
    limitProviders(api, limiter.parts, config.providers);
    api.onReady(() => api.onClose(limiter.start()));
    api.onClose(() => limiter.close());
  },
});

/** Limits that a call counts against, updated as it proceeds. */
interface CountedCall extends CountedRequest {
  /** Limits of its key, its user's token and its plan. */
  readonly sources: readonly Source[];
  /** Targets of the call on arrival. */
  readonly targets: Call['targets'];
  /** Providers whose plan limits were counted, by half: `tokens openai`. */
  readonly counted: string[];
  readonly holds: LimitHold[];
}

type LimiterApi = Pick<PluginApi, 'stores' | 'log' | 'books' | 'keep' | 'models'>;

interface LimiterOptions {
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  /** Time that a call of a crashed gateway still counts as concurrent. */
  readonly leaseMs: number;
}

const COUNTED = Symbol('limits.counted');

const NO_SKIP: Call['skip'] = new Set();

const HALVES: readonly LimitHalf[] = Object.freeze(['requests', 'tokens']);

/** Counts calls against their limits. */
class Limiter {
  readonly #options: LimiterOptions;
  readonly #estimate: PluginApi['books']['estimate'];
  /** Its catalog is available after the gateway has started. */
  readonly #api: Pick<LimiterApi, 'models'>;
  readonly #leases: Leases;
  /** Counters during a store outage. They survive a configuration reload. */
  readonly #local: Leases;
  readonly #queue: WriteQueue;

  constructor(api: LimiterApi, options: LimiterOptions) {
    const {
      stores,
      log,
      books: { estimate },
      keep,
    } = api;
    this.#api = api;
    this.#options = options;
    this.#estimate = estimate;
    this.#leases = new Leases(stores.counters, options.leaseMs);
    this.#local = keep('counters', () => new Leases(createLocalCounters(), options.leaseMs));
    this.#queue = createWriteQueue({ log, otherwise: 'limits come right by their time' });
  }

  /**
   * Rejects a caller whose requests per minute or concurrent calls are used up, as far as this process knows. Counts
   * nothing; `admit` does.
   */
  arrive(principal: Principal, plan: NamedPlan | undefined): void {
    const now = steadyNow();
    const sources = sourcesOf(principal, plan);
    // The call does not exist yet; request limits need no more of it.
    const call = { principal, skip: NO_SKIP } as Partial<Call> as Call;
    const { windows, slots } = limitsOf({ call, plan, estimate: this.#estimate }, 'requests', sources, undefined);
    for (const leases of [this.#leases, this.#local]) {
      const full = slots.find((slot) => leases.isFull(slot));
      if (full) throw slotRefusal(full);
      for (const window of windows) {
        const state = leases.refused(window, now);
        if (state) throw windowRefusal([window], [state], 0);
      }
    }
  }

  /**
   * Counts the request and the concurrency slot of a call against the limits of key, plan and first provider. Throws
   * `rate_limited`.
   */
  admit(call: Call, plan: NamedPlan | undefined): Promise<void> | undefined {
    const sources = sourcesOf(call.principal, plan);
    const { targets, request } = call;
    if (plan?.plan.models)
      assertInPlan(this.#api.models.catalog, plan, targets, { requested: (request as ChatRequest).model });
    const counted: CountedCall = { call, plan, targets, estimate: this.#estimate, sources, counted: [], holds: [] };
    call.state.set(COUNTED, counted);
    return this.#hold(counted, 'requests', sources, call.targets[0]?.provider);
  }

  /** Counts the tokens of the final request. */
  readonly reserve = (call: Call): Promise<void> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    if (!counted) return undefined;
    const { plan, targets: known, sources } = counted;
    // Targets that a hook chose instead of the alias's own.
    if (plan?.plan.models)
      assertInPlan(
        this.#api.models.catalog,
        plan,
        call.targets.filter(
          ({ provider, model }) => !known.some((each) => each.provider === provider && each.model === model),
        ),
      );
    return this.#hold(counted, 'tokens', sources, call.targets[0]?.provider);
  };

  /** Counts a call against the limits of a later provider. */
  readonly send = (call: Call, _request: unknown, { provider }: Target): Promise<undefined> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    if (!counted?.plan?.plan.providers) return undefined;
    const halves = HALVES.filter((half) => !counted.counted.includes(`${half} ${provider}`));
    return halves.length === 0 ? undefined : this.#holdProvider(counted, halves, provider);
  };

  /** Releases the call's slots, and corrects its tokens to the actual usage. */
  readonly finish = (call: Call, outcome: Outcome): Promise<void> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    return counted && settleLimits(this.#queue, call.id, counted.holds, outcome, this.#options.leaseMs);
  };

  /** Parts shared with the provider limits over all callers. */
  get parts(): Parameters<typeof limitProviders>[1] {
    const { onStoreFailure } = this.#options;
    return { leases: this.#leases, local: this.#local, estimate: this.#estimate, onStoreFailure };
  }

  /** Starts to renew leases; returns a function that stops it. */
  start(): () => void {
    const stops = [this.#leases.start(), this.#local.start()];
    return () => {
      for (const stop of stops) stop();
    };
  }

  async close(): Promise<void> {
    await this.#leases.giveBack();
    await this.#queue.close();
  }

  /** Counts one half of the limits of these sources, and of a provider within the plan. */
  #hold(
    counted: CountedCall,
    half: LimitHalf,
    sources: readonly Source[],
    provider: string | undefined,
  ): Promise<void> | undefined {
    if (provider !== undefined && counted.plan?.plan.providers) counted.counted.push(`${half} ${provider}`);
    const limits = limitsOf(counted, half, sources, provider);
    if (limits.windows.length === 0 && limits.slots.length === 0) return undefined;
    const held = reserveLimits(this.#leases, counted.call, limits);
    if (held instanceof Promise) return this.#holdLater(counted, limits, held);
    counted.holds.push(held);
    return undefined;
  }

  async #holdLater({ call, holds }: CountedCall, limits: Limits, held: Promise<LimitHold>): Promise<void> {
    const { onStoreFailure } = this.#options;
    try {
      holds.push(await held);
    } catch (error) {
      if (!isStoreFailure(error) || onStoreFailure === 'closed') throw error;
      if (onStoreFailure === 'degrade') holds.push(await reserveLimits(this.#local, call, limits));
    }
  }

  async #holdProvider(counted: CountedCall, halves: readonly LimitHalf[], provider: string): Promise<undefined> {
    for (const half of halves) await this.#hold(counted, half, [], provider);
  }
}

/** Slots and windows of a running call, released or corrected at its end. */
export interface LimitHold {
  readonly leases: Leases;
  readonly places: readonly Place[];
  readonly windows: readonly Limit[];
  /** States of the windows when the call counted. */
  readonly states: readonly WindowState[];
  readonly takenAt: number;
}

/**
 * Reserves a slot of each kind, then the amounts of all windows, or nothing. Synchronous if this process has enough of
 * each. Throws `rate_limited` for the first exceeded limit, or errors of the store.
 */
export function reserveLimits(
  leases: Leases,
  call: Pick<Call, 'id'>,
  limits: Limits,
  takenAt: number = steadyNow(),
  entered: Entered<Slot> | Promise<Entered<Slot>> = limits.slots.length === 0
    ? NO_PLACES
    : leases.enter(limits.slots, call.id, takenAt),
): LimitHold | Promise<LimitHold> {
  if (entered instanceof Promise) return entered.then((later) => reserveLimits(leases, call, limits, takenAt, later));
  const { windows } = limits;
  const { places, full } = entered;
  if (full) throw slotRefusal(full);
  const taken = windows.length === 0 ? NOTHING_TAKEN : leases.take(windows, takenAt);
  if (!(taken instanceof Promise)) return { leases, places, windows, states: taken.states, takenAt };
  return taken
    .then(({ refused, states }) => {
      if (refused !== undefined) throw windowRefusal(windows, states, refused);
      return { leases, places, windows, states, takenAt };
    })
    .catch(async (error: unknown) => {
      await Promise.allSettled(places.map((place) => leases.release(place)));
      throw error;
    });
}

const NO_PLACES: Entered<Slot> = Object.freeze({ places: [] });
const NOTHING_TAKEN = Object.freeze({ states: [] });

/** Releases the leases, and corrects the token windows from the estimate to the actual usage. */
export function settleLimits(
  queue: WriteQueue,
  id: string,
  holds: readonly LimitHold[],
  { usage, sent }: Outcome,
  leaseMs: number,
): Promise<void> | undefined {
  const now = steadyNow();
  let work: Promise<void>[] | undefined;
  for (const [at, hold] of holds.entries()) {
    const { leases, places } = hold;
    for (const place of places) {
      if (leases.keep(place)) continue;
      work ??= [];
      work.push(queue.add({ id, until: Date.now() + leaseMs, write: () => leases.release(place) }));
    }
    for (const [index, { key, unit, amount }] of hold.windows.entries()) {
      if (unit !== 'tokens') continue;
      // Actual usage if known; else the estimate stays.
      const used = usage ? usage.prompt_tokens + usage.completion_tokens : sent ? amount : 0;
      // A stream that resumed at another target has counted in a window twice; its usage counts once.
      const delta = (isIn(holds, at, key) ? 0 : used) - amount;
      const correcting = delta === 0 ? undefined : correct(queue, id, hold, index, delta, now);
      if (!correcting) continue;
      work ??= [];
      work.push(correcting);
    }
  }
  return work && work.length > 1 ? Promise.all(work).then(() => undefined) : work?.[0];
}

/** Checks if an earlier hold has this window. */
function isIn(holds: readonly LimitHold[], before: number, key: string): boolean {
  for (let at = 0; at < before; at += 1) if (holds[at]?.windows.some((window) => window.key === key)) return true;
  return false;
}

/** Corrects a window of a hold; returns a promise if the store is needed. */
function correct(
  queue: WriteQueue,
  id: string,
  { leases, windows, states, takenAt }: LimitHold,
  index: number,
  delta: number,
  now: number,
): Promise<void> | undefined {
  const { key = '' } = windows[index] ?? {};
  const endsAt = takenAt + (states[index]?.resetMs ?? MINUTE_MS);
  if ((delta < 0 && now >= endsAt) || leases.adjust(key, delta, now)) return undefined;
  const write = (): Promise<void> => adjustWindow(leases, key, delta, endsAt);
  return queue.add({ id, until: Date.now() + MINUTE_MS, write });
}

/** An excess reservation of a past window must not be credited to the next one. */
async function adjustWindow({ counters }: Leases, key: string, delta: number, endsAt: number): Promise<void> {
  const now = steadyNow();
  if (delta > 0 || now < endsAt) await counters.adjust(key, MINUTE_MS, delta, now);
}

interface Limits {
  readonly windows: readonly Limit[];
  readonly slots: readonly Slot[];
}

/** Rates of a key, a token or a plan. */
interface Rates {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** Limits of one origin. Only the amount of the token window differs per call. */
interface Source {
  readonly requests: Limit | undefined;
  readonly tokens: Omit<Limit, 'amount'> | undefined;
  readonly slot: Slot | undefined;
}

function sourceOf(
  scope: 'key' | 'owner' | 'user' | 'provider',
  id: string,
  { rpm, tpm, concurrency }: Rates,
  { ofUser, plan, provider }: Origin,
): Source {
  const origin = { ofUser, plan, provider };
  const windowOf = (unit: Limit['unit'], limit: number) => ({
    key: `${unit === 'tokens' ? 'tpm' : 'rpm'}:${scope}:${id}`,
    ...{ windowMs: MINUTE_MS, limit, unit },
    ...origin,
  });
  return {
    requests: rpm === undefined ? undefined : { ...windowOf('requests', rpm), amount: 1 },
    tokens: tpm === undefined ? undefined : windowOf('tokens', tpm),
    slot: concurrency === undefined ? undefined : { key: `calls:${scope}:${id}`, limit: concurrency, ...origin },
  };
}

/** Half of the limits. Requests and concurrency are known on arrival, tokens only with the final request. */
type LimitHalf = 'requests' | 'tokens';

/** Data to compute the limits of a call. */
export interface CountedRequest {
  readonly call: Call;
  readonly plan: NamedPlan | undefined;
  /** Estimates the maximum usage of the call; called only if tokens are limited. */
  readonly estimate: (call: Call) => Metered;
}

/** Limits of a caller, cached for this plan. */
interface CallerLimits {
  readonly plan: NamedPlan | undefined;
  readonly sources: readonly Source[];
}

/** Principals and plans are the same objects until their key or plan changes. */
const callers = new WeakMap<Principal, CallerLimits>();

/** Returns the limits of a call: of its key, of its user over all keys, and of its plan. */
export function sourcesOf(principal: Principal, plan: NamedPlan | undefined): readonly Source[] {
  const known = callers.get(principal);
  if (known && known.plan === plan) return known.sources;
  const { keyId, limitsId = keyId, rpm, tpm, account, userId, userLimits } = principal;
  const sources: Source[] = [];
  if (limitsId !== undefined) sources.push(sourceOf('key', limitsId, { rpm, tpm }, OF_KEY));
  if (userLimits) sources.push(sourceOf('owner', userId, userLimits, OF_USER));
  if (plan) sources.push(sourceOf('user', account, plan.plan, { plan: plan.name, provider: undefined }));
  callers.set(principal, { plan, sources });
  return sources;
}

const OF_KEY: Origin = Object.freeze({ plan: undefined, provider: undefined });
const OF_USER: Origin = Object.freeze({ ...OF_KEY, ofUser: true });

/** Returns one half of the limits of these sources, and of a provider within the call's plan. */
export function limitsOf(
  { call, plan: named, estimate }: CountedRequest,
  half: LimitHalf,
  of: readonly Source[],
  at: string | undefined,
): Limits {
  const { providers } = named?.plan ?? {};
  const own = at !== undefined && providers && Object.hasOwn(providers, at) ? providers[at] : undefined;
  // Provider names contain no colon; user ids may.
  const id = `${at}:${call.principal.account}`;
  const sources = own ? [...of, sourceOf('provider', id, own, { plan: named?.name, provider: at })] : of;
  return half === 'tokens' ? tokenLimits(call, sources, estimate) : requestLimits(call, sources);
}

function requestLimits({ skip }: Pick<Call, 'skip'>, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  for (const { requests, slot } of sources) {
    if (requests && !skip.has('rpm')) windows.push(requests);
    if (slot && !skip.has('concurrency')) slots.push(slot);
  }
  return { windows, slots };
}

function tokenLimits(call: Call, sources: readonly Source[], estimate: CountedRequest['estimate']): Limits {
  const limited = sources.filter(({ tokens }) => tokens);
  if (limited.length === 0) return NO_LIMITS;
  // Estimated prompt tokens plus the requested output limit.
  const { max_completion_tokens: most, max_tokens } = call.request as Partial<ChatRequest>;
  const wanted = (estimate(call).units['prompt_tokens'] ?? 0) + Math.max(most ?? 0, max_tokens ?? 0);
  if (wanted === 0) return NO_LIMITS;
  const windows: Limit[] = [];
  // A call larger than the limit uses all of it.
  for (const { tokens } of limited) if (tokens) windows.push({ ...tokens, amount: Math.min(wanted, tokens.limit) });
  return { windows, slots: NO_LIMITS.slots };
}

const NO_LIMITS: Limits = Object.freeze({ windows: Object.freeze([]), slots: Object.freeze([]) });
