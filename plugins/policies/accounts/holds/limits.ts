import { createHash } from 'node:crypto';
import type {
  Call,
  ChatRequest,
  Metered,
  NamedPlan,
  Outcome,
  PlanFinder,
  PluginApi,
  Principal,
  Target,
  WindowState,
} from '../../../../contract/index.ts';
import { assertInPlan, createLocalCounters, createPlanFinder, steadyNow } from '../../kit/index.ts';
import { createWriteQueue, isStoreFailure, type WriteQueue } from '../../kit/write-queue.ts';
import { type CallHold, type CountedTokens, findHold, holdOf } from './call-hold.ts';
import { type Entered, type Lease, Leases } from './leases.ts';
import {
  type CallerSource,
  type Limit,
  MINUTE_MS,
  type Origin,
  type Slot,
  slotRefusal,
  windowRefusal,
} from './limit-refusals.ts';
import { type ProviderLimit, ProviderQueue, wantedTokens } from './provider-limits.ts';

type LimitsApi = Pick<PluginApi, 'stores' | 'log' | 'books' | 'keep' | 'models' | 'settings'>;

interface LimitsOptions {
  readonly onStoreFailure: 'degrade' | 'closed' | 'open';
  /** Time that a call of a crashed gateway still counts as concurrent. */
  readonly leaseMs: number;
  /** Limits of all callers together, by provider. */
  readonly providers: Readonly<Record<string, ProviderLimit>>;
}

/** Half of the limits. Requests and concurrency are known on arrival, tokens only with the final request. */
export type LimitHalf = 'requests' | 'tokens';

const NO_SKIP: Call['skip'] = new Set();

/**
 * Limits of calls: of their key, user and plan, of a provider within the plan, and of a provider over all callers. `hold`
 * counts a call or rejects it, and `end` releases its places and corrects its tokens.
 */
export class CallLimits {
  readonly #options: LimitsOptions;
  readonly #estimate: (call: Call) => Metered;
  readonly #findPlan: PlanFinder;
  /** Its catalog is available after the gateway has started. */
  readonly #models: PluginApi['models'];
  readonly #leases: Leases;
  /** Counters during a store outage. They survive a configuration reload. */
  readonly #local: Leases;
  readonly #queue: WriteQueue;
  readonly #providers: ReadonlyMap<string, ProviderQueue>;

  constructor(api: LimitsApi, options: LimitsOptions) {
    const { estimate } = api.books;
    const { onStoreFailure, leaseMs, providers } = options;
    this.#options = options;
    this.#estimate = estimate;
    this.#findPlan = createPlanFinder(api);
    this.#models = api.models;
    this.#leases = new Leases(api.stores.counters, leaseMs);
    this.#local = api.keep('counters', () => new Leases(createLocalCounters(), leaseMs));
    this.#queue = createWriteQueue({ log: api.log, otherwise: 'limits come right by their time' });
    const parts = { leases: this.#leases, local: this.#local, estimate, onStoreFailure };
    this.#providers = new Map(
      Object.entries(providers).map(([name, limit]) => [name, new ProviderQueue(parts, name, limit)]),
    );
  }

