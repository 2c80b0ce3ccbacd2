import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
import type { Principal } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import { type Linked, LinkedList } from '../../contract/linked-list.ts';
import type { Hold as CallerHold, RateWatch } from '../../contract/route.ts';
import { maxEntries } from '../../contract/units.ts';

/** Minimum rate of a body or message: bytes per period until it is complete. */
export interface LeastRate {
  readonly bytes: number;
  readonly everyMs: number;
}

/** Limits of the memory in flight; documented in `docs/security.md`. */
export interface MemoryLimits {
  /** Heap limit in bytes for everything in flight. */
  readonly bytes: number;
  /** Part reserved for small holds once the rest is full. */
  readonly floorBytes: number;
  /** Maximum size of a small hold. */
  readonly smallBytes: number;
  readonly leastRate: LeastRate;
}

/** Hold of a request, whose owner is known after its first bytes. */
export interface Hold extends CallerHold {
  /** Owner of the hold. */
  readonly owner: string;
  /** Throws `request_too_large` if the size exceeds an empty pool; reserves nothing. */
  announce(heapBytes: number): void;
  /**
   * Moves the hold to another owner; throws as {@link grow} does. If the owner has many concurrent requests, returns a promise that
   * the request waits for, in the interest of other owners.
   */
  assign(owner: string): Promise<void> | undefined;
}

/** Memory in flight of one process: arriving bodies, websocket messages, and stored data. */
export interface Memory {
  /** Opens a hold of an owner; default: 0 bytes. Throws as {@link Hold.grow} does. */
  book(owner: string, heapBytes?: number): Hold;
  /**
   * Takes a place in the queue of an owner, as each of its requests does; returns the promise that a websocket message waits for.
   */
  join(owner: string): Promise<void> | undefined;
  /** Watches the rate of incoming bytes; `onSlow` receives the error that ends the request, once. */
  readonly watchRate: (onSlow: (error: GatewayError) => void) => RateWatch;
  /**
   * Waits until a body of this size may be parsed; undefined if it need not wait. Rejects with `rate_limited` if the owner's queue
   * would take too long.
   */
  turn(bytes: number, of?: Pick<Hold, 'owner'>): Promise<void> | undefined;
}

/** Bytes of heap per byte of a body: its text, its parsed value and the forwarded copy. Measured: 2 to 3. */
export const HEAP_PER_BYTE = 3;

/** Share of the heap for memory in flight. */
const HEAP_SHARE = 1 / 4;
/** Share of that for small holds. */
const FLOOR_SHARE = 1 / 8;
const SMALL_BYTES = 256 * 1024;
/** Below the rate of any usable network. A stalled sender is disconnected after two periods at most. */
const LEAST_RATE: LeastRate = Object.freeze({ bytes: 5000, everyMs: 10_000 });

/**
 * Maximum ratio of an owner's holds to the free memory: two thirds of the total for a single owner, less under contention. Every
 * owner thus leaves memory for the next.
 */
const HELD_PER_FREE = 2;

/** Bodies over this size are large. They are not read for callers over their limits, and their parse time is measured. */
export const LARGE_BYTES = 128 * 1024;
/**
 * Bodies over this size are parsed one per turn of the event loop, so that other requests run in between. Smaller bodies take less
 * time than an extra turn would cost other calls: 0.2 ms for a chat, at most 2 ms.
 */
export const QUEUED_BYTES = 64 * 1024;
/**
 * Rate of an owner's bodies while others have requests. Each body is followed by a pause of its bytes at this rate (4 MB a second).
 */
const BYTES_PER_MS = 4000;
/** After a large body, the pause is at least this multiple of its parse time, so that others get three quarters of the time. */
const REST = 3;
/** Requests of an owner that start per turn of the event loop while others have requests; more of them wait in a queue. */
const AT_ONCE = 2;
/** Time for which other owners count as active after a request. */
const OTHERS_MS = 10_000;
/** Maximum number of tracked owners. */
const MAX_OWNERS = 10_000;

