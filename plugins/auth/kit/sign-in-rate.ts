import { GatewayError } from '../../../contract/index.ts';
import { createLocalCounters, networkOf } from '../../policies/kit/index.ts';

const MINUTE_MS = 60_000;

/** All networks together may send this multiple of the limit of one. */
const NETWORKS = 20;

/** Share of a network's limit that does not count towards the limit of all. */
const FLOOR = 1 / 5;

/** Bound of these shares, as a multiple of the limit of all. */
const FLOORS = 10;

/** Counts a request without a credential from an address; throws `rate_limited` above a limit. */
export type CountSignIn = (address: string, now: number) => Promise<void>;

/**
 * Limits requests per minute in this process: `limit` from one network (for IPv6 the first 64 bits), and 20 times as
 * many from all. The first requests of each network do not count towards the limit of all, so that a few networks
 * cannot lock out the others.
 */
export function createSignInRate(limit: number): CountSignIn {
  const counters = createLocalCounters();
  const one = { windowMs: MINUTE_MS, amount: 1 };
  const all = limit * NETWORKS;
  return async (address, now) => {
    const network = networkOf(address);
    const own = { ...one, key: `network ${network}`, limit };
    const floor = [
      own,
      { ...one, key: `floor ${network}`, limit: limit * FLOOR },
      { ...one, key: 'floors', limit: all * FLOORS },
    ];
    if ((await counters.take(floor, now)).refused === undefined) return;
    const { refused, states } = await counters.take([own, { ...one, key: 'all', limit: all }], now);
    if (refused === undefined) return;
    const retryAfterMs = states[refused]?.resetMs ?? MINUTE_MS;
    throw new GatewayError('rate_limited', 'Too many sign-in requests. Try again in a minute.', { retryAfterMs });
  };
}
