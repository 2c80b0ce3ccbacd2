import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { CredentialKind, Principal } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { AuthRequest } from '../../contract/hooks.ts';
import type { Route } from '../../contract/plugin.ts';
import { kindsTaken } from '../../contract/route.ts';
import { type TokenRules, takeOwnToken } from '../calls/own-token.ts';
import { type FailedCredentials, UNLIMITED } from './failed-credentials.ts';
import { refuseLacking } from './operator-rights.ts';
import { RequestAborted } from './read-body.ts';

/** All `authenticate` hooks as one function; undefined if no plugin has one. */
export type Authenticate = (request: AuthRequest) => Principal | undefined | Promise<Principal | undefined>;

/** Parts of a request that an authenticator reads. */
type Asking = Pick<Koa.Context, 'req' | 'method' | 'path' | 'headers'> & {
  /** Receives the authenticated caller, even if the route then rejects it. */
  readonly state: {
    readonly ip: string;
    readonly places?: CredentialPlaces | undefined;
    principal?: Principal | undefined;
  };
};

/** Finds the caller of a request; throws, or rejects with, a 401 or 403 for callers without access to the route. */
type Authenticator = (ctx: Asking, body: { bytes(): Promise<Uint8Array> }) => Principal | Promise<Principal>;

/** Authentication of a gateway's callers. */
export interface Authentication extends Pick<TokenRules, 'takesToken'> {
  readonly authenticate: Authenticate | undefined;
  /** Throws or rejects for a user blocked by an operator, regardless of the credential. */
  readonly refuseBlocked?: (userId: string) => void | Promise<void>;
  /** Supported kinds of credentials; default: all. */
  readonly credentials?: ReadonlySet<CredentialKind>;
  /** Returns whether a text has the form of a credential of this gateway. Default: any text may be one. */
  readonly isCredential?: ((text: string) => boolean) | undefined;
  /** Returns whether a text is a token of a caller's own subscription with a provider. */
  readonly isSubscription?: ((text: string) => boolean) | undefined;
  /** Counts wrong credentials; default: unlimited. */
  readonly failures?: FailedCredentials;
}

/** Access rules of a route. */
interface Demand {
  readonly auth: Exclude<Route['auth'], 'none'>;
  readonly permission: Route['permission'];
  readonly role: Route['role'];
  readonly scope: Route['scope'];
  readonly kinds: readonly CredentialKind[];
  /** Required credential, for messages. */
  readonly wanted: string;
  readonly canSignIn: boolean;
}

/** Creates the authenticator of one route; undefined for a public route. */
export function createAuthenticator(
  authentication: Authentication,
  { auth, permission, role, scope }: Pick<Route, 'auth' | 'permission' | 'role' | 'scope'>,
  isOfFormat?: TokenRules['isOfFormat'],
): Authenticator | undefined {
  if (auth === 'none') return undefined;
  const { authenticate, refuseBlocked, credentials, failures = UNLIMITED } = authentication;
  const { isCredential, isSubscription, takesToken } = authentication;
  const kinds = kindsTaken({ auth, role });
  const canSignIn = kinds.includes('session') && credentials?.has('session') === true;
  const demand: Demand = { auth, permission, role, scope, kinds, wanted: describeWanted(auth), canSignIn };
  // No credential can succeed and only the operator can change that, so the caller is not asked for one.
  if (credentials && !kinds.some((kind) => credentials.has(kind)))
    return () => {
      throw new GatewayError(
        'feature_disabled',
        `This route needs ${demand.wanted}, but no plugin supports ${auth.includes('key') ? 'any' : 'tokens'}. The operator adds one under "auth" in the configuration.`,
      );
    };
  const admit = (
    principal: Principal | undefined,
    presented: PresentedCredential | undefined,
    state: Asking['state'],
  ): Principal | Promise<Principal> => {
    if (!principal) return failures.refuse(unknownCaller(demand, presented), presented && state.ip);
    state.principal = principal;
    const checking = refuseBlocked?.(principal.userId);
    return checking ? checking.then(() => holdTo(demand, principal)) : holdTo(demand, principal);
  };
  return ({ req, method, path, headers, state }, body) => {
    const rules = { places: state.places, isCredential, isSubscription, takesToken, isOfFormat };
    const presented = readCredential(req, rules);
    const address = state.ip;
    let found: ReturnType<Authenticate>;
    try {
      found = authenticate?.(new PresentedRequest(presented, { method, path, headers }, body, address, failures));
    } catch (error) {
      return failures.refuse(error, presented && address);
    }
    if (!(found instanceof Promise)) return admit(found, presented, state);
    return found.then(
      (principal) => admit(principal, presented, state),
      (error: unknown) => failures.refuse(error, presented && address),
    );
  };
}

