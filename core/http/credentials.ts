import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import { GatewayError } from '../contract/errors.ts';
import type { CredentialPlaces } from './dialect-prefixes.ts';

export interface PresentedCredential {
  readonly credential: string;
  /** Whether it came as `Authorization: Bearer`. */
  readonly bearer: boolean;
}

/** What decides where a credential may stand, and which of several is one. */
export interface CredentialRules {
  /** The places below the request's path, beside `authorization` and `x-api-key`. */
  readonly places?: CredentialPlaces;
  /** Whether a text has the shape of a credential of this gateway; any may be one unless set. */
  readonly isCredential?: (text: string) => boolean;
}

/** The longest credential that is looked at, in characters; a JWT with many claims has a few thousand. */
const MAX_LENGTH = 8192;

const HEADERS = Object.freeze(['x-api-key']);
const HIDDEN: ReadonlySet<string> = new Set(['authorization', 'cookie', ...HEADERS]);
const NO_PLACES: CredentialPlaces = Object.freeze({ headers: [], query: [] });

/**
 * The credential of a request. The same one twice is fine; of different ones those count that have the shape of a credential of
 * this gateway, since clients send a placeholder beside the right one. Two of that shape, or a header sent twice, are refused,
 * because checks and limits must not see different callers.
 */
export function readCredential(
  request: IncomingMessage,
  { places = NO_PLACES, isCredential = () => true }: CredentialRules = {},
): PresentedCredential | undefined {
  const { authorization } = request.headers;
  const names = places.headers.length > 0 ? [...HEADERS, ...places.headers] : HEADERS;
  const sent = names.filter((name) => request.headers[name] !== undefined);
  const inUrl = urlCredentialsOf(request);
  if (authorization === undefined && sent.length === 0 && inUrl.length === 0) return undefined;
  assertOnce(request.rawHeaders, names);
  const bearer = authorization?.trim() ? readBearer(authorization) : undefined;
  const others = [
    ...sent.map((name) => String(request.headers[name]).trim()),
    ...inUrl.filter(({ name }) => places.query.includes(name)).map(({ value }) => value.trim()),
  ];
  const presented = [...new Set([bearer ?? '', ...others])].filter(Boolean);
  refuseUrl(
    inUrl.filter(({ name, value }) => !places.query.includes(name) && (presented.length === 0 || isCredential(value))),
  );
  const credential = presented.length > 1 ? chooseCredential(presented, isCredential) : presented[0];
  if (!credential) return undefined;
  if (credential.length > MAX_LENGTH)
    throw new GatewayError('invalid_api_key', `The credential is longer than ${MAX_LENGTH} characters.`);
  return { credential, bearer: credential === bearer };
}

/** The request's headers as dialects and vendors may see them. */
export function withoutCredentials(headers: IncomingHttpHeaders, more: readonly string[] = []): IncomingHttpHeaders {
  const shown: IncomingHttpHeaders = {};
  for (const name of Object.keys(headers)) if (!HIDDEN.has(name) && !more.includes(name)) shown[name] = headers[name];
  return shown;
}

/** Of several credentials the one of our shape. */
function chooseCredential(presented: readonly string[], isCredential: (text: string) => boolean): string | undefined {
  const own = presented.filter((text) => text.length <= MAX_LENGTH && isCredential(text));
  if (own.length > 1)
    throw ambiguous(
      'The request has different credentials in "authorization", "x-api-key" or another place. Send one of them.',
    );
  return own[0] ?? presented[0];
}

function refuseUrl([found]: readonly { readonly name: string }[]): void {
  if (!found) return;
  throw new GatewayError(
    'invalid_api_key',
    `A credential in the URL, as "${found.name}", is not taken here, since URLs end up in logs: send "Authorization: Bearer …" or "x-api-key: …".`,
  );
}

function readBearer(header: string): string | undefined {
  if (!/^bearer(\s|$)/i.test(header))
    throw new GatewayError('invalid_api_key', 'The "authorization" header must be "Bearer <key>".');
  return header.slice(6).trim() || undefined;
}

/** Node keeps the first of two `authorization` headers and joins others: neither may decide who calls. */
function assertOnce(rawHeaders: readonly string[], names: readonly string[]): void {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    if (name !== 'authorization' && !names.includes(name)) continue;
    if (seen.has(name)) throw ambiguous('The request has a credential header twice. Send one.');
    seen.add(name);
  }
}

function ambiguous(message: string): GatewayError {
  return new GatewayError('ambiguous_credentials', message);
}

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
