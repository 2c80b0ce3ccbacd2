import { type AuthRequest, GatewayError } from '../../../contract/index.ts';
import { SESSION_COOKIE } from '../../policies/kit/index.ts';
import { DEVICE_PATH } from './introductions.ts';

const LOGIN_COOKIE = 'tollgate-login';
const PERSON_COOKIE = 'tollgate-person';
/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/;

/** Cookie of the gateway: its value is a random id. */
export interface Cookie {
  /** Reads the value; undefined if it is missing or malformed. Throws if the cookie was sent twice. */
  read(header: string | readonly string[] | undefined): string | undefined;
  /** True if the browser sent it in any form. */
  isSent(header: string | readonly string[] | undefined): boolean;
  /** Returns the `set-cookie` header that sets it, or removes it for undefined. */
  write(value: string | undefined, maxAgeMs?: number): string;
}

export interface Cookies {
  /** Session of a signed-in person. */
  readonly session: Cookie;
  /** Browser that started a sign-in. */
  readonly login: Cookie;
  /** Person who just signed in, operator or not, to approve the sign-in of a program; sent to that page alone. */
  readonly person: Cookie;
}

/**
 * Over https the cookies have the prefix `__Host-`: no other host, not even a subdomain, can set them, which prevents
 * session fixation. Such a cookie has the path `/`, but is accepted as a credential on the admin API alone. On plain
 * http, which is limited to this machine, cookies are sent to the admin API alone.
 */
export function createCookies(isSecure: boolean, basePath = ''): Cookies {
  const named = (base: string, path = '/api/core/admin'): Cookie => {
    const place = isSecure ? 'Path=/; Secure' : `Path=${basePath}${path}`;
    const name = isSecure ? `__Host-${base}` : base;
    return {
      isSent: (header) => valuesOf(header, name).length > 0,
      read(header) {
        const values = [...new Set(valuesOf(header, name))];
        if (values.length > 1)
          throw new GatewayError(
            'ambiguous_credentials',
            `The request has different cookies named "${name}". Remove the cookies of this site, and sign in again.`,
          );
        return values.find((value) => VALUE.test(value));
      },
      write: (value = '', maxAgeMs = 0) =>
        `${name}=${value}; ${place}; HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    };
  };
  return { session: named(SESSION_COOKIE), login: named(LOGIN_COOKIE), person: named(PERSON_COOKIE, DEVICE_PATH) };
}

function valuesOf(header: string | readonly string[] | undefined, name: string): readonly string[] {
  const pairs = [header ?? ''].flat().join(';').split(';');
  return pairs.flatMap((pair) => {
    const [key = '', ...rest] = pair.split('=');
    return key.trim() === name ? [rest.join('=').trim()] : [];
  });
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Rejects requests with a cookie from other origins, since a browser adds the cookie to any page's requests. Reads are
 * allowed: no other page sees the response. Throws `permission_denied`.
 */
export function refuseOtherOrigin({ method, headers }: Pick<AuthRequest, 'method' | 'headers'>, origin: string): void {
  if (SAFE.has(method)) return;
  const { 'sec-fetch-site': site, origin: from } = headers;
  const isOther = (site !== undefined && site !== 'same-origin') || (from !== undefined && from !== origin);
  const isSent = site !== undefined || from !== undefined;
  if (isSent && !isOther) return;
  throw new GatewayError(
    'permission_denied',
    'Changes with a session are allowed only from pages of this gateway ("origin" or "sec-fetch-site" header). Programs must use an admin key.',
  );
}

const ESCAPES: Readonly<Record<string, string>> = Object.freeze({
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
});

/** Escapes text for HTML, attributes included. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? '');
}
