import { LRUCache } from 'lru-cache';
import type { Counters, Window, WindowState } from '../../../../contract/index.ts';
import { maxEntries, steadyNow } from '../../kit/index.ts';

/** Divisor of the share that this process leases: at most 1/20 of the rest of a window, or of the slots. */
const PART = 20;
/** Minimum number of calls that a leased part must cover. Below it, each call goes to the store. */
const LEAST_CALLS = 10;
/** Lifetime of an unused part. A part is leased only if calls follow each other within this time. */
const KEEP_MS = 1000;
/** Number of renewals of a place within its lifetime. */
const RENEWALS = 3;
/** Maximum duration of a call. A plugin that never reads its response to the end must not keep a place forever. */
const LONGEST_CALL_MS = 3_600_000;
const MAX_REFUSED = 10_000;

/** Limit of concurrent calls. */
export interface Slot {
  readonly key: string;
  readonly limit: number;
}

/** Place in a slot; the store knows it by `key` and `id`. */
export interface Lease extends Slot {
  readonly id: string;
  readonly owner: Leases;
  /** Start of its call; undefined if idle. */
  since: number | undefined;
  renewedAt: number;
}

type Taken = Awaited<ReturnType<Counters['take']>>;

/** Result of a request for places: all places, or the first full slot. */
export type Entered<S extends Slot> = { readonly places: readonly Lease[]; readonly full?: S };

/** Known state of a window, and the part that this process has leased. */
interface Slice {
  readonly limit: number;
  readonly windowMs: number;
  readonly endsAt: number;
  /** Rest of the window at the last store request. */
  remaining: number;
  /** Time of the last counted call. */
  usedAt: number;
  /** Unused rest of the part; undefined without a part. */
  left: number | undefined;
}

/** Window that rejected a call. */
interface Refused {
  readonly limit: number;
  readonly endsAt: number;
  /** End of the time in which it also rejects other calls. */
  readonly until: number;
}

/** Places of a slot that this process has. */
interface OwnPlaces {
  readonly all: Set<Lease>;
  /** Places without a call. */
  readonly idle: Lease[];
}

/**
 * Windows and places of a store, with the parts that this process has leased. Calls count in a part without a store
 * request. The store counts a part when it is leased, so all processes together never exceed the limit.
 */
export class Leases {
  readonly counters: Counters;
  readonly #leaseMs: number;
  readonly #slices = new Map<string, Slice>();
  /** Windows that rejected a call, by key. */
  readonly #refused = new LRUCache<string, Refused>(maxEntries(MAX_REFUSED));
  /** Windows with a pending request for a part. */
  readonly #requesting = new Set<string>();
  /** By the key of their slot. */
  readonly #places = new Map<string, OwnPlaces>();
  #returning: NodeJS.Timeout | undefined;

  constructor(counters: Counters, leaseMs: number) {
    this.counters = counters;
    this.#leaseMs = leaseMs;
  }

  /** Returns the state of a window that rejected a call and, as far as is known here, would reject the next one. */
  refused({ key, limit }: Pick<Window, 'key' | 'limit'>, now: number): WindowState | undefined {
    const known = this.#refused.get(key);
    return known?.limit === limit && known.until > now ? { remaining: 0, resetMs: known.endsAt - now } : undefined;
  }

  /** Checks if calls of this process use all places of a slot. */
  isFull({ key, limit }: Slot): boolean {
    const known = this.#places.get(key);
    return known !== undefined && known.all.size - known.idle.length >= limit;
  }

  /** Takes from all windows or from none, as the store does. Synchronous if this process has enough of each. */
  take(windows: readonly Window[], now: number): Taken | Promise<Taken> {
    const states: WindowState[] = [];
    for (let at = 0; at < windows.length; at += 1) {
      const window = windows[at];
      const slice = window && this.#takeFromSlice(window, now);
      if (!slice) return this.#takeSome(windows, at, states, now);
      states.push({ remaining: slice.remaining + slice.left, resetMs: slice.endsAt - now });
    }
    return { refused: undefined, states };
  }

