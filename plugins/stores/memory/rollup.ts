import { type Dimensions, hourOf, type Sums } from '../kit/call-rows.ts';

/** How many groups of hours are kept apart; beyond that the hours of the oldest days become one. */
const MAX_GROUPS = 100_000;
/** How many more there may be before the next look, when a look could not make them fewer. */
const LOOK_AGAIN = 1000;
const DAY_MS = 86_400_000;

export interface Group {
  readonly dimensions: Dimensions;
  sums: Sums;
}

/** Sums of calls by hour and dimensions. They outlive the records, and come to what was spent. */
export class Rollup {
  readonly #hours = new Map<number, Map<string, Group>>();
  readonly #maxGroups: number;
  #groups = 0;
  #lookAt: number;
  /** The days before this are joined: all of a day is in its first hour. */
  #daysBefore = 0;

  constructor(maxGroups = MAX_GROUPS) {
    this.#maxGroups = maxGroups;
    this.#lookAt = maxGroups;
  }

  get daysBefore(): number {
    return this.#daysBefore;
  }

  get size(): number {
    return this.#groups;
  }

  /** Adds the sums of one call, or takes them away when they are negative. */
  add(at: number, dimensions: Dimensions, sums: Sums): void {
    const hour = at < this.#daysBefore ? dayOf(at) : hourOf(at);
    const groups = this.#hours.get(hour) ?? new Map<string, Group>();
    this.#hours.set(hour, groups);
    // No text of a record holds a NUL.
    const key = dimensions.join('\0');
    const group = groups.get(key);
    if (group) {
      group.sums = group.sums.map((sum, index) => sum + (sums[index] ?? 0));
      if (group.sums[0] === 0 && groups.delete(key)) this.#groups -= 1;
      return;
    }
    groups.set(key, { dimensions, sums });
    this.#groups += 1;
    if (this.#groups > this.#lookAt) this.#joinDays(at);
  }

  /** All groups, by hour. */
  *[Symbol.iterator](): Generator<readonly [hour: number, group: Group]> {
    for (const [hour, groups] of this.#hours) for (const group of groups.values()) yield [hour, group];
  }

  /** Joins the hours of the oldest days until there are few enough groups, or today is reached. */
  #joinDays(now: number): void {
    while (this.#groups > this.#maxGroups) {
      const open = [...this.#hours.keys()].filter((hour) => hour >= this.#daysBefore);
      const day = dayOf(open.reduce((oldest, hour) => Math.min(oldest, hour), now));
      if (day >= dayOf(now)) break;
      this.#daysBefore = day + DAY_MS;
      for (const hour of open) if (dayOf(hour) === day && hour !== day) this.#moveToDay(hour);
    }
    this.#lookAt = Math.max(this.#maxGroups, this.#groups + LOOK_AGAIN);
  }

  #moveToDay(hour: number): void {
    const groups = this.#hours.get(hour);
    this.#hours.delete(hour);
    this.#groups -= groups?.size ?? 0;
    for (const { dimensions, sums } of groups?.values() ?? []) this.add(hour, dimensions, sums);
  }
}

function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}
