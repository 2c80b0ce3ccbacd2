import type { OpenCause, RoutingState, Target, TargetReport } from '../contract/call.ts';
import type { Counters } from '../contract/store.ts';
import { steadyNow } from '../contract/units.ts';
import { StickyTargets } from './choose-targets.ts';
import { Hedges, RetryBudget } from './retries.ts';
import {
  type Attempt,
  begin,
  type Health,
  judge,
  judgeOther,
  leave,
  mayTry,
  openByOthers,
  shareOf,
  stateOf,
  tryNewKey,
  UNKNOWN,
  type Verdict,
  WaitingAttempts,
} from './target-health.ts';

/** Scope of a verdict: one model, or everything of the provider (its network, its key). */
type Scope = 'model' | 'provider';

/** Maximum number of remembered targets that are configured or have responded. */
const MAX_TARGETS = 1000;

/** Maximum number of other failed targets. Callers may invent names, so they share this small limit. */
const MAX_STRANGERS = 100;

/** Called when this process opened or closed a target; `coolDownMs` is the time it stays open, 0 for a closed one. */
type HealthListener = (name: string, coolDownMs: number) => void;

/** Attempt at a target. Its outcome is reported with it; a stream reports twice (first token and end). */
export interface TargetAttempt extends Attempt {
  readonly target: Target;
}

/**
 * Health of all targets in this process; it survives a reload. A target can be tried if both its model and its provider
 * can.
 */
export class HealthBook {
  /** Ordered by use, the last used name last. */
  readonly #known = new Map<string, Entry>();
  readonly #unconfirmed = new Map<string, Entry>();
  /** Event counter, which orders names by use. */
  #events = 0;
  #isConfigured: (target: Target) => boolean = () => false;
  #lastId = 0;
  readonly #now: () => number;
  #keys: ReadonlyMap<string, string> = new Map();
  /** Targets (`provider/model`) and providers drained by an operator: they get no new calls, whatever their health. */
  drained: ReadonlySet<string> = new Set();
  /** Shares changes with other processes, if any. */
  onChange: HealthListener = () => {};

  constructor(now: () => number = steadyNow) {
    this.#now = now;
  }

