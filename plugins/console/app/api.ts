import { signal } from '@preact/signals';

/** Operator routes, as called by the page; the browser adds the session's cookie. */
const BASE = '/api/core/admin';
/** Prefix of the gateway's paths, taken from the page's own. */
const BASE_PATH = location.pathname.replace(/\/console\/?$/, '');
/** URL of the gateway for clients. */
export const GATEWAY_URL = location.origin + BASE_PATH;

/** Browser path of a gateway path. */
export function hrefOf(path: string): string {
  return BASE_PATH + path;
}

/** Error response of the gateway. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Session of the signed-in person. */
export interface Session {
  readonly user: string;
  /** Key that the session was created with. */
  readonly key?: string | undefined;
  readonly version: string;
  /** Scopes of the person; the gateway checks them again. */
  readonly scopes: readonly string[];
  /** Configured features that have a page. */
  readonly features: readonly string[];
  /** Undefined for the session of an OpenID provider. */
  readonly endsAt?: string | undefined;
}

/** Undefined until known, null without a session. */
export const session = signal<Session | null | undefined>(undefined);
/** True if the signed-in person may do something, such as `keys:write`; the pages hide everything else. */
export function may(scope: string): boolean {
  return session.value?.scopes.includes(scope) === true;
}
/** Name and color of the installation, if the configuration sets them. */
export const installation = signal<{ readonly name: string | null; readonly color: string | null }>({
  name: null,
  color: null,
});
/** True if the session ended while pages are open: they stay with typed text until the person signs in again. */
export const isLost = signal(false);
/** Minutes by which this computer's clock is ahead of the gateway’s, rounded, by the last response. */
export const minutesAhead = signal(0);
/** Reason why the person has to sign in, if any. */
export const signInNote = signal('');

export interface Page<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next?: string;
}

/**
 * Reads a number of rows from a list whose pages may be short or empty although more follow; reads several pages if
 * needed.
 */
export async function getSome<T>(path: string, query: Query, limit: number): Promise<Page<T>> {
  return getPages<T>(path, query, limit, 20);
}

/** Maximum rows of a page of the API. */
const MOST_OF_PAGE = 1000;

/** Reads up to `limit` rows, in at most `pages` requests. */
export async function getPages<T>(path: string, query: Query, limit: number, pages = 1000): Promise<Page<T>> {
  const data: T[] = [];
  for (let { after } = query, left = pages; ; left -= 1) {
    const page = await get<Page<T>>(path, { ...query, limit: Math.min(limit - data.length, MOST_OF_PAGE), after });
    data.push(...page.data);
    if (page.next === undefined || data.length >= limit || left <= 1) return { ...page, data };
    after = page.next;
  }
}

export interface Versioned<T> {
  readonly value: T;
  readonly etag: string;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** Path below the operator routes, with the query parameters that are set. */
export function pathOf(path: string, query: Query = {}): string {
  const words = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return `${BASE}${path}${words.length > 0 ? `?${new URLSearchParams(words)}` : ''}`;
}

async function send(
  method: string,
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(hrefOf(url), {
      method,
      credentials: 'same-origin',
      ...(signal && { signal }),
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'unreachable', 'The gateway does not respond. Is it running?');
  }
  const at = Date.parse(response.headers.get('date') ?? '');
  if (!Number.isNaN(at)) minutesAhead.value = Math.round((Date.now() - at) / 60_000);
  if (response.ok) return response;
  const error = await readError(response);
  if (error.status === 401 && session.value) isLost.value = true;
  throw error;
}

/** Reads the gateway's error from a response. */
async function readError(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = body && typeof body === 'object' && 'error' in body ? body.error : undefined;
  const field = (name: 'code' | 'message', otherwise: string): string => {
    const value =
      error && typeof error === 'object' && name in error ? (error as Record<string, unknown>)[name] : undefined;
    return typeof value === 'string' ? value : otherwise;
  };
  return new ApiError(
    response.status,
    field('code', 'unknown'),
    field('message', `The gateway answered ${response.status}.`),
  );
}

export async function get<T>(path: string, query?: Query): Promise<T> {
  return (await send('GET', pathOf(path, query))).json() as Promise<T>;
}

/** Reads an object with its version, which a change must name. */
export async function getVersion<T>(path: string): Promise<Versioned<T>> {
  const response = await send('GET', pathOf(path));
  return { value: (await response.json()) as T, etag: response.headers.get('etag') ?? '' };
}

/** Version of an object that does not exist yet: a change with it creates the object, and replaces none. */
export const NEW = '*';

/** Changes an object; with `etag` only if it was not changed meanwhile. */
export async function change<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  etag?: string,
): Promise<T> {
  const condition = etag === NEW ? { 'if-none-match': NEW } : etag ? { 'if-match': etag } : {};
  const response = await send(method, pathOf(path), body, condition);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Calls a model as the signed-in person; the response is an event stream or audio. */
export function call(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
  return send('POST', pathOf(path), body, { accept: '*/*' }, signal);
}

/** Events of a response as they arrive: the name, if any, and the parsed data. */
export async function* readEvents(
  response: Response,
): AsyncGenerator<{ readonly name: string; readonly data: unknown }> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    if (done) return;
    const frames = (rest + value).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const [, data] = /^data: (.*)$/m.exec(frame) ?? [];
      if (data !== undefined) yield { name: /^event: (.*)$/m.exec(frame)?.[1] ?? '', data: JSON.parse(data) };
    }
  }
}

