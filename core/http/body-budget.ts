import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { GatewayError } from '../contract/errors.ts';

/** What one request's body needs until its response is over. */
export interface BodyHold {
  /**
   * Reserves more of the heap. Throws `overloaded` when all requests together would need more than there is, and
   * `request_too_large` when this one alone would.
   */
  grow(heapBytes: number): void;
  /** Waits, with a body of so many bytes, until it may be parsed; undefined for one that need not wait. */
  turn(bytes: number): Promise<void> | undefined;
}

/** The memory that bodies may need together, in one process. */
export interface BodyBudget {
  /** A hold that is released when the response is over. */
  open(response: ServerResponse): BodyHold;
}

/** The part of the heap that bodies may need. */
const HEAP_SHARE = 1 / 4;

/** Bytes of heap for one byte of a body: its text, what is parsed from that, and what is sent on. Measured: 2 to 3. */
export const HEAP_PER_BYTE = 3;

/** Bodies over this are parsed one in each turn of the event loop, so that others are answered in between. */
const LARGE_BYTES = 128 * 1024;

/** Makes the budget of one process; its size follows from Node's `--max-old-space-size`. */
export function createBodyBudget(limit: number = getHeapStatistics().heap_size_limit * HEAP_SHARE): BodyBudget {
  let reserved = 0;
  let lastTurn: Promise<void> = Promise.resolve();
  return {
    open(response) {
      let own = 0;
      let isOver = response.closed;
      response.once('close', () => {
        isOver = true;
        reserved -= own;
      });
      return {
        grow(heapBytes) {
          if (isOver) return;
          if (own + heapBytes > limit) throw new GatewayError('request_too_large', TOO_LARGE);
          if (reserved + heapBytes > limit) throw new GatewayError('overloaded', NO_ROOM, { retryAfterMs: 1000 });
          own += heapBytes;
          reserved += heapBytes;
        },
        turn(bytes) {
          if (bytes <= LARGE_BYTES) return undefined;
          lastTurn = lastTurn.then(() => setImmediate());
          return lastTurn;
        },
      };
    },
  };
}

const TOO_LARGE = 'The body needs more memory than this gateway has for one request.';
const NO_ROOM = 'The gateway holds all the request bodies that it has memory for. Try again in a moment.';