/** Maximum pause: that after the largest body under the default `server.bodyLimit`. */
const LONGEST_REST_MS = 10_000;
/** Requests that would wait longer behind other bodies of their owner are rejected. */
const LONGEST_WAIT_MS = 5000;

/** Returns the owner of a caller's memory: the account, for any number of users and keys. */
export function ownerOf({ account }: Pick<Principal, 'account'>): string {
  return `account ${account}`;
}

/** Creates the memory accounting of one process; its size derives from Node's `--max-old-space-size`. */
export function createMemory(limits: Partial<MemoryLimits> = {}): Memory {
  const { bytes = getHeapStatistics().heap_size_limit * HEAP_SHARE, leastRate = LEAST_RATE } = limits;
  const { floorBytes = bytes * FLOOR_SHARE, smallBytes = SMALL_BYTES } = limits;
  const general = new Pool(bytes - floorBytes);
  const floor = new Pool(floorBytes);
  const pools = [general, floor];
  const came = new LRUCache<string, number>(maxEntries(MAX_OWNERS));
  const joinLine = createLines(pools, came);
  const join = (owner: string): Promise<void> | undefined => {
    const before = came.get(owner) ?? 0;
    came.set(owner, before + 1);
    return before < AT_ONCE ? undefined : joinLine(owner);
  };
  const shared: SharedMemory = { general, floor, smallBytes, join };
  return {
    join,
    watchRate: createRateWatcher(leastRate),
    book: (owner, heapBytes = 0) => new RequestHold(shared, owner, heapBytes),
    turn: createTurns(pools),
  };
}

interface SharedMemory {
  readonly general: Pool;
  readonly floor: Pool;
  readonly smallBytes: number;
  readonly join: (owner: string) => Promise<void> | undefined;
}

class RequestHold implements Hold {
  readonly #shared: SharedMemory;
  #owner: string;
  #bytes = 0;
  #pool: Pool;
  #isReleased = false;

  constructor(shared: SharedMemory, owner: string, heapBytes: number) {
    this.#shared = shared;
    this.#owner = owner;
    this.#pool = shared.general;
    if (heapBytes > 0) this.#move(owner, heapBytes);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get owner(): string {
    return this.#owner;
  }

