import { LRUCache } from 'lru-cache';
import type { Counters, Window, WindowState } from '../../../contract/index.ts';
import { steadyNow } from '../kit/index.ts';

/** This process takes at most one in so many of what is left of a window, or of the places. */
const PART = 20;
/** A part of a window that fewer calls than these would use up is not taken: each call asks the store. */
const LEAST_CALLS = 10;
/** How long a part is kept that no call uses, and how soon one call must follow another for a part to be taken. */
const KEEP_MS = 1000;
/** How many times a place is renewed within its life. */
const RENEWALS = 3;
/** No call takes longer; a plugin that never reads its response to the end does not keep a place for ever. */
const LONGEST_CALL_MS = 3_600_000;
const MAX_REFUSED = 10_000;

/** A number of calls at once. */
export interface Slot {
  readonly key: string;
  readonly limit: number;
}

/** One of the places of a slot, which the store knows by `key` and `id`. */
export interface Place extends Slot {
  readonly id: string;
  /** When the call began that has it; undefined for one that no call has. */
  since: number | undefined;
  renewedAt: number;
}

type Taken = Awaited<ReturnType<Counters['take']>>;

/** What came of asking for places: all of them, or the first slot that is full. */
export type Entered<S extends Slot> = { readonly places: readonly Place[]; readonly full?: S };

/** What is known of a window, and the part of it that this process has. */
interface Slice {
  readonly limit: number;
  readonly windowMs: number;
  readonly endsAt: number;
  /** What the store had left when it was asked. */
  remaining: number;
  /** When a call last counted in it. */
  usedAt: number;
  /** What no call has used yet; undefined where this process has no part. */
  left: number | undefined;
}

/** A window that refused a call. */
interface Refused {
  readonly limit: number;
  readonly endsAt: number;
  /** How long it is taken to refuse others too. */
  readonly until: number;
}

/** The places of a slot that this process has. */
interface OwnPlaces {
  readonly all: Set<Place>;
  /** Those that no call has. */
  readonly idle: Place[];
}

/**
 * The windows and places of a store, and the parts of them that this process has taken: calls are counted in a part without asking the
 * store. A part is counted in the store when it is taken, so that all processes together never let more through than the limit.
 */
export class Leases {
  readonly counters: Counters;
  readonly #leaseMs: number;
  readonly #slices = new Map<string, Slice>();
  /** Windows that refused a call, by key. */
  readonly #refused = new LRUCache<string, Refused>({ max: MAX_REFUSED });
  /** The windows that a part is being asked of. */
  readonly #requesting = new Set<string>();
  /** By the key of their slot. */
  readonly #places = new Map<string, OwnPlaces>();
  #returning: NodeJS.Timeout | undefined;

  constructor(counters: Counters, leaseMs: number) {
    this.counters = counters;
    this.#leaseMs = leaseMs;
  }

  /** The state of a window that refused a call and would refuse the next one too, as far as is known here. */
  refused({ key, limit }: Pick<Window, 'key' | 'limit'>, now: number): WindowState | undefined {
    const known = this.#refused.get(key);
    return known?.limit === limit && known.until > now ? { remaining: 0, resetMs: known.endsAt - now } : undefined;
  }

  /** Whether calls of this process have all places of a slot. */
  isFull({ key, limit }: Slot): boolean {
    const known = this.#places.get(key);
    return known !== undefined && known.all.size - known.idle.length >= limit;
  }

  /** Takes from all windows or from none, as the store does; at once where this process has enough of each. */
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