  mayTry(target: Target): boolean {
    const now = this.#now();
    return namesOf(target).every((name) => mayTry(this.#of(name), now));
  }

  /**
   * True if its last attempt failed, or it is half open: its timeout is then shorter if another target is available.
   */
  isSuspect(target: Target): boolean {
    return namesOf(target).some((name) => this.#of(name).failures > 0 || this.#of(name).openUntil !== undefined);
  }

  /** Milliseconds until it may be tried again, if known; 0 if it may be tried now. */
  restMs(target: Target): number {
    if (this.mayTry(target)) return 0;
    return Math.max(...namesOf(target).map((name) => this.#of(name).openUntil ?? 0)) - this.#now();
  }

  /** Known latency in milliseconds; undefined without measurements. */
  latencyMs(target: Target, stream: boolean): number | undefined {
    return this.#of(namesOf(target)[1])[stream ? 'stream' : 'whole']?.ms;
  }

  /** Share of its calls that it should get now, up to 1. */
  shareOf(target: Target, stream: boolean): number {
    return Math.min(...namesOf(target).map((name) => shareOf(this.#of(name), this.#now(), stream)));
  }

  isDrained = (target: Target): boolean => namesOf(target).some((name) => this.drained.has(name));

  /**
   * Closes a target, its provider and their keys on an operator's request. Without a model it closes all of the
   * provider's.
   */
  reset(target: Target): void {
    const [provider, name] = namesOf(target);
    for (const each of this.names()) {
      const bare = each.replace(/#[^/]*/, '');
      if (bare !== provider && (target.model === '' ? !bare.startsWith(name) : bare !== name)) continue;
      const { whole, stream, lastError } = this.#of(each);
      this.#put(each, this.#of(each), { ...UNKNOWN, whole, stream, lastError });
    }
  }

  /** Reason why it cannot be tried now; undefined if it can. */
  causeOf(target: Target): OpenCause | undefined {
    const now = this.#now();
    const closed = namesOf(target)
      .map((name) => this.#of(name))
      .filter((health) => !mayTry(health, now));
    return closed.find(({ cause }) => cause !== 'failures')?.cause ?? closed[0]?.cause;
  }

  /** Chooses among targets that cannot be tried: those most likely to work come first, then the earliest retry time. */
  bestOf(targets: readonly Target[]): Target | undefined {
    const rank = (target: Target): readonly [number, number] => [
      RANK[this.causeOf(target) ?? 'failures'],
      Math.max(...namesOf(target).map((name) => this.#of(name).openUntil ?? 0)),
    ];
    return [...targets].sort((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1])[0];
  }

  /** Starts an attempt: the first one at a half-open target tests it. */
  begin(target: Target): TargetAttempt {
    this.#lastId += 1;
    const attempt = { target, id: this.#lastId, startedAt: this.#now() };
    for (const name of namesOf(target)) {
      const known = this.#of(name);
      if (known.openUntil !== undefined) this.#put(name, known, begin(known, attempt));
    }
    return attempt;
  }

  /** Ends an attempt without a verdict on its target, as when its caller disconnected. Has no effect after a report. */
  leave(attempt: TargetAttempt): void {
    for (const name of namesOf(attempt.target)) {
      const known = this.#of(name);
      this.#put(name, known, leave(known, attempt));
    }
  }

  /** Records the outcome of an attempt; default: an attempt that started now. */
  report(target: Target, verdict: Verdict, scope: Scope = 'model', attempt?: Attempt): void {
    const now = this.#now();
    const [provider, model] = namesOf(target);
    const [own, other] = scope === 'provider' ? [provider, model] : [model, provider];
    const known = this.#of(own);
    this.#put(own, known, judge(known, verdict, now, attempt));
    const knownOfOther = this.#of(other);
    this.#put(other, knownOfOther, judgeOther(knownOfOther, verdict, now, attempt));
  }

  /** Applies a state found by another worker or node. */
  learn(name: string, openUntil: number | undefined): void {
    const now = this.#now();
    const known = this.#of(name);
    const closed = known.cause === 'shared' ? { ...known, openUntil: now } : known;
    this.#put(name, known, openUntil === undefined ? closed : openByOthers(known, openUntil, now), false);
  }

  /** Replaces the test for configured targets. */
  useTargets(isConfigured: (target: Target) => boolean): void {
    this.#isConfigured = isConfigured;
  }

  /** Replaces the providers' keys by instance. A provider with a new key is tried at once. */
  useKeys(keys: ReadonlyMap<string, string>): void {
    const before = this.#keys;
    this.#keys = keys;
    const isReplaced = (provider: string): boolean =>
      before.has(provider) && before.get(provider) !== keys.get(provider);
    for (const name of this.names()) {
      const known = this.#of(name);
      const fresh = tryNewKey(known);
      if (!isReplaced(name.split(/[/#]/, 1)[0] ?? name) || fresh === known) continue;
      this.#put(name, known, fresh, false);
      this.onChange(name, 0);
    }
  }

  /** Names by use, the last used name last. */
  names(max = MAX_TARGETS + MAX_STRANGERS): readonly string[] {
    return [...namesByUse(this.#unconfirmed), ...namesByUse(this.#known)].slice(-max);
  }

  isOpen(name: string): boolean {
    return stateOf(this.#of(name), this.#now()) === 'open';
  }

  /** Reports all targets, the last used first. A provider's own state applies to each of its models. */
  reports(): readonly TargetReport[] {
    return this.names()
      .toReversed()
      .flatMap((name) => (name.includes('/') ? [this.reportOf(splitName(name))] : []));
  }

  reportOf(target: Target): TargetReport {
    const now = this.#now();
    const [provider, model] = namesOf(target).map((name) => this.#of(name)) as [Health, Health];
    const worst = (model.openUntil ?? 0) >= (provider.openUntil ?? 0) ? model : provider;
    const lastError =
      (model.lastError?.at ?? 0) >= (provider.lastError?.at ?? 0) ? model.lastError : provider.lastError;
    const { whole, stream, attempts, errorRate } = model;
    return {
      ...withoutKey(target),
      ...(this.isDrained(withoutKey(target))
        ? { state: 'drained' }
        : {
            state: stateOf(worst, now),
            ...(worst.cause && { cause: worst.cause }),
            ...(worst.openUntil !== undefined && { openUntil: worst.openUntil }),
          }),
      errorRate: Math.max(errorRate, provider.failures > 0 ? provider.errorRate : 0),
      attempts,
      ...(whole && { wholeMs: whole.ms }),
      ...(stream && { firstTokenMs: stream.ms }),
      ...(lastError && { lastError }),
    };
  }

  #of(name: string): Health {
    return (this.#known.get(name) ?? this.#unconfirmed.get(name))?.health ?? UNKNOWN;
  }

  /**
   * Stores the new health of a name, and notifies others if this process opened or closed it. The last used name comes
   * last; the first one is evicted above the limit.
   */
  #put(name: string, before: Health, after: Health, isOwn = true): void {
    if (after === before) return;
    this.#events += 1;
    const known = this.#known.get(name);
    if (known) {
      known.health = after;
      known.usedAt = this.#events;
    } else this.#putNew(name, after);
    if (isOwn && after.openUntil !== before.openUntil)
      this.onChange(name, after.openUntil === undefined ? 0 : after.openUntil - this.#now());
  }

  /** Adds a name to the group that it qualifies for. */
  #putNew(name: string, health: Health): void {
    const hasPlace = this.#isConfirmed(name, health);
    const places = hasPlace ? this.#known : this.#unconfirmed;
    const stranger = this.#unconfirmed.get(name);
    if (stranger && !hasPlace) {
      stranger.health = health;
      stranger.usedAt = this.#events;
      return;
    }
    if (stranger) this.#unconfirmed.delete(name);
    places.set(name, { health, usedAt: this.#events });
    if (places.size > (hasPlace ? MAX_TARGETS : MAX_STRANGERS)) places.delete(this.#leastOf(places));
  }

  /** True for providers, and for targets that are configured or have responded. */
  #isConfirmed(name: string, { whole, stream }: Health): boolean {
    return (
      whole !== undefined ||
      stream !== undefined ||
      !name.includes('/') ||
      this.#isConfigured(withoutKey(splitName(name)))
    );
  }

  /** Least recently used name, preferably one that is not configured. */
  #leastOf(places: ReadonlyMap<string, Entry>): string {
    const names = namesByUse(places);
    const isExtra = (name: string): boolean => name.includes('/') && !this.#isConfigured(withoutKey(splitName(name)));
    return names.find(isExtra) ?? names[0] ?? '';
  }
}

/**
 * Health of a name, updated in place: removing and adding a Map entry at each event would leave dead tables for the
 * garbage collector.
 */
interface Entry {
  health: Health;
  /** Number of the last event that used it. */
  usedAt: number;
}

/** Names of a map, the least recently used first. */
function namesByUse(places: ReadonlyMap<string, Entry>): readonly string[] {
  return [...places].sort(([, one], [, other]) => one.usedAt - other.usedAt).map(([name]) => name);
}

/** Order of open targets: causes that may have passed come before those reported by the vendor. */
const RANK: Readonly<Record<OpenCause, number>> = Object.freeze({
  failures: 0,
  shared: 1,
  rate_limit: 2,
  credential: 3,
});

/** Names of a provider as a whole, and of one of its models. */
function namesOf({ provider, model }: Target): readonly [provider: string, model: string] {
  return [provider, `${provider}/${model.slice(0, 200)}`];
}

/**
 * Target with one of its provider's keys; its health is tracked like that of a separate provider. Names of providers
 * contain no `#`.
 */
export function targetByKey({ provider, model }: Target, key: string): Target {
  return { provider: `${provider}#${key}`, model };
}

function withoutKey({ provider, model }: Target): Target & { readonly key?: string } {
  const [name = provider, key] = provider.split('#');
  return { provider: name, model, ...(key !== undefined && { key }) };
}

function splitName(name: string): Target {
  const slash = name.indexOf('/');
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}

/** Shortest interval between reads of other processes' state; reads happen only while there are calls. */
const EVERY_MS = 2_000;

/** Maximum names read per round: the last used ones. */
const MAX_NAMES = 32;

/** Version counter: there is nothing to read while it is unchanged. */
const VERSION = 'health.version';

const OPEN = 'open';

/** Holder of a lease that is taken only to read the remaining room, and released at once. */
const READER = 'reader';
const READ_MS = 1;
const MAX_OURS = 1_000;
const MANY = 1_000;

/** State shared by the workers and nodes of a store. */
interface SharedHealth {
  /** Reads the others' state from time to time. Called with each call, which does not wait for it. */
  refresh(): void;
  /** True if any of them has opened a target or provider. */
  isOpen(name: string): Promise<boolean>;
}

/**
 * Shares open targets with the other workers and nodes of a store. An opened target has a lease of the same duration.
 * No call waits for the store; missing replies count as unknown.
 */
export function shareHealth(counters: Counters, health: HealthBook, now: () => number = steadyNow): SharedHealth {
  let readAt = 0;
  let isReading = false;
  let version = 0;
  /** Names opened by others: their leases may end without a version change. */
  const openElsewhere = new Set<string>();
  /** Names with a lease of this process. */
  const ours = new Set<string>();

  const isOpen = async (name: string): Promise<boolean> =>
    !(await counters.lease(keyOf(name), READER, 1, READ_MS, now()));
  const publish = async (name: string, coolDownMs: number): Promise<void> => {
    const key = keyOf(name);
    if (coolDownMs > 0) await counters.lease(key, OPEN, MANY, Math.ceil(coolDownMs), now());
    else await counters.release(key, OPEN);
    await counters.next(VERSION);
  };
  health.onChange = (name, coolDownMs) => {
    if (coolDownMs === 0 && !ours.has(name) && !openElsewhere.has(name)) return;
    if (coolDownMs === 0) ours.delete(name);
    // Callers may invent names: forgotten ones are read from the store again.
    else if (ours.size < MAX_OURS) ours.add(name);
    openElsewhere.delete(name);
    publish(name, coolDownMs).catch(() => undefined);
  };

  const read = async (): Promise<void> => {
    const latest = await counters.next(VERSION, 0);
    const names = latest === version ? [...openElsewhere] : health.names(MAX_NAMES);
    version = latest;
    for (const name of names) {
      // Findings of this process take precedence.
      if (health.isOpen(name) && !openElsewhere.has(name)) continue;
      if (!ours.has(name) && (await isOpen(name))) {
        openElsewhere.add(name);
        health.learn(name, now() + 2 * EVERY_MS);
      } else if (openElsewhere.delete(name)) health.learn(name, undefined);
    }
  };

  return {
    isOpen,
    refresh() {
      if (isReading || now() - readAt < EVERY_MS) return;
      isReading = true;
      readAt = now();
      void read()
        .catch(() => undefined)
        .finally(() => {
          isReading = false;
        });
    },
  };
}

function keyOf(name: string): string {
  return `health.${name}`;
}

/** State for the choice of targets; it survives a reload. */
export interface Routing {
  readonly health: HealthBook;
  readonly budget: RetryBudget;
  readonly sticky: StickyTargets;
  readonly waiting: WaitingAttempts;
  readonly hedges: Hedges;
  /** Absent if no other process can open the store. */
  readonly shared: SharedHealth | undefined;
}

export function createRouting(share?: (health: HealthBook) => SharedHealth): Routing {
  const health = new HealthBook();
  return {
    health,
    budget: new RetryBudget(),
    sticky: new StickyTargets(),
    waiting: new WaitingAttempts(),
    hedges: new Hedges(),
    shared: share?.(health),
  };
}

/** State of this process, including configured targets that were not called since its start. */
export function describeRouting({ health, budget }: Routing, named: readonly Target[] = []): RoutingState {
  const targets = health.reports();
  const drained = [...health.drained].sort();
  const tried = new Set(targets.map(({ provider, model }) => `${provider}/${model}`));
  const ordered = drained.filter((name) => name.includes('/')).map(splitName);
  const known = new Map([...named, ...ordered].map((target) => [`${target.provider}/${target.model}`, target]));
  const untried = [...known.values()].filter(({ provider, model }) => !tried.has(`${provider}/${model}`));
  return { targets: [...targets, ...untried.map((target) => health.reportOf(target))], retries: budget.state, drained };
}
