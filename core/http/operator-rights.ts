import { LRUCache } from 'lru-cache';
import type { Principal } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Route } from '../../contract/route.ts';
import { hasScope } from '../../contract/scopes.ts';
import { maxEntries } from '../../contract/units.ts';

/** Scopes and rate limits of operator routes. */

/** Throws for a caller without the required scope. */
export function refuseLacking(principal: Principal, scope: Route['scope'], isForOperators: boolean): void {
  if (hasScope(principal, scope)) return;
  const needed = scope === undefined ? 'the role "admin"' : scope === 'any' ? 'a role' : `the scope "${scope}"`;
  const whom = isForOperators ? 'This route is for operators. It' : 'A key of operators';
  throw new GatewayError(
    'permission_denied',
    `${whom} needs ${needed}, which this ${principal.credential} lacks. Ask an admin for a key with it ("tollgate keys create" with --scope or --role).`,
    { refusedBy: needed },
  );
}

/** Requests per minute of an operator to operator routes, per process. */
const ADMIN_RPM = 600;
const MINUTE_MS = 60_000;
const MAX_OPERATORS = 10_000;

/** Counts a request to an operator route; throws `rate_limited` over the limit. */
export type CountAdmin = (principal: Principal) => void;

/** Counts in this process: operators need target states even if the store is down. */
export function createAdminRate(): CountAdmin {
  const windows = new LRUCache<string, { readonly until: number; sent: number }>(maxEntries(MAX_OPERATORS));
  return ({ userId, keyId }) => {
    const now = Date.now();
    const key = keyId ?? `user ${userId}`;
    const known = windows.get(key);
    const window = known && known.until > now ? known : { until: now + MINUTE_MS, sent: 0 };
    windows.set(key, window);
    if (window.sent >= ADMIN_RPM)
      throw new GatewayError(
        'rate_limited',
        `Limit of ${ADMIN_RPM} admin API requests per minute and operator reached. Try again later, or use larger pages.`,
        { retryAfterMs: window.until - now },
      );
    window.sent += 1;
  };
}
