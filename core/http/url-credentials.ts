import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';

/** A credential that stood in a URL's query. */
export interface UrlCredential {
  readonly name: string;
  readonly value: string;
}

/** What was cut out of the URLs of running requests: where nobody sees it who does not ask for it here. */
const CUT = new WeakMap<IncomingMessage, readonly UrlCredential[]>();

/** The credentials that stood in a request's URL. */
export function urlCredentialsOf(request: IncomingMessage): readonly UrlCredential[] {
  return CUT.get(request) ?? [];
}

/**
 * Takes credentials out of a request's URL, and out of the one it says it comes from, before anything sees them: what is
 * logged, traced, counted or told has none.
 */
export function cutUrlCredentials(
  ctx: Koa.Context,
  names: ReadonlySet<string>,
  isCredential: (credential: UrlCredential) => boolean,
): void {
  const { req } = ctx;
  const { url, found } = cut(req.url ?? '', (each) => names.has(each.name) && isCredential(each));
  if (found.length > 0) {
    CUT.set(req, found);
    req.url = url;
    ctx.originalUrl = url;
    ctx.request.originalUrl = url;
  }
  for (const header of REFERERS) {
    const from = req.headers[header];
    if (typeof from !== 'string' || !from.includes('?')) continue;
    const clean = cut(from, ({ name }) => names.has(name));
    if (clean.found.length > 0) replaceHeader(req, header, clean.url);
  }
}

const REFERERS = Object.freeze(['referer', 'referrer']);

function cut(
  url: string,
  isWanted: (credential: UrlCredential) => boolean,
): { readonly url: string; readonly found: readonly UrlCredential[] } {
  const start = url.indexOf('?');
  if (start < 0) return { url, found: [] };
  const end = url.indexOf('#', start);
  const query = url.slice(start + 1, end < 0 ? undefined : end);
  const found: UrlCredential[] = [];
  const kept = query.split('&').filter((pair) => {
    const [[name, value] = ['', '']] = new URLSearchParams(pair);
    const isFound = isWanted({ name, value });
    if (isFound) found.push({ name, value });
    return !isFound;
  });
  if (found.length === 0) return { url, found };
  const rest = kept.length > 0 ? `?${kept.join('&')}` : '';
  return { url: `${url.slice(0, start)}${rest}${end < 0 ? '' : url.slice(end)}`, found };
}

function replaceHeader(request: IncomingMessage, name: string, value: string): void {
  request.headers[name] = value;
  const { rawHeaders } = request;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() === name) rawHeaders[at + 1] = value;
}