/** A class, because a literal with a getter would get a new shape per request, which V8 does not optimize. */
class PresentedRequest implements AuthRequest {
  readonly credential: string;
  readonly bearer: boolean;
  readonly now = Date.now();
  readonly method: string;
  readonly path: string;
  readonly address: string;
  readonly rawBody: () => Promise<Uint8Array>;
  readonly beforeLookup: () => void;
  readonly #headers: IncomingHttpHeaders;
  #shown: AuthRequest['headers'] | undefined;

  constructor(
    presented: PresentedCredential | undefined,
    { method, path, headers }: Pick<Asking, 'method' | 'path' | 'headers'>,
    body: { bytes(): Promise<Uint8Array> },
    address: string,
    failures: FailedCredentials,
  ) {
    this.credential = presented?.credential ?? '';
    this.bearer = presented?.bearer ?? false;
    this.method = method;
    this.path = path;
    this.address = address;
    this.rawBody = () => body.bytes().catch(tellAborted);
    this.beforeLookup = () => failures.beforeLookup(address);
    this.#headers = headers;
    Object.freeze(this);
  }

  /** Copied for its readers: schemes that sign a request, and cookies. */
  get headers(): AuthRequest['headers'] {
    this.#shown ??= Object.freeze({ ...this.#headers });
    return this.#shown;
  }
}

/** Converts a disconnect of the caller to an ordinary error, so that plugins need not handle it separately. */
function tellAborted(error: unknown): never {
  if (!(error instanceof RequestAborted)) throw error;
  throw new GatewayError('request_timeout', 'The caller disconnected before the body was complete.', { cause: error });
}

function describeWanted(auth: Exclude<Route['auth'], 'none'>): string {
  if (!auth.includes('key')) return 'a token of the identity provider';
  return auth.includes('token') ? 'an API key or a token of the identity provider' : 'an API key';
}

function unknownCaller({ auth, wanted, canSignIn }: Demand, presented: PresentedCredential | undefined): GatewayError {
  if (presented)
    return new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `The credential is not from this gateway. This route needs ${wanted}.`,
    );
  return new GatewayError(
    'missing_api_key',
    `This route needs ${wanted}: send "Authorization: Bearer …"${auth.includes('key') ? ' or "x-api-key: …"' : ''}${canSignIn ? ', or sign in with a browser' : ''}.`,
  );
}

/** Checks a principal against the route: kind of credential, operator scope, token permission. */
function holdTo({ auth, kinds, permission, role, scope, wanted }: Demand, principal: Principal): Principal {
  const { credential } = principal;
  if (!kinds.includes(credential))
    throw new GatewayError(
      auth.includes('key') ? 'invalid_api_key' : 'invalid_token',
      `This route needs ${wanted}, but another kind of credential was sent.`,
    );
  // An operator's key is valid for operator routes only, unless it may also call models.
  if (role === 'admin' || (principal.scopes && credential === 'key')) {
    refuseLacking(principal, role === 'admin' ? scope : 'models:call', role === 'admin');
    if (role === 'admin') return principal;
  }
  if (credential === 'token' && permission !== undefined && !principal.permissions?.includes(permission))
    throw new GatewayError('permission_denied', `The token lacks the permission "${permission}".`);
  return principal;
}

interface PresentedCredential {
  readonly credential: string;
  /** True if it came as `Authorization: Bearer`. */
  readonly bearer: boolean;
}

