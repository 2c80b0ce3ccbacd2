/** Parsed base URL; requests add to the path and can change nothing else. */
export interface Address {
  /** Scheme, host and port, such as `https://api.example.com`. */
  readonly origin: string;
  /** `name` or `name:port`. */
  readonly host: string;
  /** Path of the base URL without a trailing slash; `''` for none. */
  readonly basePath: string;
}

/**
 * Visible ASCII without the characters that RFC 3986 excludes from paths and queries: no `\`, `#`, spaces or control characters.
 */
const TARGET = /^\/[\w.~!$&'()*+,;=:@%/[\]-]*(?:\?[\w.~!$&'()*+,;=:@%/?[\]|-]*)?$/;
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?;]|$)/i;

/** Parses a base URL; throws a TypeError, without userinfo in its message, unless it is plain http(s). */
export function parseBaseUrl(baseUrl: string): Address {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') {
    throw new TypeError('a base URL must be an absolute http:// or https:// URL');
  }
  if (url.username || url.password) throw new TypeError('a base URL must not contain a user name or password');
  if (url.search || url.hash || /[?#]/.test(baseUrl)) throw new TypeError('a base URL must not contain ? or #');
  // The URL parser repairs these silently, so two parsers may see different hosts or paths.
  if (/[\\\s]/.test(baseUrl) || DOT_SEGMENT.test(baseUrl)) {
    throw new TypeError('a base URL must not contain backslashes, blanks or dot segments');
  }
  return { origin: url.origin, host: url.host, basePath: url.pathname.replace(/\/+$/, '') };
}

/**
 * Returns the request target for a codec's path. It can't leave the base: the origin is never read from it. `//`, dot segments,
 * backslashes, fragments and unencoded characters are rejected as an error of the codec (TypeError).
 */
export function joinPath(address: Address, path: string): string {
  if (!TARGET.test(path) || path.startsWith('//') || DOT_SEGMENT.test(path)) {
    throw new TypeError('a request path must begin with one slash and be percent-encoded, without dot segments');
  }
  return address.basePath + path;
}
