import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { GatewayError } from '../contract/errors.ts';

/** What one request's body costs until its response is over. */
export interface BodyHold {
  /** Reserves more; throws `overloaded` when all requests together would need more than there is. */
  grow(bytes: number, values?: number): void;
  /** Waits, with a large body, until it may be parsed. */
  turn(bytes: number): Promise<void> | undefined;
  /** Gives everything back early, for a body that is refused. */
  release(): void;
}

/** The memory that bodies may need together, in one process. */
export interface BodyBudget {
  /** A hold that is released when the response is over. */
  open(response: ServerResponse): BodyHold;
}

/** The part of the heap that bodies may need. */
const HEAP_SHARE = 1 / 4;

/** Bytes of heap for one byte of body: its text, what is parsed from it, and what is sent to the provider (measured: 2.2 to 3). */
const PER_BYTE = 3;

/** Bytes of heap for one value of a body beside its text; an empty object takes 64. */
const PER_VALUE = 100;

/** Bodies over this are parsed one in each turn of the event loop, so that others are answered in between. */
const LARGE_BYTES = 1024 * 1024;

/** Makes the budget of one process; its size follows from Node's `--max-old-space-size`. */
export function createBodyBudget(limit: number = getHeapStatistics().heap_size_limit * HEAP_SHARE): BodyBudget {
  let reserved = 0;
  let lastTurn: Promise<void> = Promise.resolve();
  return {
    open(response) {
      let own = 0;
      let isOver = false;
      const release = (): void => {
        isOver = true;
        reserved -= own;
        own = 0;
      };
      if (response.closed) release();
      else response.once('close', release);
      return {
        grow(bytes, values = 0) {
          const cost = bytes * PER_BYTE + values * PER_VALUE;
          if (isOver) return;
          if (reserved + cost > limit)
            throw new GatewayError('overloaded', 'The gateway holds all the request bodies that it has memory for.', {
              retryAfterMs: 1000,
            });
          own += cost;
          reserved += cost;
        },
        turn(bytes) {
          if (bytes <= LARGE_BYTES) return undefined;
          lastTurn = lastTurn.then(() => setImmediate());
          return lastTurn;
        },
        release,
      };
    },
  };
}
