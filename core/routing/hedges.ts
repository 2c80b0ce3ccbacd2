import type { HedgeRule } from '../../config/model-routes.ts';
import type { Target } from '../contract/call.ts';

/** Of how many of the latest attempts it is known what they took, and of how many it must be before that says something. */
const KEPT = 100;
const LEAST = 20;

/** What nineteen of twenty do not exceed. */
const QUANTILE = 0.95;

/** What an alias may save up: as many calls may be asked twice in a row when its target becomes slow. */
const MOST_SAVED = 10;

/** A share of an alias's calls may be asked twice; and what its targets take, to know which calls take long. It outlives a change of the configuration. */
export class Hedges {
  /** How many calls may be asked twice now, by alias. */
  readonly #saved = new Map<string, number>();
  /** Milliseconds of the latest attempts, the oldest first. */
  readonly #times = new Map<string, number[]>();

  /** A call of the alias begins. The first one of all may be asked twice already. */
  enter(alias: string, { maxExtra }: HedgeRule): void {
    const saved = this.#saved.get(alias) ?? (maxExtra > 0 ? 1 : 0);
    this.#saved.set(alias, Math.min(saved + maxExtra, MOST_SAVED));
  }

  /** Takes the place of one call that is asked twice; false when as many were as may be. */
  take(alias: string): boolean {
    const saved = this.#saved.get(alias) ?? 0;
    // Twenty times 0.05 is a little less than one.
    if (saved < 1 - 1e-9) return false;
    this.#saved.set(alias, saved - 1);
    return true;
  }

  /** Notes what an attempt took; of one that was left, as long as it lasted: else only the quick ones would count. */
  note(target: Target, stream: boolean, ms: number): void {
    const name = nameOf(target, stream);
    const times = this.#times.get(name) ?? [];
    this.#times.set(name, times);
    times.push(ms);
    if (times.length > KEPT) times.shift();
  }

  /** How long a target may take before another one is asked beside it; undefined while nobody knows. */
  afterMs({ after }: HedgeRule, target: Target, stream: boolean): number | undefined {
    if (after !== 'p95') return after;
    const times = this.#times.get(nameOf(target, stream)) ?? [];
    if (times.length < LEAST) return undefined;
    return times.toSorted((a, b) => a - b)[Math.floor(times.length * QUANTILE)];
  }
}

function nameOf({ provider, model }: Target, stream: boolean): string {
  return `${stream} ${provider}/${model}`;
}
