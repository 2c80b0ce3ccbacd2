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

/** Requests and tokens a minute and calls at once, by key, by plan, and by provider within the plan. */
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

    /** Without a plan, when the store cannot say which one: then the limits of the key alone count. */
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
    // A fallback, or a target that a hook chose, counts at its own provider when it is its turn.
    // Plans may come at run time, so this is not left out where those of the file limit no provider.
    api.hook('send', limiter.send);
    api.hook('finish', limiter.finish);
    limitProviders(api, limiter.parts, config.providers);
    api.onReady(() => api.onClose(limiter.start()));
    api.onClose(() => limiter.close());
  },
});

/** What a call counts against, as it goes on. */
interface CountedCall extends CountedRequest {
  /** Of its key, its user's token and its plan. */
  readonly sources: readonly Source[];
  /** Its targets as it came. */
  readonly targets: Call['targets'];
  /** Providers whose limits within the plan were counted, by half: `tokens openai`. */
  readonly counted: string[];
  readonly holds: LimitHold[];
}

type LimiterApi = Pick<PluginApi, 'stores' | 'log' | 'books' | 'keep' | 'models'>;

interface LimiterOptions {
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  /** How long a call of a gateway that died still counts as one at once. */
  readonly leaseMs: number;
}

const COUNTED = Symbol('limits.counted');

const NO_SKIP: Call['skip'] = new Set();

const HALVES: readonly LimitHalf[] = Object.freeze(['requests', 'tokens']);

/** Counts calls against their limits. */
class Limiter {
  readonly #options: LimiterOptions;
  readonly #estimate: PluginApi['books']['estimate'];
  /** Its catalog is there once the gateway has started. */
  readonly #api: Pick<LimiterApi, 'models'>;
  readonly #leases: Leases;
  /** For while the store is down. What was counted here goes on to count when the configuration changes. */
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

