import { LRUCache } from 'lru-cache';
import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';

/** How many requests a minute an operator may send to the routes of operators, by process. */
const ADMIN_RPM = 600;
const MINUTE_MS = 60_000;
const MAX_OPERATORS = 10_000;

/** Counts a request to a route of operators; throws `rate_limited` for one too many. */
export type CountAdmin = (principal: Principal) => void;

/** Counts in this process: operators look at targets also while the store is down. */
export function createAdminRate(): CountAdmin {
  const windows = new LRUCache<string, { readonly until: number; sent: number }>({ max: MAX_OPERATORS });
  return ({ userId, keyId }) => {
    const now = Date.now();
    const key = keyId ?? `user ${userId}`;
    const known = windows.get(key);
    const window = known && known.until > now ? known : { until: now + MINUTE_MS, sent: 0 };
    windows.set(key, window);
    if (window.sent >= ADMIN_RPM)
      throw new GatewayError(
        'rate_limited',
        `An operator may send ${ADMIN_RPM} requests a minute to the admin API. Try again later, or ask for larger pages.`,
        { retryAfterMs: window.until - now },
      );
    window.sent += 1;
  };
}