/** Credential locations in addition to `authorization`. */
export interface CredentialPlaces {
  readonly headers: readonly string[];
  readonly query: readonly string[];
}

/** Rules for the locations of credentials, and for the choice among several. */
interface CredentialRules extends Pick<Authentication, 'isCredential' | 'isSubscription'>, TokenRules {
  /** Locations below the request's path; default: `x-api-key`. */
  readonly places?: CredentialPlaces | undefined;
}

/** Maximum length of a credential in characters; a JWT with many claims has a few thousand. */
const MAX_LENGTH = 8192;

const API_KEY = 'x-api-key';
const HIDDEN: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', API_KEY]);
const PLACES: CredentialPlaces = Object.freeze({ headers: Object.freeze([API_KEY]), query: [] });

/**
 * Returns the credential of a request. Repetitions of the same one are accepted. Among different ones, only those in the form of
 * this gateway's credentials count, because clients send placeholders in addition to the real one. Two of that form, or a repeated
 * header, are rejected, so that checks and limits see the same caller.
 */
export function readCredential(
  request: IncomingMessage,
  { places = PLACES, isCredential = () => true, isSubscription, takesToken, isOfFormat }: CredentialRules = {},
): PresentedCredential | undefined {
  const { headers, rawHeaders } = request;
  const { authorization } = headers;
  const inUrl = urlCredentials.get(request) ?? [];
  const sent: string[] = [];
  for (const name of places.headers) if (headers[name] !== undefined) sent.push(String(headers[name]).trim());
  if (authorization === undefined && sent.length === 0 && inUrl.length === 0) return undefined;
  // Node keeps the first of two `authorization` headers and joins others. Neither rule may select the caller.
  let surplus = -sent.length - (authorization === undefined ? 0 : 1);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (isHeader(name, 'authorization') || places.headers.some((place) => isHeader(name, place))) surplus += 1;
  }
  if (surplus > 0) throw ambiguous('The request has a credential header twice. Send one.');
  let bearer: string | undefined;
  if (authorization?.trim()) {
    if (!/^bearer(\s|$)/i.test(authorization))
      throw new GatewayError('invalid_api_key', 'The "authorization" header must be "Bearer <key>".');
    bearer = authorization.slice(6).trim() || undefined;
  }
  for (const { name, value } of inUrl) if (places.query.includes(name)) sent.push(value.trim());
  const presented = bearer === undefined ? [] : [bearer];
  for (const text of sent) if (text !== '' && !presented.includes(text)) presented.push(text);
  for (const { name, value } of inUrl)
    if (!places.query.includes(name) && (presented.length === 0 || isCredential(value))) throw inWrongPlace(name);
  const credential = presented.length > 1 ? chooseCredential(presented, isCredential) : presented[0];
  if (!credential) return undefined;
  if (presented.length > 1 && isSubscription && isCredential(credential)) {
    const tokens = presented.filter(isSubscription);
    takeOwnToken(request, tokens, { takesToken, isOfFormat }, withoutCredentials(headers, places.headers));
  }
  if (credential.length > MAX_LENGTH)
    throw new GatewayError('invalid_api_key', `The credential is longer than ${MAX_LENGTH} characters.`);
  return { credential, bearer: credential === bearer };
}

/** Returns whether a header's name, as sent, is `known`, in lower case. */
function isHeader(sent: string, known: string): boolean {
  return sent.length === known.length && sent.toLowerCase() === known;
}

/** Returns the request's headers for dialects and vendors. */
export function withoutCredentials(headers: IncomingHttpHeaders, more: readonly string[] = []): IncomingHttpHeaders {
  const shown: IncomingHttpHeaders = {};
  for (const name of Object.keys(headers)) if (!HIDDEN.has(name) && !more.includes(name)) shown[name] = headers[name];
  return shown;
}

/** Selects the credential in this gateway's form. */
function chooseCredential(presented: readonly string[], isCredential: (text: string) => boolean): string | undefined {
  const own = presented.filter((text) => text.length <= MAX_LENGTH && isCredential(text));
  if (own.length > 1)
    throw ambiguous(
      'The request has different credentials in "authorization", "x-api-key" or another place. Send one of them.',
    );
  return own[0] ?? presented[0];
}

