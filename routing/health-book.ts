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

/** What a verdict is about: one model, or everything that the provider serves (its network, its key). */
type Scope = 'model' | 'provider';

/** Targets that are remembered: those that are configured or have answered. */
const MAX_TARGETS = 1000;

/** Others that failed. Callers make names up: these few places are all that such names get. */
const MAX_STRANGERS = 100;

/** Called when this process opened or closed a target; `coolDownMs` is how long it is left alone, 0 for one that is closed. */
type HealthListener = (name: string, coolDownMs: number) => void;

/** An attempt at a target: its outcome is reported with it, a stream's twice (its first token and its end). */
export interface TargetAttempt extends Attempt {
  readonly target: Target;
}

/**
 * The health of all targets of this process, which outlives a change of the configuration. A target can be tried when both its
 * model and its provider can.
 */
export class HealthBook {
  /** The one used last stands last. */
  readonly #known = new Map<string, Entry>();
  readonly #strangers = new Map<string, Entry>();
  /** Counts events: the order in which names were used. */
  #events = 0;
  #isConfigured: (target: Target) => boolean = () => false;
  #lastId = 0;
  readonly #now: () => number;
  #keys: ReadonlyMap<string, string> = new Map();
  /** Targets (`provider/model`) and providers that an operator drained: they get no new calls, whatever their health. */
  drained: ReadonlySet<string> = new Set();
  /** Shares with other processes, where there are any. */
  onChange: HealthListener = () => {};

  constructor(now: () => number = steadyNow) {
    this.#now = now;
  }

