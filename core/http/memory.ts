import { setImmediate as nextTurn } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Hold as CallerHold, RateWatch } from '../contract/route.ts';

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
  /** Throws `request_too_large` for what will not fit even when there is nothing else; books nothing. */
  announce(heapBytes: number): void;
  /** Books what is held under another owner from now on; throws as {@link grow} does. */
  assign(owner: string): void;
}

/** The memory in flight of one process: bodies as their bytes come, messages of websockets, what they keep. */
export interface Memory {
  readonly leastRate: LeastRate;
  /** Opens a hold of an owner, of no bytes unless given; throws as {@link Hold.grow} does. */
  book(owner: string, heapBytes?: number): Hold;
  /** Waits, with a body of so many bytes, until it may be parsed; undefined for one that need not wait. */
  turn(bytes: number): Promise<void> | undefined;
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

/** Bodies over this are parsed one in each turn of the event loop, so that others are answered in between. */
const LARGE_BYTES = 128 * 1024;

/** The owner of what a caller's requests need: the account, however many users and keys it has. */
export function ownerOf({ account }: Pick<Principal, 'account'>): string {
  return `account ${account}`;
}

/** The owner of what comes from an address before it is known who sent it, and where no credential is needed. */
export function ownerAt(address: string): string {
  return `address ${address}`;
}

/** Makes the memory of one process; its size follows from Node's `--max-old-space-size`. */
export function createMemory(limits: Partial<MemoryLimits> = {}): Memory {
  const { bytes = getHeapStatistics().heap_size_limit * HEAP_SHARE, leastRate = LEAST_RATE } = limits;
  const { floorBytes = bytes * FLOOR_SHARE, smallBytes = SMALL_BYTES } = limits;
  const general = new Pool(bytes - floorBytes);
  const floor = new Pool(floorBytes);
  let lastTurn: Promise<void> = Promise.resolve();

  /** Where so many bytes of an owner fit; throws where they do not. */
  function findRoom(owner: string, heapBytes: number): Pool {
    if (general.fits(owner, heapBytes)) return general;
    if (heapBytes <= smallBytes && floor.fits(owner, heapBytes)) return floor;
    throw general.refusal(owner, heapBytes);
  }

  function book(owner: string, heapBytes = 0): Hold {
    let held = 0;
    let pool = general;
    let isReleased = false;
    const hold: Hold = {
      get bytes() {
        return held;
      },
      announce(announced) {
        if (!general.fitsAlone(announced)) throw new GatewayError('request_too_large', TOO_LARGE);
      },
      resize: (bytes) => move(owner, bytes),
      grow: (more) => move(owner, held + more),
      assign: (next) => move(next, held),
      release() {
        pool.add(owner, -held);
        held = 0;
        isReleased = true;
      },
    };
    function move(nextOwner: string, nextHeld: number): void {
      if (isReleased) return;
      pool.add(owner, -held);
      try {
        // What becomes smaller stays where it is, however full that is.
        if (nextHeld > held || nextOwner !== owner) pool = findRoom(nextOwner, nextHeld);
        [owner, held] = [nextOwner, nextHeld];
      } finally {
        pool.add(owner, held);
      }
    }
    if (heapBytes > 0) hold.grow(heapBytes);
    return hold;
  }

  return {
    leastRate,
    book,
    turn(size) {
      if (size <= LARGE_BYTES) return undefined;
      lastTurn = lastTurn.then(() => nextTurn());
      return lastTurn;
    },
  };
}

/** Bytes that owners share. */
class Pool {
  readonly #limit: number;
  #used = 0;
  readonly #byOwner = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  fits(owner: string, bytes: number): boolean {
    const own = this.#ownedBy(owner) + bytes;
    return bytes === 0 || own <= HELD_PER_FREE * (this.#limit - this.#used - bytes);
  }

  fitsAlone(bytes: number): boolean {
    return bytes <= HELD_PER_FREE * (this.#limit - bytes);
  }

  add(owner: string, bytes: number): void {
    if (bytes === 0) return;
    this.#used += bytes;
    const own = this.#ownedBy(owner) + bytes;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
  }

  /** Why so many bytes do not fit: too large also in an empty pool, too many of this owner, or too many of others. */
  refusal(owner: string, bytes: number): GatewayError {
    if (!this.fitsAlone(bytes)) return new GatewayError('request_too_large', TOO_LARGE);
    const ofOthers = this.#used - this.#ownedBy(owner);
    const retryAfterMs = 1000;
    return bytes <= HELD_PER_FREE * (this.#limit - ofOthers - bytes)
      ? new GatewayError('rate_limited', OWN_SHARE, { retryAfterMs })
      : new GatewayError('overloaded', NO_ROOM, { retryAfterMs });
  }

  #ownedBy(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }
}

const TOO_LARGE = 'This needs more memory than the gateway gives to one request. Send a smaller body.';
const OWN_SHARE =
  'The requests of this account that are under way take all the memory that one account may have. Wait until some of them are over.';
const NO_ROOM =
  'The requests that are under way take all the memory that the gateway has for them. Try again in a moment.';

/** Starts to watch how fast bytes come; `onSlow` gets the error that ends the request. */
export function watchRate({ bytes, everyMs }: LeastRate, onSlow: (error: GatewayError) => void): RateWatch {
  let arrived = 0;
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    clearInterval(timer);
  };
  const judge = (): void => {
    if (isStopped) return;
    if (arrived < bytes) {
      stop();
      const message = `The body came too slowly: fewer than ${bytes} bytes in ${everyMs / 1000} seconds.`;
      onSlow(new GatewayError('request_timeout', message));
    }
    arrived = 0;
  };
  // Bytes that waited while this process was busy are read after the timers, and before an immediate.
  const timer = setInterval(() => setImmediate(judge), everyMs).unref();
  return {
    add(more) {
      arrived += more;
    },
    stop,
  };
}
