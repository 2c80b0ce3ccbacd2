import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import { createLocalCounters } from '../plugins/local-counters.ts';

/** How many requests a minute an operator may send to the routes of operators, by process. */
export const ADMIN_RPM = 600;
const MINUTE_MS = 60_000;

/** Counts a request to a route of operators; throws `rate_limited` for one too many. */
export type CountAdmin = (principal: Principal) => Promise<void>;

/** Counts in this process: operators look at targets also while the store is down. */
export function createAdminRate(): CountAdmin {
  const counters = createLocalCounters();
  return async ({ userId, keyId }) => {
    const window = { key: keyId ?? `user ${userId}`, limit: ADMIN_RPM, windowMs: MINUTE_MS, amount: 1 };
    const { refused, states } = await counters.take([window], Date.now());
    if (refused === undefined) return;
    throw new GatewayError(
      'rate_limited',
      `An operator may send ${ADMIN_RPM} requests a minute to the admin API. Try again later, or ask for larger pages.`,
      { retryAfterMs: states[0]?.resetMs ?? MINUTE_MS },
    );
  };
}