  mayTry(target: Target): boolean {
    const now = this.#now();
    return namesOf(target).every((name) => mayTry(this.#of(name), now));
  }

  /** Whether its last attempt failed, or it is being tested: it gets less time where another target waits. */
  isSuspect(target: Target): boolean {
    return namesOf(target).some((name) => this.#of(name).failures > 0 || this.#of(name).openUntil !== undefined);
  }

  /** Milliseconds until it may be tried again, as far as is known; 0 when it may be now. */
  restMs(target: Target): number {
    if (this.mayTry(target)) return 0;
    return Math.max(...namesOf(target).map((name) => this.#of(name).openUntil ?? 0)) - this.#now();
  }

  /** Milliseconds that it takes to respond, by what is known; undefined when nothing is. */
  latencyMs(target: Target, stream: boolean): number | undefined {
    return this.#of(namesOf(target)[1])[stream ? 'stream' : 'whole']?.ms;
  }

  /** The share of its calls that it should get now, up to 1. */
  shareOf(target: Target, stream: boolean): number {
    return Math.min(...namesOf(target).map((name) => shareOf(this.#of(name), this.#now(), stream)));
  }

  isDrained = (target: Target): boolean => namesOf(target).some((name) => this.drained.has(name));

  /** Closes a target, its provider and their keys, as an operator says that they work; without a model all of the provider's. */
  reset(target: Target): void {
    const [provider, name] = namesOf(target);
    for (const each of this.names()) {
      const bare = each.replace(/#[^/]*/, '');
      if (bare !== provider && (target.model === '' ? !bare.startsWith(name) : bare !== name)) continue;
      const { whole, stream, lastError } = this.#of(each);
      this.#put(each, this.#of(each), { ...UNKNOWN, whole, stream, lastError });
    }
  }

  /** Why it cannot be tried now; undefined when it can. */
  causeOf(target: Target): OpenCause | undefined {
    const now = this.#now();
    const closed = namesOf(target)
      .map((name) => this.#of(name))
      .filter((health) => !mayTry(health, now));
    return closed.find(({ cause }) => cause !== 'failures')?.cause ?? closed[0]?.cause;
  }

  /** The best of some that cannot be tried: one that may work, then the one whose time is over first. */
  bestOf(targets: readonly Target[]): Target | undefined {
    const rank = (target: Target): readonly [number, number] => [
      RANK[this.causeOf(target) ?? 'failures'],
      Math.max(...namesOf(target).map((name) => this.#of(name).openUntil ?? 0)),
    ];
    return [...targets].sort((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1])[0];
  }

  /** A call goes there: the first one to a half-open target tests it. */
  begin(target: Target): TargetAttempt {
    this.#lastId += 1;
    const attempt = { target, id: this.#lastId, startedAt: this.#now() };
    for (const name of namesOf(target)) {
      const known = this.#of(name);
      if (known.openUntil !== undefined) this.#put(name, known, begin(known, attempt));
    }
    return attempt;
  }

  /** An attempt ended without saying anything about its target, as when its caller left. Harmless after a report. */
  leave(attempt: TargetAttempt): void {
    for (const name of namesOf(attempt.target)) {
      const known = this.#of(name);
      this.#put(name, known, leave(known, attempt));
    }
  }

  /** Notes what came of an attempt; of one that began now by default. */
  report(target: Target, verdict: Verdict, scope: Scope = 'model', attempt?: Attempt): void {
    const now = this.#now();
    const [provider, model] = namesOf(target);
    const [own, other] = scope === 'provider' ? [provider, model] : [model, provider];
    const known = this.#of(own);
    this.#put(own, known, judge(known, verdict, now, attempt));
    const knownOfOther = this.#of(other);
    this.#put(other, knownOfOther, judgeOther(knownOfOther, verdict, now, attempt));
  }

  /** What another worker or node found out about a name. */
  learn(name: string, openUntil: number | undefined): void {
    const now = this.#now();
    const known = this.#of(name);
    const closed = known.cause === 'shared' ? { ...known, openUntil: now } : known;
    this.#put(name, known, openUntil === undefined ? closed : openByOthers(known, openUntil, now), false);
  }

  /** Which targets a configuration names, from now on. */
  useTargets(isConfigured: (target: Target) => boolean): void {
    this.#isConfigured = isConfigured;
  }

  /** The keys of the providers, by instance, as a configuration has them from now on: one that was replaced is tried at once. */
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

  /** The names that were used last, the latest last. */
  names(max = MAX_TARGETS + MAX_STRANGERS): readonly string[] {
    return [...namesByUse(this.#strangers), ...namesByUse(this.#known)].slice(-max);
  }

  isOpen(name: string): boolean {
    return stateOf(this.#of(name), this.#now()) === 'open';
  }

  /** All targets, the latest first. A provider's own state is that of each of its models. */
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
    return (this.#known.get(name) ?? this.#strangers.get(name))?.health ?? UNKNOWN;
  }

  /**
   * Keeps what an event made of a name; where this process found that out, the others learn that it was opened or closed. The name
   * used last stands last; of too many the first one is forgotten.
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

  /** Puts a name where it has no place yet: among those that are known once it deserves one. */
  #putNew(name: string, health: Health): void {
    const hasPlace = this.#deserves(name, health);
    const places = hasPlace ? this.#known : this.#strangers;
    const stranger = this.#strangers.get(name);
    if (stranger && !hasPlace) {
      stranger.health = health;
      stranger.usedAt = this.#events;
      return;
    }
    if (stranger) this.#strangers.delete(name);
    places.set(name, { health, usedAt: this.#events });
    if (places.size > (hasPlace ? MAX_TARGETS : MAX_STRANGERS)) places.delete(this.#leastOf(places));
  }

  /** Providers, and targets that are configured or have answered. */
  #deserves(name: string, { whole, stream }: Health): boolean {
    return (
      whole !== undefined ||
      stream !== undefined ||
      !name.includes('/') ||
      this.#isConfigured(withoutKey(splitName(name)))
    );
  }

  /** The one used longest ago, which is not configured if there is such a one. */
  #leastOf(places: ReadonlyMap<string, Entry>): string {
    const names = namesByUse(places);
    const isExtra = (name: string): boolean => name.includes('/') && !this.#isConfigured(withoutKey(splitName(name)));
    return names.find(isExtra) ?? names[0] ?? '';
  }
}

/** What is known of a name, in its place: an entry that is removed and put again with each event would leave a dead table behind. */
interface Entry {
  health: Health;
  /** Number of the event that used it last. */
  usedAt: number;
}

/** The names of a map, the one used longest ago first. */
function namesByUse(places: ReadonlyMap<string, Entry>): readonly string[] {
  return [...places].sort(([, one], [, other]) => one.usedAt - other.usedAt).map(([name]) => name);
}

/** Of targets that are all open: what may have passed comes before what the vendor reported. */
const RANK: Readonly<Record<OpenCause, number>> = Object.freeze({
  failures: 0,
  shared: 1,
  rate_limit: 2,
  credential: 3,
});

/** The name of everything that a provider serves, and that of one model. */
function namesOf({ provider, model }: Target): readonly [provider: string, model: string] {
  return [provider, `${provider}/${model.slice(0, 200)}`];
}

/** A target by one of its provider's keys, whose health is known as that of a provider of its own. Names of providers hold no `#`. */
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

/** How often it is looked what others found out, at most, and only while there are calls. */
const EVERY_MS = 2_000;

/** Names that are looked at in one round: those that were used last. */
const MAX_NAMES = 32;

/** Version counter: while it is unchanged there is nothing to read. */
const VERSION = 'health.version';

const OPEN = 'open';

/** A lease that is taken to read whether there is room, and gone at once. */
const READER = 'reader';
const READ_MS = 1;
const MAX_OURS = 1_000;
const MANY = 1_000;

/** What workers and nodes of one store share. */
interface SharedHealth {
  /** Learns from the others now and then; to be called with each call, which does not wait for it. */
  refresh(): void;
  /** Whether any of them has opened a target or provider. */
  isOpen(name: string): Promise<boolean>;
}

/**
 * Shares which targets are open with the other workers and nodes of a store. A target that was opened has a lease for as long. No call
 * waits for the store: what it does not answer is not known.
 */
export function shareHealth(counters: Counters, health: HealthBook, now: () => number = steadyNow): SharedHealth {
  let readAt = 0;
  let isReading = false;
  let version = 0;
  /** Names that others have opened: their leases may end without a change. */
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
    // Callers make names up: what is forgotten is read from the store again.
    else if (ours.size < MAX_OURS) ours.add(name);
    openElsewhere.delete(name);
    publish(name, coolDownMs).catch(() => undefined);
  };

  const read = async (): Promise<void> => {
    const latest = await counters.next(VERSION, 0);
    const names = latest === version ? [...openElsewhere] : health.names(MAX_NAMES);
    version = latest;
    for (const name of names) {
      // What this process has found out itself, it knows best.
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

/** What the choice of targets remembers. It outlives a change of the configuration. */
export interface Routing {
  readonly health: HealthBook;
  readonly budget: RetryBudget;
  readonly sticky: StickyTargets;
  readonly waiting: WaitingAttempts;
  readonly hedges: Hedges;
  /** Absent where no other process can open the store. */
  readonly shared: SharedHealth | undefined;
}

export function createRouting(share?: (health: HealthBook) => SharedHealth): Routing {
  const health = new HealthBook();
  return {
    ...{ health, budget: new RetryBudget(), sticky: new StickyTargets(), waiting: new WaitingAttempts() },
    hedges: new Hedges(),
    shared: share?.(health),
  };
}

/** What a process knows, with the targets that its configuration names and that nobody has called since it started. */
export function describeRouting({ health, budget }: Routing, named: readonly Target[] = []): RoutingState {
  const targets = health.reports();
  const drained = [...health.drained].sort();
  const tried = new Set(targets.map(({ provider, model }) => `${provider}/${model}`));
  const ordered = drained.filter((name) => name.includes('/')).map(splitName);
  const known = new Map([...named, ...ordered].map((target) => [`${target.provider}/${target.model}`, target]));
  const untried = [...known.values()].filter(({ provider, model }) => !tried.has(`${provider}/${model}`));
  return { targets: [...targets, ...untried.map((target) => health.reportOf(target))], retries: budget.state, drained };
}
