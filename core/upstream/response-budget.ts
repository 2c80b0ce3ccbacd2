import { getHeapStatistics } from 'node:v8';
import { GatewayError } from '../contract/errors.ts';

/** What one answer needs that is read as a whole. */
export interface ResponseHold {
  /**
   * Reserves memory. Throws `overloaded` when all answers together would need more than there is, and `provider_invalid_response` when
   * this one alone would.
   */
  grow(bytes: number): void;
  /** Gives back what was reserved. Harmless a second time. */
  release(): void;
}

/** The memory that answers of providers may need together, in one process; those that are streamed need none of it. */
export interface ResponseBudget {
  open(): ResponseHold;
}

/** The part of the heap that answers may need. */
const HEAP_SHARE = 1 / 4;

/** Bytes of memory for one byte of an answer: as it came, its text, and what is parsed from that or written of it. */
export const MEMORY_PER_BYTE = 3;

/** Makes the budget of one process; its size follows from Node's `--max-old-space-size`. */
export function createResponseBudget(limit: number = getHeapStatistics().heap_size_limit * HEAP_SHARE): ResponseBudget {
  let reserved = 0;
  return {
    open() {
      let own = 0;
      let isOver = false;
      return {
        grow(bytes) {
          if (isOver) return;
          if (own + bytes > limit) throw new GatewayError('provider_invalid_response', TOO_LARGE);
          if (reserved + bytes > limit) throw new GatewayError('overloaded', NO_ROOM, { retryAfterMs: 1000 });
          own += bytes;
          reserved += bytes;
        },
        release() {
          isOver = true;
          reserved -= own;
          own = 0;
        },
      };
    },
  };
}

const TOO_LARGE = 'The answer of the provider needs more memory than this gateway has for one answer.';
const NO_ROOM = 'The gateway holds all the answers of providers that it has memory for. Try again in a moment.';
