import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type AuthRequest, GatewayError, type RouteContext } from '../../contract/index.ts';

/** The routes of operators: where the console's cookie goes, and nowhere else. */
export const ADMIN_PREFIX = '/api/core/admin/';
const COOKIE = 'tollgate-console';
/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/;

/** The session's id of the console's cookie; undefined without one. Two different ones are none: which of them is meant is unknown. */
export function readCookie(header: string | readonly string[] | undefined): string | undefined {
  const pairs = [header ?? ''].flat().join(';').split(';');
  const values = pairs.flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=');
    return name.trim() === COOKIE ? [value.trim()] : [];
  });
  const [first, ...others] = new Set(values);
  return first !== undefined && others.length === 0 && VALUE.test(first) ? first : undefined;
}

/** The `set-cookie` header that sets the cookie, or removes it. */
export function writeCookie(ctx: Pick<RouteContext, 'req'>, basePath: string, id = '', maxAgeMs = 0): string {
  const secure = isTls(ctx.req) ? ' Secure;' : '';
  return `${COOKIE}=${id}; Path=${basePath}${ADMIN_PREFIX.slice(0, -1)};${secure} HttpOnly; SameSite=Strict; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
}

function isTls({ socket }: IncomingMessage): boolean {
  return 'encrypted' in socket && socket.encrypted === true;
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Holds a request that changes something to a page of this gateway: a browser adds the cookie whoever makes it send the request.
 * Throws `permission_denied`.
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

/** What proxies add: such a request came from another machine, whatever the socket says. */
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

/** Whether a request comes from this machine, by no proxy, and under a name of this machine. */
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