function inWrongPlace(name: string): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    `Credentials in the URL ("${name}") are not accepted, since URLs are logged. Send "Authorization: Bearer …" or "x-api-key: …".`,
  );
}

function ambiguous(message: string): GatewayError {
  return new GatewayError('ambiguous_credentials', message);
}

/** Credential from a URL's query. */
export interface UrlCredential {
  readonly name: string;
  readonly value: string;
}

/** Credentials removed from the URLs of running requests. Only readers of this map can see them. */
const urlCredentials = new WeakMap<IncomingMessage, readonly UrlCredential[]>();

/** Returns the credentials that were removed from a request's URL. */
export function urlCredentialsOf(request: IncomingMessage): readonly UrlCredential[] {
  return urlCredentials.get(request) ?? [];
}

/**
 * Removes credentials from a request's URL and from its referrer before any other code runs. Logs, traces, metrics and messages
 * therefore contain none.
 */
export function cutUrlCredentials(
  ctx: Koa.Context,
  names: ReadonlySet<string>,
  isCredential: (credential: UrlCredential) => boolean,
): void {
  const { req } = ctx;
  if (req.url?.includes('?')) {
    const { url, found } = cut(req.url, (each) => names.has(each.name) && isCredential(each));
    if (found.length > 0) {
      urlCredentials.set(req, found);
      req.url = url;
      ctx.originalUrl = url;
      ctx.request.originalUrl = url;
    }
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

const PROTOCOLS = 'sec-websocket-protocol';

/** Moves a key from the subprotocols of an upgrade, where browsers put it, to `authorization`. */
export function takeProtocolKey(request: IncomingMessage, prefix: string): void {
  const { headers } = request;
  const all = (headers[PROTOCOLS] ?? '').split(',').map((each) => each.trim());
  const [key, ...more] = all.filter((each) => each.startsWith(prefix)).map((each) => each.slice(prefix.length));
  if (key === undefined) return;
  replaceHeader(request, PROTOCOLS, all.filter((each) => !each.startsWith(prefix)).join(', '));
  if (headers[PROTOCOLS] === '') delete headers[PROTOCOLS];
  const bearer = `Bearer ${key}`;
  if (more.length > 0 || (headers.authorization ?? bearer) !== bearer)
    throw ambiguous('The upgrade has different credentials, in its subprotocols or "authorization". Send one of them.');
  headers.authorization = bearer;
}

function replaceHeader(request: IncomingMessage, name: string, value: string): void {
  request.headers[name] = value;
  const { rawHeaders } = request;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() === name) rawHeaders[at + 1] = value;
}

/** Rules of dialects for a path, with or without a route. */
interface PathRules {
  /** Dialect of the path; errors use its format. */
  readonly dialect: DialectDefinition | undefined;
  /** Dialects whose clients request the model list here. The request's headers select one of them. */
  readonly lists: readonly DialectDefinition[];
  readonly places: CredentialPlaces;
  /** Target path of an alias, and the model that it names. The request's header selects it if it is sure. */
  readonly meant?: { readonly path: string; readonly model: string | undefined; readonly isSure: boolean };
}

/** Path rules of all dialects. */
export interface DialectPrefixes {
  rulesAt(path: string, headers?: IncomingHttpHeaders): PathRules;
  /** Returns the dialect of a client, by its headers, for errors at paths without a route. */
  dialectOfClient(headers: IncomingHttpHeaders): DialectDefinition | undefined;
  /** Names of query parameters that contain a credential below some path. */
  readonly queryNames: ReadonlySet<string>;
}

/** Path of the model list in every format, selected by header. */
export const MODELS_PATH = '/v1/models';
const MODELS = `${MODELS_PATH}/`;

/** Name that SDKs use for credentials, even if no dialect here accepts it. */
const KEY = 'key';

const NO_RULES: PathRules = Object.freeze({ dialect: undefined, lists: [], places: PLACES });

/** Limits on the number and length of cached paths: callers can invent paths, and memory must not grow with them. */
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 200;

/** Compiles the path rules of dialects; the longest prefix wins. */
export function createDialectPrefixes(dialects: readonly DialectDefinition[]): DialectPrefixes {
  const all = dialects
    .flatMap((dialect) => (dialect.prefixes ?? []).map((prefix) => ({ prefix: `${prefix.toLowerCase()}/`, dialect })))
    .toSorted((a, b) => b.prefix.length - a.prefix.length);
  const rulesOf = (prefix: string, dialect: DialectDefinition | undefined) => {
    // Clients of any format use these paths: newer ones of Google's use `/v1/models/…:generateContent`.
    const lists = prefix.startsWith(MODELS) ? dialects : [];
    const own = lists.length > 0 ? lists : [dialect];
    const headers = [...new Set([API_KEY, ...own.flatMap((each) => each?.credentials?.headers ?? [])])];
    const query = lists.length > 0 ? [] : (dialect?.credentials?.query ?? []);
    return { prefix, dialect, lists, places: { headers, query } };
  };
  const ofModels = rulesOf(MODELS, all.find(({ prefix }) => MODELS.startsWith(prefix))?.dialect);
  const rows = [ofModels, ...all.map(({ prefix, dialect }) => rulesOf(prefix, dialect))].toSorted(
    (a, b) => b.prefix.length - a.prefix.length,
  );
  const aliases = dialects.flatMap((dialect) => (dialect.pathAliases ?? []).map((alias) => ({ dialect, alias })));
  /** Rules of paths without an alias, cached because callers use few paths. */
  let remembered = new Map<string, PathRules>();
  return {
    rulesAt(path, sent = {}) {
      const known = remembered.get(path);
      if (known) return known;
      let mayBeAlias = false;
      for (const { dialect, alias } of aliases) {
        const { pattern, path: start, credentials, header } = alias;
        const found = pattern.exec(path);
        mayBeAlias ||= found !== null;
        const isSure = header !== undefined;
        if (!found || (isSure && sent[header] === undefined)) continue;
        const meant = { path: start + path.slice(found[0].length), model: decoded(found.groups?.['model']), isSure };
        const { places, ...rules } = this.rulesAt(meant.path);
        const headers = credentials ? [...new Set([...places.headers, ...credentials])] : places.headers;
        const own = isSure ? { ...rules, dialect } : rules;
        return { ...own, places: { ...places, headers }, meant };
      }
      // Misspelled paths also get the 404 in the dialect's format, and their credentials are removed from the URL.
      const lower = `${path.toLowerCase()}/`;
      const rules = rows.find(({ prefix }) => lower.startsWith(prefix)) ?? NO_RULES;
      if (!mayBeAlias && path.length <= MAX_REMEMBERED_LENGTH) {
        if (remembered.size >= MAX_REMEMBERED) remembered = new Map();
        remembered.set(path, rules);
      }
      return rules;
    },
    dialectOfClient: (headers) => dialectOfList(dialects, headers),
    queryNames: new Set([KEY, ...dialects.flatMap(({ credentials }) => credentials?.query ?? [])]),
  };
}

/** Decodes a part of a path; returns it unchanged if it is not valid percent-encoding. */
function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the dialect whose model list a request selects, by the header of its clients. */
export function dialectOfList(
  dialects: readonly DialectDefinition[],
  headers: IncomingHttpHeaders,
): DialectDefinition | undefined {
  return dialects.find(({ models }) => models?.header !== undefined && headers[models.header] !== undefined);
}

/** Coding clients send the session in headers of their own, such as `x-<client>-session-id`. */
const SESSION = /^x-(?:[a-z0-9]+-)*session-id$/;

/** Longer values are ignored. */
const MAX_SESSION = 128;

/** Returns the session name from the caller's headers. It only affects the choice of a target, never limits or money. */
export function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  let session = headers['x-session-id'];
  if (session === undefined)
    for (const name of Object.keys(headers))
      if (SESSION.test(name)) {
        session = headers[name];
        break;
      }
  return typeof session === 'string' && session !== '' && session.length <= MAX_SESSION ? session : undefined;
}