  announce(announced: number): void {
    if (announced > this.#shared.general.largest) throw new GatewayError('request_too_large', TOO_LARGE);
  }

  resize(next: number): void {
    this.#move(this.#owner, next);
  }

  grow(more: number): void {
    this.#move(this.#owner, this.#bytes + more);
  }

  assign(owner: string): Promise<void> | undefined {
    this.#move(owner, this.#bytes);
    return this.#shared.join(owner);
  }

  release(): void {
    this.#move(this.#owner, 0);
    this.#isReleased = true;
  }

  #move(owner: string, next: number): void {
    if (this.#isReleased) return;
    const { general, floor, smallBytes } = this.#shared;
    this.#pool.add(this.#owner, -this.#bytes);
    try {
      // A smaller reservation always fits.
      if (next > this.#bytes || owner !== this.#owner) {
        if (general.fits(owner, next)) this.#pool = general;
        else if (next <= smallBytes && floor.fits(owner, next)) this.#pool = floor;
        else throw general.refusal(owner, next);
      }
      this.#owner = owner;
      this.#bytes = next;
    } finally {
      this.#pool.add(this.#owner, this.#bytes);
    }
  }
}

/** Cached answer whether an owner has concurrent others. */
interface OthersCheck {
  /** Last count of {@link hasOthers}. */
  changes: number;
}

const countChanges = (pools: readonly Pool[]): number => pools.reduce((sum, { changes }) => sum + changes, 0);

/** Returns whether others have requests, or had some since the last check. */
function hasOthers(pools: readonly Pool[], owner: string, check: OthersCheck): boolean {
  const before = check.changes;
  check.changes = countChanges(pools);
  return check.changes !== before || pools.some((pool) => pool.hasOthers(owner));
}

/** Requests of an owner that wait for earlier ones to start. */
interface Line extends OthersCheck {
  readonly waiting: (() => void)[];
  othersUntilMs: number;
}

/**
 * Creates the queues of owners with many concurrent requests: each turn of the event loop starts a few of each owner, if others
 * have requests. `came` counts the requests of each owner since the last check for others.
 */
function createLines(
  pools: readonly Pool[],
  came: LRUCache<string, number>,
): (owner: string) => Promise<void> | undefined {
  const lines = new LRUCache<string, Line>(maxEntries(MAX_OWNERS));
  const moving = new Map<string, Line>();
  function goOn(): void {
    for (const [owner, { waiting }] of moving) {
      const next = waiting.splice(0, AT_ONCE);
      if (waiting.length === 0) moving.delete(owner);
      came.set(owner, waiting.length === 0 ? next.length : AT_ONCE);
      for (const resolve of next) resolve();
    }
    if (moving.size > 0) setImmediate(goOn);
  }
  return (owner) => {
    const line = moving.get(owner) ??
      lines.get(owner) ?? { changes: countChanges(pools), othersUntilMs: 0, waiting: [] };
    lines.set(owner, line);
    const nowMs = performance.now();
    if (hasOthers(pools, owner, line)) line.othersUntilMs = nowMs + OTHERS_MS;
    if (line.othersUntilMs < nowMs && !moving.has(owner)) {
      came.delete(owner);
      return undefined;
    }
    return new Promise((resolve) => {
      line.waiting.push(resolve);
      if (moving.size === 0) setImmediate(goOn);
      moving.set(owner, line);
    });
  };
}

/** Bodies of an owner that wait or pause. */
interface Queue extends OthersCheck {
  /** Resolves when the next one may be parsed. */
  free: Promise<void>;
  /** Total bytes of waiting and pausing bodies. */
  bytes: number;
}

/** Creates the parse queue: one body per turn of the event loop, and pauses between the bodies of one owner if there are others. */
function createTurns(pools: readonly Pool[]): Memory['turn'] {
  let lastTurn: Promise<void> = Promise.resolve();
  const queues = new Map<string, Queue>();
  /** Pauses after the body that is parsed in this turn. */
  async function rest(owner: string, queue: Queue, bytes: number): Promise<void> {
    const beganMs = performance.now();
    await nextTurn();
    const tookMs = bytes > LARGE_BYTES ? performance.now() - beganMs : 0;
    const restMs = Math.max(tookMs * REST, bytes / BYTES_PER_MS);
    if (hasOthers(pools, owner, queue)) await pause(Math.min(restMs, LONGEST_REST_MS), undefined, { ref: false });
  }
  return (bytes, of) => {
    if (bytes <= QUEUED_BYTES) return undefined;
    const { owner = '' } = of ?? {};
    const queue = queues.get(owner) ?? { free: Promise.resolve(), bytes: 0, changes: countChanges(pools) };
    const waitMs = queue.bytes / BYTES_PER_MS;
    if (waitMs > LONGEST_WAIT_MS && hasOthers(pools, owner, queue))
      return Promise.reject(new GatewayError('rate_limited', TOO_MUCH_WAITS, { retryAfterMs: waitMs }));
    queues.set(owner, queue);
    queue.bytes += bytes;
    const turn = queue.free.then(() => (lastTurn = lastTurn.then(() => nextTurn())));
    queue.free = turn
      .then(() => rest(owner, queue, bytes))
      .then(() => {
        queue.bytes -= bytes;
        if (queue.bytes === 0) queues.delete(owner);
      });
    return turn;
  };
}

/** Bytes shared by owners. */
class Pool {
  /** Limit of a single owner without others. */
  readonly largest: number;
  readonly #limit: number;
  /** Number of times that an owner followed a different one. */
  changes = 0;
  /** Bytes of each owner. Idle owners stay for their next request, if there is room. */
  readonly #byOwner = new Map<string, number>();
  /** Number of owners with holds. */
  #owners = 0;
  #newest = '';
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.largest = (limit * HELD_PER_FREE) / (HELD_PER_FREE + 1);
  }