  /** Takes from the part of a window that this process has; undefined where it has not enough. */
  #takeFromSlice({ key, limit, amount }: Window, now: number): (Slice & { left: number }) | undefined {
    const slice = this.#slices.get(key);
    if (slice?.left === undefined || slice.left < amount || slice.limit !== limit || slice.endsAt <= now)
      return undefined;
    slice.left -= amount;
    slice.usedAt = now;
    return slice as Slice & { left: number };
  }

  /** Goes on taking where this process has not enough of the window `from`; it has taken from those before. */
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

  /** Corrects a window within the part that this process has; false where it has none, or not enough. */
  adjust(key: string, delta: number, now: number): boolean {
    const slice = this.#slices.get(key);
    if (slice?.left === undefined || slice.endsAt <= now || slice.left < delta) return false;
    slice.left -= delta;
    return true;
  }

  /** Asks the store for the windows of which this process has not enough; `own` are those that it has taken from. */
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

  /** Takes from the store, and a part for calls to come of windows that another call asked for just before. */
  async #takeParts(windows: readonly Window[], now: number): Promise<Taken> {
    const parts = windows.map((window) => this.#partOf(window, now));
    if (parts.every((part) => part === undefined)) return this.#takeOnly(windows, now);
    for (const { key } of windows) this.#requesting.add(key);
    try {
      const wanted = windows.map((window, at) => ({ ...window, amount: parts[at] ?? window.amount }));
      const taken = await this.counters.take(wanted, now);
      if (taken.refused !== undefined) return await this.#takeOnly(windows, now);
      for (const [at, window] of windows.entries())
        this.#note(window, taken.states[at], now, (parts[at] ?? window.amount) - window.amount);
      return taken;
    } finally {
      for (const { key } of windows) this.#requesting.delete(key);
    }
  }

  async #takeOnly(windows: readonly Window[], now: number): Promise<Taken> {
    const taken = await this.counters.take(windows, now);
    for (const [at, window] of windows.entries()) this.#note(window, taken.states[at], now, 0);
    const refusing = windows[taken.refused ?? -1];
    const { resetMs = 0 } = taken.states[taken.refused ?? -1] ?? {};
    // Of one request; more than a window has left says nothing about the next call.
    if (refusing?.amount === 1) {
      const { key, limit } = refusing;
      const endsAt = now + resetMs;
      // Of a large window processes have parts, which they may give back.
      this.#refused.set(key, { limit, endsAt, until: limit < PART * LEAST_CALLS ? endsAt : now + KEEP_MS });
    }
    return taken;
  }

  /** How much of a window to take at once; undefined for no more than the call needs. */
  #partOf({ key, limit, amount }: Window, now: number): number | undefined {
    const slice = this.#slices.get(key);
    if (!slice || slice.limit !== limit || now - slice.usedAt > KEEP_MS || this.#requesting.has(key)) return undefined;
    const part = Math.floor(slice.remaining / PART);
    return part > 0 && part >= LEAST_CALLS * amount ? part : undefined;
  }

  /** Remembers what the store has left, and `extra` that it gave for calls to come. */
  #note({ key, limit, windowMs, amount }: Window, state: WindowState | undefined, now: number, extra: number): void {
    const known = this.#slices.get(key);
    // No part is ever taken of so little.
    if (!state || (!known && state.remaining < PART * LEAST_CALLS * amount)) return;
    const { remaining, resetMs } = state;
    const endsAt = now + resetMs;
    // The same window, as far as clocks and their rounding tell.
    const isSame = known?.limit === limit && Math.abs(known.endsAt - endsAt) < KEEP_MS;
    const slice: Slice = isSame ? known : { limit, windowMs, endsAt, remaining, usedAt: now, left: undefined };
    Object.assign(slice, { remaining, usedAt: now });
    this.#slices.set(key, slice);
    this.#returnLater();
    if (extra === 0) return;
    // Others may have taken much since the store was asked: then this is more than a process may have.
    if ((extra + amount) * PART <= remaining + extra + amount) slice.left = (slice.left ?? 0) + extra;
    else void this.#giveBack(key, windowMs, extra, now);
  }

  /** A place in each slot, or in none. */
  enter<S extends Slot>(slots: readonly S[], id: string, now: number): Entered<S> | Promise<Entered<S>> {
    const places: Place[] = [];
    for (const { key, limit } of slots) {
      const idle = this.#places.get(key)?.idle;
      const place = idle?.at(-1)?.limit === limit ? idle.pop() : undefined;
      if (!place) return this.#enterAnew(slots, places, id, now);
      place.since = now;
      places.push(place);
    }
    return { places };
  }

  /** Asks the store for places in the slots in which this process has none to spare, which are those after `places`. */
  async #enterAnew<S extends Slot>(slots: readonly S[], places: Place[], id: string, now: number): Promise<Entered<S>> {
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
      // A lease whose response was lost may have been given: it is given back with the others.
      const place: Place = { key: slot.key, limit: slot.limit, id, since: now, renewedAt: now };
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

  /** Keeps a place for a call that comes soon; false where it has to be released. */
  keep(place: Place): boolean {
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

  release(place: Place): Promise<void> {
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

  /** Gives back all that no call has used. */
  async giveBack(): Promise<void> {
    clearTimeout(this.#returning);
    this.#returning = undefined;
    const now = steadyNow();
    const work: Promise<void>[] = [];
    for (const [key, slice] of this.#slices) {
      const { left = 0, windowMs, endsAt, usedAt } = slice;
      slice.left = undefined;
      slice.remaining += left;
      if (left > 0 && endsAt > now) work.push(this.#giveBack(key, windowMs, left, now));
      if (endsAt <= now || now - usedAt > KEEP_MS) this.#slices.delete(key);
    }
    // One that the store does not take back ends by itself.
    for (const { idle } of this.#places.values())
      for (const place of idle.splice(0)) work.push(this.release(place).catch(() => undefined));
    if (this.#slices.size > 0) this.#returnLater();
    await Promise.all(work);
  }

  /** What the store does not take back is in the window until that ends. */
  #giveBack(key: string, windowMs: number, amount: number, now: number): Promise<void> {
    return this.counters.adjust(key, windowMs, -amount, now).catch(() => undefined);
  }

  /** Renews the places of this process while it lives, so that those of one that died are soon free; returns how to stop. */
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
          // One that could not be renewed is tried again next time; its call goes on.
          this.counters.lease(key, id, limit, this.#leaseMs, now).catch(() => undefined);
        }
      }
  }
}

const NOTHING: WindowState = Object.freeze({ remaining: 0, resetMs: 0 });
