import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { CredentialKind, Principal } from '../contract/call.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import type { AuthRequest } from '../contract/hooks.ts';
import type { Route } from '../contract/plugin.ts';
import { MAX_TAGS, refuseTag, type TagRules, tagName } from '../contract/units.ts';
import { RequestAborted } from './read-body.ts';
import type { RequestState } from './request-state.ts';

/** The `authenticate` hooks as one function; undefined where no plugin has one. */
export type Authenticate = (request: AuthRequest) => Principal | undefined | Promise<Principal | undefined>;

/** The same without users whom an operator blocked, however they prove who they are. */
export function withoutBlocked(
  authenticate: Authenticate | undefined,
  refuseBlocked: (userId: string) => void | Promise<void>,
): Authenticate | undefined {
  if (!authenticate) return undefined;
  const admit = (principal: Principal | undefined): ReturnType<Authenticate> => {
    const looking = principal && refuseBlocked(principal.userId);
    return looking ? looking.then(() => principal) : principal;
  };
  return (request) => {
    const principal = authenticate(request);
    return principal instanceof Promise ? principal.then(admit) : admit(principal);
  };
}

/** What an authenticator reads of a request. */
export type Asking = Pick<Koa.Context, 'req' | 'method' | 'path' | 'headers'> & {
  readonly state: Pick<RequestState, 'ip'>;
};

/** Finds out who calls; throws, or rejects with, a 401 or 403 for a caller that may not use the route. */
type Authenticator = (ctx: Asking, rawBody: () => Promise<Uint8Array>) => Principal | Promise<Principal>;

/** Finds the credential of a request; throws for one that may not be where it is. */
export type CredentialReader = (ctx: Pick<Asking, 'req' | 'path'>) => PresentedCredential | undefined;

/** The check of who calls, for one route; undefined when the route is open to all. */
export function createAuthenticator(
  authenticate: Authenticate | undefined,
  route: Pick<Route, 'auth' | 'permission' | 'role'>,
  readPresented: CredentialReader,
  credentials?: ReadonlySet<CredentialKind>,
): Authenticator | undefined {
  const { auth } = route;
  if (auth === 'none') return undefined;
  const kinds = kindsTaken({ auth, role: route.role });
  const wanted = describeWanted(auth);
  // No credential would do: that is the operator's to change, so the caller is not asked for one.
  if (credentials && !kinds.some((kind) => credentials.has(kind)))
    return () => {
      throw new GatewayError(
        'feature_disabled',
        `This route needs ${wanted}, and no plugin here knows ${auth.includes('key') ? 'any' : 'tokens'}. Its operator adds one under "auth" in the configuration.`,
      );
    };
  const canSignIn = kinds.includes('session') && credentials?.has('session');
  const check = (principal: Principal | undefined, presented: PresentedCredential | undefined): Principal => {
    if (!principal && !presented)
      throw new GatewayError(
        'missing_api_key',
        `This route needs ${wanted}: send "Authorization: Bearer …"${auth.includes('key') ? ' or "x-api-key: …"' : ''}${canSignIn ? ', or sign in with a browser' : ''}.`,
      );
    return admitPrincipal(principal, route, wanted);
  };
  return (ctx, rawBody) => {
    const presented = readPresented(ctx);
    const { method, path, headers } = ctx;
    let shown: AuthRequest['headers'] | undefined;
    const principal = authenticate?.(
      Object.freeze({
        credential: presented?.credential ?? '',
        bearer: presented?.bearer ?? false,
        now: Date.now(),
        method,
        path,
        // Copied for those who read them: schemes that sign a request, and cookies.
        get headers() {
          shown ??= Object.freeze({ ...headers });
          return shown;
        },
        rawBody: () => rawBody().catch(tellAborted),
        address: ctx.state.ip,
      }),
    );
    return principal instanceof Promise
      ? principal.then((found) => check(found, presented))
      : check(principal, presented);
  };
}

/** To a plugin, a caller who hung up is an error like any other that it need not know. */
function tellAborted(error: unknown): never {
  if (!(error instanceof RequestAborted)) throw error;
  throw new GatewayError('request_timeout', 'The caller hung up before the body was complete.', { cause: error });
}

interface Taken {
  readonly auth: Route['auth'];
  readonly role?: Route['role'] | undefined;
}

/** The kinds of credentials that a route takes. A session only goes where operators are: no model call is paid by a cookie. */
export function kindsTaken({ auth, role }: Taken): readonly CredentialKind[] {
  if (auth === 'none') return [];
  return role === 'admin' ? [...auth, 'session'] : auth;
}

function describeWanted(auth: Exclude<Route['auth'], 'none'>): string {
  if (!auth.includes('key')) return 'a token of the identity provider';
  return auth.includes('token') ? 'an API key or a token of the identity provider' : 'an API key';
}

/** Holds a principal to what the route takes: the kind of credential, and for a token the permission. */
function admitPrincipal(
  principal: Principal | undefined,
  { auth, permission, role }: Pick<Route, 'auth' | 'permission' | 'role'>,
  wanted: string,
): Principal {
  if (!principal)
    throw new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `The credential is not one of this gateway's. This route needs ${wanted}.`,
    );
  const { credential } = principal;
  if (!kindsTaken({ auth, role }).includes(credential))
    throw new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `This route needs ${wanted}, and the other kind was sent.`,
    );
  if (role === 'admin') {
    if (principal.isAdmin === true) return principal;
    throw new GatewayError(
      'permission_denied',
      'This route is for operators: it takes an admin key ("tollgate keys create --admin") or a token with the admin permission.',
    );
  }
  if (credential === 'token' && permission !== undefined && !principal.permissions?.includes(permission))
    throw new GatewayError('permission_denied', `The token lacks the permission "${permission}".`);
  return principal;
}

