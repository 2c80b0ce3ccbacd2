import type { Target } from '../../contract/call.ts';
import type { OpenCause, TargetReport } from '../../contract/routing.ts';
import { steadyNow } from '../../contract/steady-now.ts';
import {
  begin,
  forget,
  type Health,
  judge,
  mayTry,
  openByOthers,
  stateOf,
  tryNewKey,
  UNKNOWN,
  type Verdict,
} from './target-health.ts';

/** What a verdict is about: one model, or everything that the provider serves (its network, its key). */
export type Scope = 'model' | 'provider';

/** Targets that are remembered: callers make names up, memory must not grow with them. */
const MAX_TARGETS = 1000;

/** Told when a target was opened or closed; `coolDownMs` is how long it is left alone, 0 for one that is closed. */
export type HealthListener = (name: string, coolDownMs: number) => void;

/**
 * The health of all targets of this process, which outlives a change of the configuration. A target can be tried when both its
 * model and its provider can.
 */
export class HealthBook {
  readonly #known = new Map<string, Health>();
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
  begin(target: Target): void {
    const now = this.#now();
    for (const name of namesOf(target)) if (this.#known.has(name)) this.#known.set(name, begin(this.#of(name), now));
  }

  /** The call ended without saying anything about the target. */
  forget(target: Target): void {
    for (const name of namesOf(target)) if (this.#known.has(name)) this.#known.set(name, forget(this.#of(name)));
  }

  /** Notes what came of an attempt. */
  report({ provider, model }: Target, verdict: Verdict, scope: Scope = 'model'): void {
    const [whole, part] = [nameOf(provider), nameOf(provider, model)];
    if (verdict.kind !== 'failure') {
      this.#judge(whole, verdict);
      this.#judge(part, verdict);
      return;
    }
    // Shown with the model that met it; only the provider is opened by it.
    this.#judge(scope === 'provider' ? whole : part, verdict);
    const other = scope === 'provider' ? part : whole;
    this.#set(other, forget(this.#of(other)));
  }

  /** What another worker or node found out about a name. */
  learn(name: string, openUntil: number | undefined): void {
    const health = this.#of(name);
    const now = this.#now();
    if (openUntil !== undefined) this.#set(name, openByOthers(health, openUntil, now));
    else if (health.cause === 'shared') this.#set(name, { ...health, openUntil: now });
  }

  /** The keys of the providers, by instance, as a configuration has them from now on: one that was replaced is tried at once. */
  useKeys(keys: ReadonlyMap<string, string>): void {
    const before = this.#keys;
    this.#keys = keys;
    const isReplaced = (provider: string): boolean =>
      before.has(provider) && before.get(provider) !== keys.get(provider);
    for (const [name, health] of [...this.#known]) {
      const after = isReplaced(name.split('/', 1)[0] ?? name) ? tryNewKey(health) : health;
      if (after === health) continue;
      this.#set(name, after);
      this.onChange(name, 0);
    }
  }

  /** Names that were used last, for those who share. */
  names(max: number): readonly string[] {
    return [...this.#known.keys()].slice(-max);
  }

  isOpen(name: string): boolean {
    return stateOf(this.#of(name), this.#now()) === 'open';
  }

  /** All targets, the latest first. A provider's own state is that of each of its models. */
  reports(): readonly TargetReport[] {
    return [...this.#known.keys()]
      .reverse()
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
    return this.#known.get(name) ?? UNKNOWN;
  }

  #judge(name: string, verdict: Verdict): void {
    const now = this.#now();
    const before = this.#of(name);
    const after = judge(before, verdict, now);
    this.#set(name, after);
    const wasOpen = before.openUntil !== undefined;
    if (after.openUntil !== undefined && after.openUntil !== before.openUntil)
      this.onChange(name, after.openUntil - now);
    else if (wasOpen && after.openUntil === undefined) this.onChange(name, 0);
  }

  /** The one used last stands last; the first ones are forgotten. */
  #set(name: string, health: Health): void {
    this.#known.delete(name);
    this.#known.set(name, health);
    if (this.#known.size <= MAX_TARGETS) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
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