  /** Refuses a caller whose requests a minute, or calls at once, this process knows to be used up. Counts nothing: that is for `admit`. */
  arrive(principal: Principal, plan: NamedPlan | undefined): void {
    const now = steadyNow();
    const sources = sourcesOf(principal, plan);
    // Of a call that is not there yet; of requests no more is asked.
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

  /** Counts a call's request and its place against the limits of key, plan and first provider; throws `rate_limited`. */
  admit(call: Call, plan: NamedPlan | undefined): Promise<void> | undefined {
    const sources = sourcesOf(call.principal, plan);
    const { targets, request } = call;
    if (plan?.plan.models)
      assertInPlan(this.#api.models.catalog, plan, targets, { requested: (request as ChatRequest).model });
    const counted: CountedCall = { call, plan, targets, estimate: this.#estimate, sources, counted: [], holds: [] };
    call.state.set(COUNTED, counted);
    return this.#hold(counted, 'requests', sources, call.targets[0]?.provider);
  }

  /** Counts the tokens that will be sent. */
  readonly reserve = (call: Call): Promise<void> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    if (!counted) return undefined;
    const { plan, targets: known, sources } = counted;
    // Those that a hook chose in place of the alias's own.
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

  /** Counts a call against the limits of a provider that it comes to later. */
  readonly send = (call: Call, _request: unknown, { provider }: Target): Promise<undefined> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    if (!counted?.plan?.plan.providers) return undefined;
    const halves = HALVES.filter((half) => !counted.counted.includes(`${half} ${provider}`));
    return halves.length === 0 ? undefined : this.#holdProvider(counted, halves, provider);
  };

  /** Frees what the call held, and corrects its tokens to what was used. */
  readonly finish = (call: Call, outcome: Outcome): Promise<void> | undefined => {
    const counted = call.state.get(COUNTED) as CountedCall | undefined;
    return counted && settleLimits(this.#queue, call.id, counted.holds, outcome, this.#options.leaseMs);
  };

  /** What limits of providers over all callers count with, too. */
  get parts(): Parameters<typeof limitProviders>[1] {
    const { onStoreFailure } = this.#options;
    return { leases: this.#leases, local: this.#local, estimate: this.#estimate, onStoreFailure };
  }

  /** Begins to renew leases; returns how to stop. */
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

/** What a call holds while it runs, to be released or corrected at its end. */
export interface LimitHold {
  readonly leases: Leases;
  readonly places: readonly Place[];
  readonly windows: readonly Limit[];
  /** Of the windows, when they were taken from. */
  readonly states: readonly WindowState[];
  readonly takenAt: number;
}

/**
 * Reserves a slot of each kind, then its part of all windows, or nothing at all; at once where this process has enough of each. Throws
 * `rate_limited`, which names the first limit that is reached, or what the store throws.
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

/** Ends the leases, and corrects the token windows from the estimate to what was used. */
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
      // What was used, as far as it is known: else the estimate stays.
      const used = usage ? usage.prompt_tokens + usage.completion_tokens : sent ? amount : 0;
      // A stream that went on at another target has taken from a window twice: what was used counts once.
      const delta = (isIn(holds, at, key) ? 0 : used) - amount;
      const correcting = delta === 0 ? undefined : correct(queue, id, hold, index, delta, now);
      if (!correcting) continue;
      work ??= [];
      work.push(correcting);
    }
  }
  return work && work.length > 1 ? Promise.all(work).then(() => undefined) : work?.[0];
}

/** Whether one of the first holds has this window. */
function isIn(holds: readonly LimitHold[], before: number, key: string): boolean {
  for (let at = 0; at < before; at += 1) if (holds[at]?.windows.some((window) => window.key === key)) return true;
  return false;
}

/** Corrects a window of a hold; a promise where the store has to. */
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

/** What was reserved too much in a window that has ended must not be credited to the next. */
async function adjustWindow({ counters }: Leases, key: string, delta: number, endsAt: number): Promise<void> {
  const now = steadyNow();
  if (delta > 0 || now < endsAt) await counters.adjust(key, MINUTE_MS, delta, now);
}

interface Limits {
  readonly windows: readonly Limit[];
  readonly slots: readonly Slot[];
}

/** Rates as a key, a token or a plan sets them. */
interface Rates {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** Limits of one origin. Only the window of tokens is another one for each call. */
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

/** Which half of the limits: requests and calls at once are known when a call comes, tokens when its request is final. */
type LimitHalf = 'requests' | 'tokens';

/** What the limits of a call are made of. */
export interface CountedRequest {
  readonly call: Call;
  readonly plan: NamedPlan | undefined;
  /** What the call may come to, asked for when tokens are limited. */
  readonly estimate: (call: Call) => Metered;
}

/** Limits of a caller, with the plan that they were worked out for. */
interface CallerLimits {
  readonly plan: NamedPlan | undefined;
  readonly sources: readonly Source[];
}

/** Principals and plans are the same objects until their key or plan changes. */
const callers = new WeakMap<Principal, CallerLimits>();

/** Whose limits a call counts against: its key's, its user's over all keys, and its plan's. */
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

/** One half of the limits of these sources, and of a provider within the call's plan. */
export function limitsOf(
  { call, plan: named, estimate }: CountedRequest,
  half: LimitHalf,
  of: readonly Source[],
  at: string | undefined,
): Limits {
  const { providers } = named?.plan ?? {};
  const own = at !== undefined && providers && Object.hasOwn(providers, at) ? providers[at] : undefined;
  // Names of providers hold no colon, user ids may.
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
  // The prompt, estimated, and as much output as the caller asks for.
  const { max_completion_tokens: most, max_tokens } = call.request as Partial<ChatRequest>;
  const wanted = (estimate(call).units['prompt_tokens'] ?? 0) + Math.max(most ?? 0, max_tokens ?? 0);
  if (wanted === 0) return NO_LIMITS;
  const windows: Limit[] = [];
  // A call that is larger than the limit uses all of it.
  for (const { tokens } of limited) if (tokens) windows.push({ ...tokens, amount: Math.min(wanted, tokens.limit) });
  return { windows, slots: NO_LIMITS.slots };
}

const NO_LIMITS: Limits = Object.freeze({ windows: Object.freeze([]), slots: Object.freeze([]) });
