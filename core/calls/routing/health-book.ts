import type { Target } from '../../contract/call.ts';
import type { OpenCause, TargetReport } from '../../contract/routing.ts';
import { steadyNow } from '../../contract/steady-now.ts';
import {
  type Attempt,
  begin,
  type Health,
  judge,
  leave,
  mayTry,
  openByOthers,
  reach,
  stateOf,
  tryNewKey,
  UNKNOWN,
  type Verdict,
} from './target-health.ts';

/** What a verdict is about: one model, or everything that the provider serves (its network, its key). */
export type Scope = 'model' | 'provider';

/** Targets that are remembered: those that are configured or have answered. */
const MAX_TARGETS = 1000;

/** Others that failed. Callers make names up: these few places are all that such names get. */
const MAX_STRANGERS = 100;

/** Told when a target was opened or closed; `coolDownMs` is how long it is left alone, 0 for one that is closed. */
export type HealthListener = (name: string, coolDownMs: number) => void;

/** An attempt that runs: what comes of it is reported here, a stream's twice (its first token and its end). */
export class RunningAttempt {
  readonly #health: HealthBook;
  readonly #target: Target;
  readonly #attempt: Attempt;

  constructor(health: HealthBook, target: Target, attempt: Attempt) {
    this.#health = health;
    this.#target = target;
    this.#attempt = attempt;
  }

  report(verdict: Verdict, scope?: Scope): void {
    this.#health.report(this.#target, verdict, scope, this.#attempt);
  }

  /** It ended without saying anything about its target, as when its caller left. Harmless after a report. */
  leave(): void {
    this.#health.leave(this.#target, this.#attempt);
  }
}

/**
 * The health of all targets of this process, which outlives a change of the configuration. A target can be tried when both its
 * model and its provider can.
 */
export class HealthBook {
  /** The one used last stands last. */
  readonly #known = new Map<string, Health>();
  readonly #strangers = new Map<string, Health>();
  #isConfigured: (target: Target) => boolean = () => false;
  #lastId = 0;
  readonly #now: () => number;
  #keys: ReadonlyMap<string, string> = new Map();
  /** Tells others, when there are any. */
  onChange: HealthListener = () => {};

  constructor(now: () => number = steadyNow) {
    this.#now = now;
  }

  mayTry(target: Target): boolean {
    const now = this.#now();
    return namesOf(target).every((name) => mayTry(this.#of(name), now));
  }

  /** Whether its last attempt failed, or it is being tested: it gets less time where another target waits. */
  isDoubtful(target: Target): boolean {
    return namesOf(target).some((name) => this.#of(name).failures > 0 || this.#of(name).openUntil !== undefined);
  }

  /** Milliseconds that it takes to respond, by what is known; undefined when nothing is. */
  latencyMs({ provider, model }: Target, stream: boolean): number | undefined {
    const { wholeMs, streamMs } = this.#of(nameOf(provider, model));
    return stream ? streamMs : wholeMs;
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

  /** A call goes there. */
  begin(target: Target): RunningAttempt {
    this.#lastId += 1;
    const attempt = { id: this.#lastId, startedAt: this.#now() };
    for (const name of namesOf(target)) this.#update(name, (health) => begin(health, attempt));
    return new RunningAttempt(this, target, attempt);
  }

  /** An attempt ended without saying anything about its target. */
  leave(target: Target, attempt: Attempt): void {
    for (const name of namesOf(target)) this.#update(name, (health) => leave(health, attempt));
  }

  /** Notes what came of an attempt; of one that began now, unless it is given. */
  report({ provider, model }: Target, verdict: Verdict, scope: Scope = 'model', attempt?: Attempt): void {
    const now = this.#now();
    const [whole, part] = [nameOf(provider), nameOf(provider, model)];
    const own = scope === 'provider' ? whole : part;
    const other = own === whole ? part : whole;
    this.#update(own, (health) => judge(health, verdict, now, attempt));
    this.#update(other, (health) => {
      const left = attempt ? leave(health, attempt) : health;
      // What opens the provider is shown with the model that met it, which has a place for that.
      if (verdict.kind === 'failure') return { ...left };
      return reach(verdict.kind === 'success' ? judge(left, verdict, now, attempt) : left, now);
    });
  }

  /** What another worker or node found out about a name. */
  learn(name: string, openUntil: number | undefined): void {
    const now = this.#now();
    this.#set(name, (health) => {
      if (openUntil !== undefined) return openByOthers(health, openUntil, now);
      return health.cause === 'shared' ? { ...health, openUntil: now } : health;
    });
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
      const health = this.#of(name);
      if (!isReplaced(name.split('/', 1)[0] ?? name) || tryNewKey(health) === health) continue;
      this.#set(name, tryNewKey);
      this.onChange(name, 0);
    }
  }

