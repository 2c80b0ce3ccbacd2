import type Koa from 'koa';

/** What a browser's script may read of a response, beside the body. */
const EXPOSED = [
  'x-request-id',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'server-timing',
  ...['provider', 'model', 'attempts', 'cost-usd', 'dropped', 'lane', 'skipped', 'estimated'].map(
    (name) => `x-tollgate-${name}`,
  ),
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
].join(', ');

const METHODS = 'GET, POST, DELETE, OPTIONS';

/** How long a browser remembers a preflight, in seconds. */
const MAX_AGE_S = '600';

/**
 * Cross-origin calls from web pages, for the origins of `server.cors.origins`. Requested headers are reflected, because
 * each SDK release brings new ones; errors carry the same headers, or a page could not read them. Credentials (cookies)
 * are never allowed: a key comes in a header.
 */
export function createCors(origins: readonly string[]): Koa.Middleware | undefined {
  if (origins.length === 0) return undefined;
  const isAny = origins.includes('*');
  const allowed = new Set(origins);
  return async (ctx, next) => {
    ctx.vary('origin');
    const origin = ctx.get('origin');
    if (origin === '' || !(isAny || allowed.has(origin))) return next();
    ctx.set('access-control-allow-origin', isAny ? '*' : origin);
    if (ctx.method !== 'OPTIONS' || ctx.get('access-control-request-method') === '') {
      ctx.set('access-control-expose-headers', EXPOSED);
      return next();
    }
    ctx.vary('access-control-request-headers');
    ctx.set('access-control-allow-methods', METHODS);
    const requested = ctx.get('access-control-request-headers');
    if (requested !== '') ctx.set('access-control-allow-headers', requested);
    ctx.set('access-control-max-age', MAX_AGE_S);
    ctx.status = 204;
  };
}
