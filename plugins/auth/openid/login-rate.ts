import { createLocalCounters, GatewayError } from '../../../core/index.ts';

/** How many requests to sign in may come in a minute, from one address and from all, by process. */
export const LOGINS_PER_ADDRESS = 30;
export const LOGINS_IN_ALL = 600;
const MINUTE_MS = 60_000;

/** Counts a request of somebody unknown that costs a write and a request to the provider; throws `rate_limited`. */
export function createLoginRate(): (address: string, now: number) => Promise<void> {
  const counters = createLocalCounters();
  return async (address, now) => {
    const { refused, states } = await counters.take(
      [
        { key: `address ${address}`, limit: LOGINS_PER_ADDRESS, windowMs: MINUTE_MS, amount: 1 },
        { key: 'all', limit: LOGINS_IN_ALL, windowMs: MINUTE_MS, amount: 1 },
      ],
      now,
    );
    if (refused === undefined) return;
    throw new GatewayError(
      'rate_limited',
      'Too many people sign in at once, or one too often. Try again in a minute.',
      {
        retryAfterMs: states[refused]?.resetMs ?? MINUTE_MS,
      },
    );
  };
}