  /**
   * Rejects a caller whose requests per minute or concurrent calls are used up, as far as this process knows. Counts
   * nothing; `hold` does.
   */
  arrive(principal: Principal): Promise<void> | undefined {
    const found = this.#planOf(principal);
    if (found instanceof Promise) return found.then((plan) => this.#assertNotUsedUp(principal, plan));
    this.#assertNotUsedUp(principal, found);
    return undefined;
  }

  #assertNotUsedUp(principal: Principal, plan: NamedPlan | undefined): void {
    const now = steadyNow();
    const { windows, slots } = requestLimits(sourcesOf(principal, plan), NO_SKIP);
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
   * Counts one half of a call against the limits of key, user, plan and first provider of the plan. Throws `rate_limited`, and
   * `model_not_allowed` for targets outside the plan.
   */
  hold(call: Call, half: LimitHalf): Promise<void> | undefined {
    if (half === 'tokens') return this.#holdTokens(call);
    const found = this.#planOf(call.principal);
    return found instanceof Promise
      ? found.then((plan) => this.#holdRequest(call, plan))
      : this.#holdRequest(call, found);
  }

  #holdRequest(call: Call, plan: NamedPlan | undefined): Promise<void> | undefined {
    const { principal, targets, request } = call;
    // Tools have a list of their own, `serverTools`.
    if (plan?.plan.models && call.operation !== 'mcp')
      assertInPlan(this.#models.catalog, plan, targets, { requested: (request as ChatRequest).model });
    const hold = holdOf(call);
    hold.isCounted = true;
    hold.plan = plan;
    hold.sources = sourcesOf(principal, plan);
    hold.targets = targets;
    return this.#count(call, hold, 'requests', hold.sources, targets[0]?.provider);
  }

  #holdTokens(call: Call): Promise<void> | undefined {
    const hold = findHold(call);
    if (!hold?.isCounted) return undefined;
    const { plan, targets: known, sources } = hold;
    // Targets that a hook chose instead of the alias's own.
    if (plan?.plan.models && call.targets !== known)
      assertInPlan(
        this.#models.catalog,
        plan,
        call.targets.filter((target) => !known.some((each) => isSame(each, target))),
      );
    return this.#count(call, hold, 'tokens', sources, call.targets[0]?.provider);
  }

  /** Counts a call at a provider that an attempt uses, and waits for the provider's turn if all callers use up its limits. */
  holdAt(call: Call, provider: string): Promise<undefined> | undefined {
    const hold = findHold(call);
    const isOfPlan = hold?.plan?.plan.providers !== undefined;
    if (!isOfPlan && this.#providers.size === 0) return undefined;
    const isCounted = !hold || !isOfPlan || (hold.requestsAt.includes(provider) && hold.tokensAt.includes(provider));
    const queue = this.#providers.get(provider);
    return isCounted && !queue ? undefined : this.#holdAt(call, isCounted ? undefined : hold, provider, queue);
  }

  async #holdAt(
    call: Call,
    hold: CallHold | undefined,
    provider: string,
    queue: ProviderQueue | undefined,
  ): Promise<undefined> {
    if (hold && !hold.requestsAt.includes(provider)) await this.#count(call, hold, 'requests', NONE, provider);
    if (hold && !hold.tokensAt.includes(provider)) await this.#count(call, hold, 'tokens', NONE, provider);
    if (!queue) return;
    const begunAt = steadyNow();
    const place = await queue.take(call);
    const waitedMs = Math.round(steadyNow() - begunAt);
    if (waitedMs > 0) call.headers.set('x-tollgate-queued-ms', String(waitedMs));
    if (!place) return;
    const own = holdOf(call);
    own.providers = [...own.providers, place];
  }

  /** Returns the capacity of a failed attempt to its provider. */
  async endAt(call: Call, provider: string): Promise<void> {
    const hold = findHold(call);
    if (!hold) return;
    const ended = hold.providers.filter((place) => place.provider === provider);
    if (ended.length === 0) return;
    hold.providers = hold.providers.filter((place) => !ended.includes(place));
    for (const place of ended) await this.#providers.get(provider)?.giveBack(place, undefined);
  }

  /** Releases the places of a call, and corrects its tokens to the actual usage. */
  end(call: Call, outcome: Outcome): Promise<void> | undefined {
    const hold = findHold(call);
    if (!hold) return undefined;
    const { providers } = hold;
    const ended = endLimits(this.#queue, call.id, hold, outcome, this.#options.leaseMs);
    if (providers.length === 0) return ended;
    hold.providers = NONE;
    const returned = providers.map((place) => this.#providers.get(place.provider)?.giveBack(place, outcome));
    return Promise.all([ended, ...returned]).then(() => undefined);
  }

  /** Number of calls that wait for the limits of providers over all callers. */
  get waiting(): number {
    let waiting = 0;
    for (const { size } of this.#providers.values()) waiting += size;
    return waiting;
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

  /** Finds the plan of a caller. If the store cannot return it, only the limits of the key apply. */
  #planOf(principal: Principal): NamedPlan | undefined | Promise<NamedPlan | undefined> {
    const found = this.#findPlan(principal);
    if (!(found instanceof Promise)) return found;
    return found.catch((error: unknown) => {
      if (!isStoreFailure(error) || this.#options.onStoreFailure === 'closed') throw error;
      return undefined;
    });
  }

  /** Counts one half of the limits of these sources, and of a provider within the plan. */
  #count(
    call: Call,
    hold: CallHold,
    half: LimitHalf,
    sources: readonly CallerSource[],
    provider: string | undefined,
  ): Promise<void> | undefined {
    const { plan } = hold;
    if (provider !== undefined && plan?.plan.providers) {
      if (half === 'requests') hold.requestsAt = [...hold.requestsAt, provider];
      else hold.tokensAt = [...hold.tokensAt, provider];
    }
    const limits = limitsOf({ call, plan, estimate: this.#estimate }, half, sources, provider);
    if (limits.windows.length === 0 && limits.slots.length === 0) return undefined;
    return this.#take(call.id, hold, limits);
  }

  #take(id: string, hold: CallHold, limits: Limits): Promise<void> | undefined {
    const { onStoreFailure } = this.#options;
    const taking = takeLimits(hold, this.#leases, id, limits);
    if (!taking || onStoreFailure === 'closed') return taking;
    return taking.catch(async (error: unknown) => {
      if (!isStoreFailure(error)) throw error;
      if (onStoreFailure === 'degrade') await takeLimits(hold, this.#local, id, limits);
    });
  }
}

function isSame(one: Target, other: Target): boolean {
  return one.provider === other.provider && one.model === other.model;
}

/**
 * Takes a place in each slot, then the amounts of all windows, or nothing, for a call to hold. Synchronous if this process has
 * enough of each. Throws `rate_limited` for the first exceeded limit, or errors of the store.
 */
export function takeLimits(
  hold: CallHold,
  leases: Leases,
  id: string,
  { windows, slots }: Limits,
): Promise<void> | undefined {
  const now = steadyNow();
  if (slots.length === 0) return takeWindows(hold, leases, windows, NONE, now);
  const entered = leases.enter(slots, id, now);
  if (!(entered instanceof Promise)) return takeWindows(hold, leases, windows, placesOf(entered), now);
  return entered.then((later) => takeWindows(hold, leases, windows, placesOf(later), now));
}

function placesOf({ places, full }: Entered<Slot>): readonly Lease[] {
  if (full) throw slotRefusal(full);
  return places;
}

function takeWindows(
  hold: CallHold,
  leases: Leases,
  windows: readonly Limit[],
  places: readonly Lease[],
  now: number,
): Promise<void> | undefined {
  if (places.length > 0) hold.places = hold.places.length === 0 ? places : [...hold.places, ...places];
  if (windows.length === 0) return undefined;
  const taken = leases.take(windows, now);
  if (!(taken instanceof Promise)) {
    addTokens(hold, leases, windows, taken.states, now);
    return undefined;
  }
  return taken
    .then(({ refused, states }) => {
      if (refused !== undefined) throw windowRefusal(windows, states, refused);
      addTokens(hold, leases, windows, states, now);
    })
    .catch(async (error: unknown) => {
      hold.places = hold.places.filter((place) => !places.includes(place));
      await Promise.allSettled(places.map((place) => leases.release(place)));
      throw error;
    });
}

/** Adds the windows whose amount the end of the call corrects. */
function addTokens(
  hold: CallHold,
  leases: Leases,
  windows: readonly Limit[],
  states: readonly WindowState[],
  now: number,
): void {
  let counted: CountedTokens[] | undefined;
  for (let at = 0; at < windows.length; at += 1) {
    const window = windows[at];
    if (window?.unit !== 'tokens') continue;
    counted ??= [...hold.tokens];
    const endsAt = now + (states[at]?.resetMs ?? MINUTE_MS);
    counted.push({ leases, key: window.key, amount: window.amount, endsAt });
  }
  if (counted) hold.tokens = counted;
}

/** Releases the places of a call, and corrects its token windows from the estimate to the actual usage. */
export function endLimits(
  queue: WriteQueue,
  id: string,
  { places, tokens }: CallHold,
  { usage, sent }: Outcome,
  leaseMs: number,
): Promise<void> | undefined {
  if (places.length === 0 && tokens.length === 0) return undefined;
  const work: Promise<void>[] = [];
  for (const place of places) {
    const { owner } = place;
    if (owner.keep(place)) continue;
    work.push(queue.add({ id, until: Date.now() + leaseMs, write: () => owner.release(place) }));
  }
  const now = steadyNow();
  for (let at = 0; at < tokens.length; at += 1) {
    const counted = tokens[at];
    if (!counted) continue;
    // Actual usage if known; else the estimate stays.
    const actual = usage ? usage.prompt_tokens + usage.completion_tokens : sent ? counted.amount : 0;
    // A stream that resumed at another target has counted in a window twice; its usage counts once.
    const delta = (isCountedBefore(tokens, at) ? 0 : actual) - counted.amount;
    const correcting = delta === 0 ? undefined : correctTokens(queue, id, counted, delta, now);
    if (correcting) work.push(correcting);
  }
  return work.length > 1 ? Promise.all(work).then(() => undefined) : work[0];
}

function isCountedBefore(tokens: readonly CountedTokens[], at: number): boolean {
  for (let before = 0; before < at; before += 1) if (tokens[before]?.key === tokens[at]?.key) return true;
  return false;
}

/** Corrects a window; returns a promise if the store is needed. */
function correctTokens(
  queue: WriteQueue,
  id: string,
  { leases, key, endsAt }: CountedTokens,
  delta: number,
  now: number,
): Promise<void> | undefined {
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

function sourceOf(
  scope: 'key' | 'owner' | 'user' | 'provider',
  id: string,
  { rpm, tpm, concurrency }: Rates,
  { ofUser, plan, provider }: Origin,
): CallerSource {
  const origin = { ofUser, plan, provider };
  const windowOf = (unit: Limit['unit'], limit: number) => ({
    key: `${unit === 'tokens' ? 'tpm' : 'rpm'}:${scope}:${id}`,
    windowMs: MINUTE_MS,
    limit,
    unit,
    ...origin,
  });
  return {
    requests: rpm === undefined ? undefined : { ...windowOf('requests', rpm), amount: 1 },
    tokens: tpm === undefined ? undefined : windowOf('tokens', tpm),
    slot: concurrency === undefined ? undefined : { key: `calls:${scope}:${id}`, limit: concurrency, ...origin },
  };
}

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
  readonly sources: readonly CallerSource[];
}

/** Principals and plans are the same objects until their key or plan changes. */
const callers = new WeakMap<Principal, CallerLimits>();

/** Returns the limits of a call: of its key, of its user over all keys, and of its plan. */
export function sourcesOf(principal: Principal, plan: NamedPlan | undefined): readonly CallerSource[] {
  const known = callers.get(principal);
  if (known && known.plan === plan) return known.sources;
  const { keyId, limitsId = keyId, rpm, tpm, account, userId, userLimits } = principal;
  const sources: CallerSource[] = [];
  if (limitsId !== undefined) sources.push(sourceOf('key', limitsId, { rpm, tpm }, OF_KEY));
  if (userLimits) sources.push(sourceOf('owner', hashName(userId), userLimits, OF_USER));
  if (plan) sources.push(sourceOf('user', hashName(account), plan.plan, { plan: plan.name, provider: undefined }));
  callers.set(principal, { plan, sources });
  return sources;
}

const OF_KEY: Origin = Object.freeze({ plan: undefined, provider: undefined });
const OF_USER: Origin = Object.freeze({ ...OF_KEY, ofUser: true });

/** Names of accounts as limits have them. */
const hashes = new WeakMap<Principal, string>();

function providerSource(principal: Principal, at: string, rates: Rates, plan: string | undefined): CallerSource {
  const account = hashes.get(principal) ?? hashName(principal.account);
  hashes.set(principal, account);
  return sourceOf('provider', `${at}:${account}`, rates, { plan, provider: at });
}

/** Hashes the name of a user or an account: counters outlive an erasure of the name by minutes. */
export function hashName(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 22);
}

/** Returns one half of the limits of these sources, and of a provider within the call's plan. */
export function limitsOf(
  { call, plan: named, estimate }: CountedRequest,
  half: LimitHalf,
  of: readonly CallerSource[],
  at: string | undefined,
): Limits {
  const { providers } = named?.plan ?? {};
  const own = at !== undefined && providers && Object.hasOwn(providers, at) ? providers[at] : undefined;
  const sources = own && at !== undefined ? [...of, providerSource(call.principal, at, own, named?.name)] : of;
  return half === 'tokens' ? tokenLimits(call, sources, estimate) : requestLimits(sources, call.skip);
}

function requestLimits(sources: readonly CallerSource[], skip: Call['skip']): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  for (const { requests, slot } of sources) {
    if (requests && !skip.has('rpm')) windows.push(requests);
    if (slot && !skip.has('concurrency')) slots.push(slot);
  }
  return { windows, slots };
}

function tokenLimits(call: Call, sources: readonly CallerSource[], estimate: CountedRequest['estimate']): Limits {
  const limited = sources.filter(({ tokens }) => tokens);
  if (limited.length === 0) return NO_LIMITS;
  const wanted = wantedTokens(call, estimate);
  if (wanted === 0) return NO_LIMITS;
  const windows: Limit[] = [];
  // A call larger than the limit uses all of it.
  for (const { tokens } of limited) {
    if (!tokens) continue;
    const { key, windowMs, limit, unit, ofUser, plan, provider } = tokens;
    windows.push({ key, windowMs, limit, unit, amount: Math.min(wanted, limit), ofUser, plan, provider });
  }
  return { windows, slots: NO_LIMITS.slots };
}

const NONE: readonly never[] = Object.freeze([]);
const NO_LIMITS: Limits = Object.freeze({ windows: NONE, slots: NONE });
