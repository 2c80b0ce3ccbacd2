import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type AuthRequest, GatewayError, type RouteContext } from '../../contract/index.ts';

/** Operator routes: the only paths to which the console's cookie is sent. */
export const ADMIN_PREFIX = '/api/core/admin/';
const COOKIE = 'tollgate-console';
/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/;

/**
 * Session id of the console's cookie; undefined without one. Two different ones count as missing, since the right one
 * is unknown.
 */
export function readCookie(header: string | readonly string[] | undefined): string | undefined {
  const pairs = [header ?? ''].flat().join(';').split(';');
  const values = pairs.flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=');
    return name.trim() === COOKIE ? [value.trim()] : [];
  });
  const [first, ...others] = new Set(values);
  return first !== undefined && others.length === 0 && VALUE.test(first) ? first : undefined;
}

/** Returns the `set-cookie` header that sets the cookie, or removes it. */
export function writeCookie(ctx: Pick<RouteContext, 'req'>, basePath: string, id = '', maxAgeMs = 0): string {
  const secure = isTls(ctx.req) ? ' Secure;' : '';
  return `${COOKIE}=${id}; Path=${basePath}${ADMIN_PREFIX.slice(0, -1)};${secure} HttpOnly; SameSite=Strict; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
}

function isTls({ socket }: IncomingMessage): boolean {
  return 'encrypted' in socket && socket.encrypted === true;
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Rejects changes from other sites' pages: a browser adds the cookie to any page's requests. Throws
 * `permission_denied`.
 */
export function refuseOtherPages({ method, headers }: Pick<AuthRequest, 'method' | 'headers'>): void {
  if (SAFE.has(method)) return;
  const { origin, host, 'sec-fetch-site': site } = headers;
  const isOwn = origin === undefined || hostOf(origin) === host;
  const isSameSite = site === undefined || site === 'same-origin';
  if (isOwn && isSameSite && (origin !== undefined || site !== undefined)) return;
  throw new GatewayError(
    'permission_denied',
    'With a session only a page of this gateway may change anything, as the browser has to say. Programs send an admin key instead.',
  );
}

function hostOf(origin: string | readonly string[]): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(String(origin))?.[1];
}

/** Headers added by proxies: such a request came from another machine, whatever the socket says. */
const FORWARDED = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'via',
] as const;
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const LOCAL_HOST = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?$/i;

/** True if a request comes from this machine, without a proxy, and under a name of this machine. */
export function isLocal({
  socket,
  headers,
}: {
  readonly socket: IncomingMessage['socket'];
  readonly headers: IncomingHttpHeaders;
}): boolean {
  const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
  return !isForwarded && LOOPBACK.test(socket.remoteAddress ?? '') && LOCAL_HOST.test(headers.host ?? '');
}
