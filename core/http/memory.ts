import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
import type { Principal } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import { type Linked, LinkedList } from '../../contract/linked-list.ts';
import type { Hold as CallerHold, RateWatch } from '../../contract/route.ts';
import { maxEntries } from '../../contract/units.ts';

/** How fast the bytes of a body or message must come: so many in each span of time until it is complete. */
export interface LeastRate {
  readonly bytes: number;
  readonly everyMs: number;
}

/** The bounds of the memory in flight; `docs/security.md` lists them. */
export interface MemoryLimits {
  /** Bytes of heap that everything in flight may need together. */
  readonly bytes: number;
  /** The part of it that only small holds may use, once the rest is full. */
  readonly floorBytes: number;
  /** The largest hold that may use that part. */
  readonly smallBytes: number;
  readonly leastRate: LeastRate;
}

/** A hold of a request, whose owner is known later than its first bytes. */
export interface Hold extends CallerHold {
  /** Whose it is. */
  readonly owner: string;
  /** Throws `request_too_large` for what will not fit even when there is nothing else; books nothing. */
  announce(heapBytes: number): void;
  /**
   * Books what is held under another owner from now on; throws as {@link grow} does. Answers what the request waits for where its owner
   * has so many at once that others would wait for them.
   */
  assign(owner: string): Promise<void> | undefined;
}

/** The memory in flight of one process: bodies as their bytes come, messages of websockets, what they keep. */
export interface Memory {
  /** Opens a hold of an owner, of no bytes unless given; throws as {@link Hold.grow} does. */
  book(owner: string, heapBytes?: number): Hold;
  /** Takes a place in the line of an owner, as each of its requests does; answers what a message of a websocket waits for. */
  join(owner: string): Promise<void> | undefined;
  /** Starts to watch how fast bytes come; `onSlow` gets the error that ends the request, once. */
  readonly watchRate: (onSlow: (error: GatewayError) => void) => RateWatch;
  /**
   * Waits, with a body of so many bytes, until its owner may have it parsed; undefined for one that need not wait. Rejects with
   * `rate_limited` where the owner has so much waiting that it would take too long.
   */
  turn(bytes: number, of?: Pick<Hold, 'owner'>): Promise<void> | undefined;
}

/** Bytes of heap for one byte of a body: its text, what is parsed from that, and what is sent on. Measured: 2 to 3. */
export const HEAP_PER_BYTE = 3;

/** The part of the heap that may be in flight. */
const HEAP_SHARE = 1 / 4;
/** The part of that which is kept for small holds. */
const FLOOR_SHARE = 1 / 8;
const SMALL_BYTES = 256 * 1024;
/** Slower than any network that a person would call working; a sender that stops is gone after two of these spans at most. */
const LEAST_RATE: LeastRate = Object.freeze({ bytes: 5000, everyMs: 10_000 });

/**
 * How many times what is left free one owner may hold: two thirds of all while it is alone, less while others need it. So each
 * owner, however greedy, leaves something for the next.
 */
const HELD_PER_FREE = 2;

/** Bodies over this are large: not read for a caller whose limits are known to be used up, and what they took is measured. */
export const LARGE_BYTES = 128 * 1024;
/**
 * Bodies over this are parsed one in each turn of the event loop, so that others are answered in between. Up to here a body takes less
 * time than a turn of its own would cost the calls around it: 0.2 ms for a chat, 2 ms for the worst.
 */
export const QUEUED_BYTES = 64 * 1024;
/** How long the bodies of an owner rest after each while others have requests too: its bytes at this rate (4 MB a second). */
const BYTES_PER_MS = 4000;
/** After a large one also a multiple of what it took, so that others have three quarters of the time. */
const REST = 3;
/** So many requests of an owner go on in one turn of the event loop while others have requests too; more of them wait in line. */
const AT_ONCE = 2;
/** How long others count as being there after they had a request. */
const OTHERS_MS = 10_000;
/** The most owners that are counted. */
const MAX_OWNERS = 10_000;

/** The longest rest: that after the largest body of `server.bodyLimit` as it is by default. */
const LONGEST_REST_MS = 10_000;
/** What would wait longer than this behind other bodies of its owner is refused. */
const LONGEST_WAIT_MS = 5000;

/** The owner of what a caller's requests need: the account, however many users and keys it has. */
export function ownerOf({ account }: Pick<Principal, 'account'>): string {
  return `account ${account}`;
}

/** Makes the memory of one process; its size follows from Node's `--max-old-space-size`. */
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
      // What becomes smaller stays where it is, however full that is.
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

/** What is known of whether an owner has others beside it. */
interface Beside {
  /** What {@link hasOthers} counted last. */
  changes: number;
}

const countChanges = (pools: readonly Pool[]): number => pools.reduce((sum, { changes }) => sum + changes, 0);

/** Whether others have requests, or had some since this was asked last. */
function hasOthers(pools: readonly Pool[], owner: string, beside: Beside): boolean {
  const before = beside.changes;
  beside.changes = countChanges(pools);
  return beside.changes !== before || pools.some((pool) => pool.hasOthers(owner));
}

/** The requests of an owner that wait until some before them have gone on. */
interface Line extends Beside {
  readonly waiting: (() => void)[];
  othersUntilMs: number;
}

/**
 * Makes what requests of an owner wait for that are many at once: in each turn of the event loop a few of each owner go on, where others
 * have requests. `came` counts those of each owner since it was looked for others last.
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

/** The bodies of an owner that wait or rest. */
interface Queue extends Beside {
  /** When the next one may be parsed. */
  free: Promise<void>;
  /** Of all that wait or rest. */
  bytes: number;
}

/** Makes what queued bodies wait for: one in each turn of the event loop, and those of an owner rest in between where there are others. */
function createTurns(pools: readonly Pool[]): Memory['turn'] {
  let lastTurn: Promise<void> = Promise.resolve();
  const queues = new Map<string, Queue>();
  /** Rests from the body that is parsed in this turn. */
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

/** Bytes that owners share. */
class Pool {
  /** The most that one owner may hold while it is alone. */
  readonly largest: number;
  readonly #limit: number;
  /** How often an owner came after another one. */
  changes = 0;
  /** Bytes of each owner. An owner without any stays for its next request, as far as there is room. */
  readonly #byOwner = new Map<string, number>();
  /** Owners that hold something. */
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

  /** Why so many bytes do not fit: too large also in an empty pool, too many of this owner, or too many of others. */
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

/** A timer may fire a little before the time that `performance.now()` says. */
const TOLERANCE_MS = 1;

/** A body whose rate is watched. */
class WatchedBody implements Linked<WatchedBody>, RateWatch {
  previous: WatchedBody | undefined = undefined;
  next: WatchedBody | undefined = undefined;
  isLinked = false;
  /** Since it was judged last. */
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

/** Makes what watches bodies: all have the same time, so one timer, for the one that is judged next, serves them all. */
function createRateWatcher({ bytes, everyMs }: LeastRate): Memory['watchRate'] {
  const watched = new LinkedList<WatchedBody>();
  let isWaiting = false;
  // Bytes that waited while this process was busy are read after the timers, and before an immediate.
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