  /** The names that were used last, the latest last. */
  names(max = MAX_TARGETS + MAX_STRANGERS): readonly string[] {
    return [...this.#strangers.keys(), ...this.#known.keys()].slice(-max);
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
    const [whole, part] = namesOf(target).map((name) => this.#of(name)) as [Health, Health];
    const worst = (part.openUntil ?? 0) >= (whole.openUntil ?? 0) ? part : whole;
    const lastError = (part.lastError?.at ?? 0) >= (whole.lastError?.at ?? 0) ? part.lastError : whole.lastError;
    const { wholeMs, streamMs, attempts, errorRate } = part;
    return {
      ...target,
      state: stateOf(worst, now),
      ...(worst.cause && { cause: worst.cause }),
      ...(worst.openUntil !== undefined && { openUntil: worst.openUntil }),
      errorRate: Math.max(errorRate, whole.failures > 0 ? whole.errorRate : 0),
      attempts,
      ...(wholeMs !== undefined && { wholeMs }),
      ...(streamMs !== undefined && { firstTokenMs: streamMs }),
      ...(lastError && { lastError }),
    };
  }

  #of(name: string): Health {
    return this.#known.get(name) ?? this.#strangers.get(name) ?? UNKNOWN;
  }

  /** Notes what an event makes of a name, and tells others when that opened or closed it. */
  #update(name: string, change: (health: Health) => Health): void {
    const before = this.#of(name);
    const after = this.#set(name, change);
    if (after.openUntil === before.openUntil) return;
    this.onChange(name, after.openUntil === undefined ? 0 : after.openUntil - this.#now());
  }

  /** The one used last stands last; of too many the first one is forgotten. */
  #set(name: string, change: (health: Health) => Health): Health {
    const before = this.#of(name);
    const after = change(before);
    if (after === before) return after;
    const hasPlace = this.#known.has(name) || this.#deserves(name, after);
    this.#known.delete(name);
    this.#strangers.delete(name);
    const places = hasPlace ? this.#known : this.#strangers;
    places.set(name, after);
    if (places.size > (hasPlace ? MAX_TARGETS : MAX_STRANGERS)) places.delete(this.#leastOf(places));
    return after;
  }

  /** Providers, and targets that are configured or have answered. */
  #deserves(name: string, { wholeMs, streamMs }: Health): boolean {
    const hasAnswered = wholeMs !== undefined || streamMs !== undefined;
    return hasAnswered || !name.includes('/') || this.#isConfigured(splitName(name));
  }

  /** The one used longest ago, which is not configured if there is such a one. */
  #leastOf(places: ReadonlyMap<string, Health>): string {
    const [oldest = ''] = places.keys();
    for (const name of places.keys()) if (name.includes('/') && !this.#isConfigured(splitName(name))) return name;
    return oldest;
  }
}

/** Of targets that are all open: what may have passed comes before what was told. */
const RANK: Readonly<Record<OpenCause, number>> = Object.freeze({
  failures: 0,
  shared: 1,
  rate_limit: 2,
  credential: 3,
});

function namesOf({ provider, model }: Target): readonly [string, string] {
  return [nameOf(provider), nameOf(provider, model)];
}

function nameOf(provider: string, model?: string): string {
  return model === undefined ? provider : `${provider}/${model.slice(0, 200)}`;
}

function splitName(name: string): Target {
  const slash = name.indexOf('/');
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}