interface PresentedCredential {
  readonly credential: string;
  /** Whether it came as `Authorization: Bearer`. */
  readonly bearer: boolean;
}

/** What decides where a credential may stand, and which of several is one. */
interface CredentialRules {
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

/** Where a credential may be put beside `authorization` and `x-api-key`. */
interface CredentialPlaces {
  readonly headers: readonly string[];
  readonly query: readonly string[];
}

/** What dialects say of paths, whether a route is there or not. */
export interface DialectPrefixes {
  /** The format that a request's errors are written in; OpenAI's when undefined. */
  dialectAt(path: string, headers: IncomingHttpHeaders): DialectDefinition | undefined;
  /** The places of credentials below a path, beside those of all paths. */
  placesAt(path: string): CredentialPlaces;
  /** Names of query parameters that hold a credential somewhere. */
  readonly queryNames: ReadonlySet<string>;
}

/** The list of models that is there in every format, by header. */
export const MODELS_PATH = '/v1/models';

/** A name that SDKs put credentials under, whether or not a dialect here takes it. */
const KEY = 'key';

const NO_CREDENTIAL_PLACES: CredentialPlaces = Object.freeze({ headers: [], query: [] });

/** Lays out what dialects say of paths; the longest prefix decides. */
export function createDialectPrefixes(dialects: readonly DialectDefinition[]): DialectPrefixes {
  const rows = dialects
    .flatMap((dialect) => (dialect.prefixes ?? []).map((prefix) => ({ prefix: prefix.toLowerCase(), dialect })))
    .toSorted((a, b) => b.prefix.length - a.prefix.length);
  // Routes match whatever the case is, so prefixes do.
  const find = (path: string): DialectDefinition | undefined => {
    if (rows.length === 0) return undefined;
    const lower = path.toLowerCase();
    return rows.find(({ prefix }) => isBelow(lower, prefix))?.dialect;
  };
  return {
    dialectAt: (path, headers) =>
      (isBelow(path.toLowerCase(), MODELS_PATH) ? dialectOfList(dialects, headers) : undefined) ?? find(path),
    placesAt(path) {
      // Clients of any format call these paths: newer ones of Google's by `/v1/models/…:generateContent`.
      if (isBelow(path.toLowerCase(), MODELS_PATH))
        return { headers: dialects.flatMap(({ credentials }) => credentials?.headers ?? []), query: [] };
      const credentials = find(path)?.credentials;
      return credentials ? { ...NO_CREDENTIAL_PLACES, ...credentials } : NO_CREDENTIAL_PLACES;
    },
    queryNames: new Set([KEY, ...dialects.flatMap(({ credentials }) => credentials?.query ?? [])]),
  };
}

/** The dialect whose list of models a request wants, by the header that its clients send. */
export function dialectOfList(
  dialects: readonly DialectDefinition[],
  headers: IncomingHttpHeaders,
): DialectDefinition | undefined {
  return dialects.find(({ models }) => models?.header !== undefined && headers[models.header] !== undefined);
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

/** The header by which a request says what its calls are booked under: `team=search`, more with commas between or once more. */
const HEADER = 'x-tollgate-tag';

/** The caller with the tags that the request names behind its own; what it calls on the way carries them all. */
export function withRequestTags(
  principal: Principal,
  headers: IncomingHttpHeaders,
  rules: TagRules,
  { auth, role }: Pick<Route, 'auth' | 'role'>,
): Principal {
  const sent = headers[HEADER];
  // Routes that call no model book nothing.
  if (sent === undefined || role === 'admin' || !auth.includes('key')) return principal;
  const tags = readTags(String(sent), principal.tags ?? [], rules);
  return tags.length === 0 ? principal : Object.freeze({ ...principal, tags });
}

/** The tags of a header behind those of the key or token; throws a 400 for what may not be there. */
export function readTags(header: string, own: readonly string[], rules: TagRules): readonly string[] {
  const sent = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const tags = [...own];
  for (const tag of sent) {
    if (tags.includes(tag)) continue;
    const reason = refuseTag(tag, rules);
    if (reason !== undefined) throw wrongTag(reason);
    const name = tagName(tag);
    if (own.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" belongs to this key or token and cannot be chosen by a request; leave it out.`);
    if (tags.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" has two values; a call has one value of each tag.`);
    if (tags.length >= MAX_TAGS)
      throw wrongTag(`A call carries at most ${MAX_TAGS} tags, those of its key or token included.`);
    tags.push(tag);
  }
  return Object.freeze(tags);
}

function wrongTag(message: string): GatewayError {
  return new GatewayError('invalid_request', `${HEADER}: ${message}`, { param: HEADER });
}

/** Coding clients each have a header of their own for the session, such as `x-<client>-session-id`. */
const SESSION = /^x-(?:[a-z0-9]+-)*session-id$/;

/** A longer one is no name of a session. */
const MAX_SESSION = 128;

/** What a caller named its session, in a header: a word for the choice of a target, never for limits or money. */
export function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  const name = 'x-session-id' in headers ? 'x-session-id' : Object.keys(headers).find((each) => SESSION.test(each));
  const session = name === undefined ? undefined : headers[name];
  return typeof session === 'string' && session !== '' && session.length <= MAX_SESSION ? session : undefined;
}
