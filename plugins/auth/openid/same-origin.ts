import { type AuthRequest, GatewayError } from '../../../core/index.ts';

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Holds a request that a cookie came with to a page of this gateway, since a browser adds the cookie whoever makes it send the
 * request. Reading is free: no other page sees the response. Throws `permission_denied`.
 */
export function refuseOtherOrigin({ method, headers }: Pick<AuthRequest, 'method' | 'headers'>, origin: string): void {
  if (SAFE.has(method)) return;
  const { 'sec-fetch-site': site, origin: from } = headers;
  const isOther = (site !== undefined && site !== 'same-origin') || (from !== undefined && from !== origin);
  const isTold = site !== undefined || from !== undefined;
  if (isTold && !isOther) return;
  throw new GatewayError(
    'permission_denied',
    'With a session only a page of this gateway may change anything: the browser has to send "origin" or "sec-fetch-site" that says so. Programs send an admin key instead.',
  );
}
