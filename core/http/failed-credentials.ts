import { LRUCache } from 'lru-cache';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { networkOf } from '../../contract/hosts.ts';
import type { Log } from '../../contract/plugin.ts';
import { maxEntries } from '../../contract/units.ts';

/** Counts wrong credentials by client address, in this process. */
export interface FailedCredentials {
  /** Throws the error. Counts a 401 for a credential from the address, and throws `rate_limited` over the limit. */
  refuse(error: unknown, address: string | undefined): never;
  /**
   * Call this before querying the store for a credential that was never valid here. Anyone can create a key of valid form, so an
   * address over the limit gets a bounded number of queries. Throws `rate_limited` beyond.
   */
  beforeLookup(address: string): void;
}

const MINUTE_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/**
 * Store queries from an address over the limit, as a multiple of the limit. Enough for the valid keys of all users of a shared
 * address.
 */
const LOOKUPS = 10;

interface Minute {
  readonly until: number;
  failed: number;
  lookups: number;
}

/** For a gateway without this limit. */
export const UNLIMITED: FailedCredentials = Object.freeze({
  refuse(error: unknown): never {
    throw error;
  },
  beforeLookup: () => undefined,
});

/** `limit` is the number of wrong credentials per address and minute; 0 disables the limit. */
export function createFailedCredentials(limit: number, log: Log): FailedCredentials {
  if (limit === 0) return UNLIMITED;
  const minutes = new LRUCache<string, Minute>(maxEntries(MAX_ADDRESSES));

  const current = (network: string): Minute | undefined => {
    const minute = minutes.get(network);
    return minute && minute.until > Date.now() ? minute : undefined;
  };

  return {
    refuse(error, address) {
      if (address === undefined || !isGatewayError(error) || error.status !== 401) throw error;
      const network = networkOf(address);
      const minute = current(network) ?? { until: Date.now() + MINUTE_MS, failed: 0, lookups: 0 };
      minutes.set(network, minute);
      minute.failed += 1;
      if (minute.failed <= limit) throw error;
      if (minute.failed === limit + 1)
        log.warn({ ip: network, limit }, 'too many invalid credentials from one address; it gets 429');
      throw tooMany(minute);
    },
    beforeLookup(address) {
      const minute = current(networkOf(address));
      if (!minute || minute.failed < limit) return;
      if (minute.lookups >= limit * LOOKUPS) throw tooMany(minute);
      minute.lookups += 1;
    },
  };
}

function tooMany({ until }: Minute): GatewayError {
  return new GatewayError(
    'rate_limited',
    'Too many invalid credentials from this address. Check the credential and try again in a minute.',
    { retryAfterMs: until - Date.now() },
  );
}