  /** Takes from the leased part of a window; undefined if it is too small. */
  #takeFromSlice({ key, limit, amount }: Window, now: number): (Slice & { left: number }) | undefined {
    const slice = this.#slices.get(key);
    if (slice?.left === undefined || slice.left < amount || slice.limit !== limit || slice.endsAt <= now)
      return undefined;
    slice.left -= amount;
    slice.usedAt = now;
    return slice as Slice & { left: number };
  }

  /** Continues after the part of window `from` was too small. The windows before it are already taken. */
  #takeSome(windows: readonly Window[], from: number, states: WindowState[], now: number): Promise<Taken> {
    const own = new Map<Window, Slice>();
    for (const [at, window] of windows.entries()) {
      const slice = at < from ? this.#slices.get(window.key) : this.#takeFromSlice(window, now);
      if (!slice) continue;
      own.set(window, slice);
      if (at > from) states.push({ remaining: slice.remaining + (slice.left ?? 0), resetMs: slice.endsAt - now });
    }
    return this.#request(windows, own, states, now);
  }

  /** Corrects a window within its leased part; returns false if the part is missing or too small. */
  adjust(key: string, delta: number, now: number): boolean {
    const slice = this.#slices.get(key);
    if (slice?.left === undefined || slice.endsAt <= now || slice.left < delta) return false;
    slice.left -= delta;
    return true;
  }

  /** Takes from the store for windows without a sufficient part. `own` are the windows already taken. */
  async #request(
    windows: readonly Window[],
    own: ReadonlyMap<Window, Slice>,
    states: readonly WindowState[],
    now: number,
  ): Promise<Taken> {
    const rest = windows.filter((window) => !own.has(window));
    const undo = (): void => {
      for (const [{ amount }, slice] of own) slice.left = (slice.left ?? 0) + amount;
      this.#returnLater();
    };
    try {
      const taken = await this.#takeParts(rest, now);
      const fromHere = states.values();
      const fromStore = taken.states.values();
      const all = windows.map(
        (window): WindowState => (own.has(window) ? fromHere : fromStore).next().value ?? NOTHING,
      );
      const refusing = taken.refused === undefined ? undefined : rest[taken.refused];
      if (!refusing) return { refused: undefined, states: all };
      undo();
      return { refused: windows.indexOf(refusing), states: all };
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** Takes from the store. For windows with another recent call, also leases a part for future calls. */
  async #takeParts(windows: readonly Window[], now: number): Promise<Taken> {
    const parts = windows.map((window) => this.#partOf(window, now));
    if (parts.every((part) => part === undefined)) return this.#takeOnly(windows, now);
    for (const { key } of windows) this.#requesting.add(key);
    try {
      const wanted = windows.map((window, at) => ({ ...window, amount: parts[at] ?? window.amount }));
      const taken = await this.counters.take(wanted, now);
      if (taken.refused !== undefined) return await this.#takeOnly(windows, now);
      for (const [at, window] of windows.entries())
        this.#cacheRest(window, taken.states[at], now, (parts[at] ?? window.amount) - window.amount);
      return taken;
    } finally {
      for (const { key } of windows) this.#requesting.delete(key);
    }
  }

  async #takeOnly(windows: readonly Window[], now: number): Promise<Taken> {
    const taken = await this.counters.take(windows, now);
    for (const [at, window] of windows.entries()) this.#cacheRest(window, taken.states[at], now, 0);
    const refusing = windows[taken.refused ?? -1];
    const { resetMs = 0 } = taken.states[taken.refused ?? -1] ?? {};
    // Only for an amount of 1: a rejected larger amount says nothing about the next call.
    if (refusing?.amount === 1) {
      const { key, limit } = refusing;
      const endsAt = now + resetMs;
      // Other processes may return their leased parts of a large window, so its rejection is cached only briefly.
      this.#refused.set(key, { limit, endsAt, until: limit < PART * LEAST_CALLS ? endsAt : now + KEEP_MS });
    }
    return taken;
  }

  /** Returns the amount to lease from a window; undefined to take only what the call needs. */
  #partOf({ key, limit, amount }: Window, now: number): number | undefined {
    const slice = this.#slices.get(key);
    if (!slice || slice.limit !== limit || now - slice.usedAt > KEEP_MS || this.#requesting.has(key)) return undefined;
    const part = Math.floor(slice.remaining / PART);
    return part > 0 && part >= LEAST_CALLS * amount ? part : undefined;
  }

  /** Caches the rest of a window, and adds `extra`, the part leased for future calls. */
  #cacheRest(
    { key, limit, windowMs, amount }: Window,
    state: WindowState | undefined,
    now: number,
    extra: number,
  ): void {
    const known = this.#slices.get(key);
    // The rest is too small to lease a part.
    if (!state || (!known && state.remaining < PART * LEAST_CALLS * amount)) return;
    const { remaining, resetMs } = state;
    const endsAt = now + resetMs;
    // Tolerates differences of clocks and rounding.
    const isSame = known?.limit === limit && Math.abs(known.endsAt - endsAt) < KEEP_MS;
    const slice: Slice = isSame ? known : { limit, windowMs, endsAt, remaining, usedAt: now, left: undefined };
    Object.assign(slice, { remaining, usedAt: now });
    this.#slices.set(key, slice);
    this.#returnLater();
    if (extra === 0) return;
    // Other processes may have taken much meanwhile, so the part may exceed the share of one process.
    if ((extra + amount) * PART <= remaining + extra + amount) slice.left = (slice.left ?? 0) + extra;
    else void this.#credit(key, windowMs, extra, now);
  }

  /** Takes a place in each slot, or in none. */
  enter<S extends Slot>(slots: readonly S[], id: string, now: number): Entered<S> | Promise<Entered<S>> {
    const places: Lease[] = [];
    for (const { key, limit } of slots) {
      const idle = this.#places.get(key)?.idle;
      const place = idle?.at(-1)?.limit === limit ? idle.pop() : undefined;
      if (!place) return this.#reenter(slots, places, id, now);
      place.since = now;
      places.push(place);
    }
    return { places };
  }

  /** Requests places from the store for the slots without an idle place, which are those after `places`. */
  async #reenter<S extends Slot>(slots: readonly S[], places: Lease[], id: string, now: number): Promise<Entered<S>> {
    const rest = slots.slice(places.length);
    const requests: Promise<boolean>[] = [];
    for (const { key, limit } of rest) requests.push(this.counters.lease(key, id, limit, this.#leaseMs, now));
    const leases = await Promise.allSettled(requests);
    let full: S | undefined;
    let failed: PromiseRejectedResult | undefined;
    for (const [at, slot] of rest.entries()) {
      const lease = leases[at];
      if (lease?.status === 'rejected') failed ??= lease;
      else if (!lease?.value) {
        full ??= slot;
        continue;
      }
      // The store may have granted a lease whose response was lost, so it is released with the others.
      const place: Lease = { key: slot.key, limit: slot.limit, id, owner: this, since: now, renewedAt: now };
      const known = this.#places.get(slot.key);
      if (known) known.all.add(place);
      else this.#places.set(slot.key, { all: new Set([place]), idle: [] });
      places.push(place);
    }
    if (!failed && !full) return { places };
    await Promise.allSettled(places.map((place) => this.release(place)));
    if (failed) throw failed.reason;
    return { places: [], ...(full && { full }) };
  }

  /** Keeps a place for a call in the near future; returns false if the place must be released. */
  keep(place: Lease): boolean {
    const known = this.#places.get(place.key);
    if (!known?.all.has(place)) return false;
    const { all, idle } = known;
    const most = Math.floor((place.limit - all.size + idle.length) / PART);
    if (idle.length >= most) return false;
    place.since = undefined;
    idle.push(place);
    this.#returnLater();
    return true;
  }

  release(place: Lease): Promise<void> {
    const known = this.#places.get(place.key);
    known?.all.delete(place);
    if (known?.all.size === 0) this.#places.delete(place.key);
    return this.counters.release(place.key, place.id);
  }

  #returnLater(): void {
    if (this.#returning) return;
    this.#returning = setTimeout(() => void this.giveBack(), KEEP_MS);
    this.#returning.unref();
  }

  /** Returns all unused parts and places to the store. */
  async giveBack(): Promise<void> {
    clearTimeout(this.#returning);
    this.#returning = undefined;
    const now = steadyNow();
    const work: Promise<void>[] = [];
    for (const [key, slice] of this.#slices) {
      const { left = 0, windowMs, endsAt, usedAt } = slice;
      slice.left = undefined;
      slice.remaining += left;
      if (left > 0 && endsAt > now) work.push(this.#credit(key, windowMs, left, now));
      if (endsAt <= now || now - usedAt > KEEP_MS) this.#slices.delete(key);
    }
    // A failed release is harmless: the place expires.
    for (const { idle } of this.#places.values())
      for (const place of idle.splice(0)) work.push(this.release(place).catch(() => undefined));
    if (this.#slices.size > 0) this.#returnLater();
    await Promise.all(work);
  }

  /** If the store fails, the amount counts until the window ends. */
  #credit(key: string, windowMs: number, amount: number, now: number): Promise<void> {
    return this.counters.adjust(key, windowMs, -amount, now).catch(() => undefined);
  }

  /**
   * Renews the places of this process periodically, so places of a crashed process expire soon. Returns a function that
   * stops it.
   */
  start(): () => void {
    const everyMs = this.#leaseMs / RENEWALS;
    const timer = setInterval(() => this.#renew(everyMs), everyMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  #renew(everyMs: number): void {
    const now = steadyNow();
    for (const { all } of this.#places.values())
      for (const place of all) {
        const { key, id, limit, since = now, renewedAt } = place;
        if (now - since > LONGEST_CALL_MS) all.delete(place);
        else if (now - renewedAt >= everyMs) {
          place.renewedAt = now;
          // A failed renewal is retried at the next interval; its call continues.
          this.counters.lease(key, id, limit, this.#leaseMs, now).catch(() => undefined);
        }
      }
  }
}

const NOTHING: WindowState = Object.freeze({ remaining: 0, resetMs: 0 });