/** The part of the API's description that pages read. */
export interface Description {
  readonly info: { readonly version: string };
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> } }
        >
      >
    >
  >;
  readonly components?: { readonly schemas?: Readonly<Record<string, object>> };
}

let description: Promise<Description> | undefined;

/** Reads the OpenAPI document of this gateway, once. */
export function readDescription(): Promise<Description> {
  description ??= send('GET', '/openapi.json').then((response) => response.json() as Promise<Description>);
  // Failures are not cached.
  description.catch(() => {
    description = undefined;
  });
  return description;
}

/** True if this gateway has an operator route, by its OpenAPI document: calling a missing one would be an error. */
export async function hasRoute(path: string): Promise<boolean> {
  return pathOf(path) in (await readDescription()).paths;
}

/** True if this gateway has an OpenID provider for sign-in. */
export const hasOpenId = signal(false);

/** Finds the session: by a link in the address, by the console's cookie, or at an OpenID provider. */
export async function findSession(): Promise<void> {
  const token = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  // Remove it from the address and the history first.
  if (token !== undefined) location.replace('#/');
  try {
    if (token !== undefined) await change('POST', '/console/link', { token });
  } catch (error) {
    signInNote.value = error instanceof Error ? error.message : '';
  }
  const found = (await ownSession()) ?? (await openIdSession());
  // After a lost session the pages stay until there is another one.
  if (found === null && isLost.value) return;
  isLost.value = false;
  session.value = found;
}

async function ownSession(): Promise<Session | undefined> {
  const state = await get<{
    user_id: string | null;
    key_id: string | null;
    scopes: readonly string[];
    ends_at: string | null;
    version: string;
    features: readonly string[];
    name: string | null;
    color: string | null;
  }>('/console').catch(noteOutage);
  if (state) installation.value = { name: state.name, color: state.color };
  if (!state?.user_id) return undefined;
  return {
    user: state.user_id,
    key: state.key_id ?? undefined,
    scopes: state.scopes,
    features: state.features,
    endsAt: state.ends_at ?? undefined,
    version: state.version,
  };
}

/** Without a session because of an outage, the page to sign in says so. */
function noteOutage(error: unknown): undefined {
  if (error instanceof ApiError && (error.status === 0 || error.status >= 500)) signInNote.value = error.message;
}

/** Only if the gateway has such routes: without a session they would be an error. */
async function openIdSession(): Promise<Session | null> {
  hasOpenId.value = await hasRoute('/login');
  if (!hasOpenId.value) return null;
  const state = await get<{ user_id: string; scopes: readonly string[]; ends_at: string | null }>('/session').catch(
    noteOutage,
  );
  if (!state) return null;
  const routes = { agents: '/agent', mcp: '/mcp', changes: '/changes' };
  const known = await Promise.all(Object.values(routes).map(hasRoute));
  const features = Object.keys(routes).filter((_, at) => known[at]);
  // The route of speech exists without a vendor of speech.
  if (state.scopes.includes('models:call') && (await hasRoute('/speech'))) {
    const vendors = await get<Page<unknown>>('/speech').catch(() => undefined);
    if (vendors && vendors.data.length > 0) features.push('speech');
  }
  const { info } = await readDescription();
  const { user_id: user, scopes, ends_at: endsAt } = state;
  return { user, scopes, features, endsAt: endsAt ?? undefined, version: info.version };
}

export async function signInByKey(key: string): Promise<void> {
  await send('POST', pathOf('/console/session'), undefined, { authorization: `Bearer ${key}` });
  signInNote.value = '';
  await findSession();
}

export async function signOut(): Promise<void> {
  await change('POST', '/console/sign-out').catch(() => undefined);
  if (hasOpenId.value) await change('POST', '/logout').catch(() => undefined);
  signInNote.value = 'You are signed out.';
  isLost.value = false;
  session.value = null;
}