  fits(owner: string, bytes: number): boolean {
    const own = (this.#byOwner.get(owner) ?? 0) + bytes;
    return bytes === 0 || own <= HELD_PER_FREE * (this.#limit - this.#used - bytes);
  }

  hasOthers(owner: string): boolean {
    return this.#owners > ((this.#byOwner.get(owner) ?? 0) > 0 ? 1 : 0);
  }

  add(owner: string, bytes: number): void {
    if (bytes === 0) return;
    this.#used += bytes;
    const before = this.#byOwner.get(owner);
    const own = (before ?? 0) + bytes;
    if (before === undefined && this.#byOwner.size >= MAX_OWNERS) this.#forgetIdle();
    this.#byOwner.set(owner, own);
    if (own === 0) this.#owners -= 1;
    else if (own === bytes) this.#owners += 1;
    if (this.#newest === owner) return;
    this.#newest = owner;
    this.changes += 1;
  }

  #forgetIdle(): void {
    for (const [owner, bytes] of this.#byOwner) if (bytes === 0) this.#byOwner.delete(owner);
  }

  /** Returns the error for bytes that do not fit: larger than an empty pool, too much of this owner, or too much of others. */
  refusal(owner: string, bytes: number): GatewayError {
    if (bytes > this.largest) return new GatewayError('request_too_large', TOO_LARGE);
    const ofOthers = this.#used - (this.#byOwner.get(owner) ?? 0);
    const retryAfterMs = 1000;
    return bytes <= HELD_PER_FREE * (this.#limit - ofOthers - bytes)
      ? new GatewayError('rate_limited', OWN_SHARE, { retryAfterMs })
      : new GatewayError('overloaded', NO_ROOM, { retryAfterMs });
  }
}

const TOO_LARGE = 'The request exceeds the memory limit of one request. Send a smaller body.';
const OWN_SHARE = 'The running requests of this account reached its memory limit. Wait until some of them end.';
const TOO_MUCH_WAITS = 'Large bodies of this account are already waiting. Wait until some of them end.';
const NO_ROOM = 'The running requests reached the memory limit of the gateway. Try again in a moment.';

/** A timer may fire slightly before the time of `performance.now()`. */
const TOLERANCE_MS = 1;

/** Body with a watched rate. */
class WatchedBody implements Linked<WatchedBody>, RateWatch {
  previous: WatchedBody | undefined = undefined;
  next: WatchedBody | undefined = undefined;
  isLinked = false;
  /** Bytes since the last check. */
  bytes = 0;
  untilMs: number;
  readonly onSlow: (error: GatewayError) => void;
  readonly #all: LinkedList<WatchedBody>;

  constructor(all: LinkedList<WatchedBody>, everyMs: number, onSlow: (error: GatewayError) => void) {
    this.#all = all;
    this.untilMs = performance.now() + everyMs;
    this.onSlow = onSlow;
    all.add(this);
  }

  add(more: number): void {
    this.bytes += more;
  }

  stop(): void {
    this.#all.remove(this);
  }
}

/** Creates the rate watcher. All bodies have the same period, so one timer serves them all. */
function createRateWatcher({ bytes, everyMs }: LeastRate): Memory['watchRate'] {
  const watched = new LinkedList<WatchedBody>();
  let isWaiting = false;
  // Bytes that arrived while this process was busy are read after the timers and before an immediate.
  const wait = (ms: number): void => {
    isWaiting = true;
    setTimeout(() => setImmediate(judge), ms).unref();
  };
  const judge = (): void => {
    const nowMs = performance.now();
    isWaiting = false;
    for (let each = watched.first; each; each = watched.first) {
      if (each.untilMs > nowMs + TOLERANCE_MS) {
        wait(each.untilMs - nowMs);
        return;
      }
      watched.remove(each);
      if (each.bytes < bytes) {
        const message = `The body came too slowly: fewer than ${bytes} bytes in ${everyMs / 1000} seconds.`;
        each.onSlow(new GatewayError('request_timeout', message));
      } else {
        each.bytes = 0;
        each.untilMs = nowMs + everyMs;
        watched.add(each);
      }
    }
  };
  return (onSlow) => {
    const body = new WatchedBody(watched, everyMs, onSlow);
    if (!isWaiting) wait(everyMs);
    return body;
  };
}
