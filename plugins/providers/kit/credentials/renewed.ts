import { readFile } from 'node:fs/promises';
import type { Got, Method } from 'got';
import type { Credential, FailureClass, JsonObject, Log } from '../../../../contract/index.ts';
import { isObject, parseJson, readString, StreamFailure } from '../../../../contract/index.ts';

/** Value that expires and must be renewed. */
export interface Lease<T> {
  readonly value: T;
  /** Milliseconds since 1970, by the clock of this machine. */
  readonly endsAt: number;
}

/** Value that is renewed ahead of its expiry, with one request for all waiting callers. */
export interface Renewed<T> {
  /** Returns the value, or a promise if no valid one is known. Rejects with a {@link StreamFailure}. */
  get(): T | Promise<T>;
  /** Discards a rejected value; returns false for a new one, since another would be rejected too. */
  forget(): boolean;
}

interface RenewedParts<T> {
  /** Name of the value for the log: `the token of Entra`. */
  readonly what: string;
  fetch(): Promise<Lease<T>>;
  readonly log: Pick<Log, 'warn'>;
  /** Clock; default: the system's. */
  now?(): number;
}

/** A value is renewed with a fifth of its lifetime left, at most this long before its expiry. */
const AHEAD_MS = 300_000;
/** A value is not used in its last moments, which a request may outlive. */
const MARGIN_MS = 10_000;
/** Pauses after a failed renewal: with a valid value, and without one. */
const REST_MS = 10_000;
const SHORT_REST_MS = 1000;
/** A younger value is not the cause of a rejected request. */
const YOUNG_MS = 30_000;

/**
 * Caches a value that expires. It is returned immediately while valid, renewed in the background ahead of its expiry,
 * and awaited after it.
 */
export function createRenewed<T>({ what, fetch, log, now = Date.now }: RenewedParts<T>): Renewed<T> {
  let held: (Lease<T> & { readonly since: number }) | undefined;
  let flight: Promise<T> | undefined;
  let restsUntil = 0;
  let lastError: unknown;

  const renew = (): Promise<T> => {
    flight ??= fetch()
      .then((lease) => {
        if (lease.endsAt <= now()) throw failed('upstream_error', `${what} was already expired`);
        held = { ...lease, since: now() };
        return lease.value;
      })
      .catch((error: unknown) => {
        lastError = error;
        restsUntil = now() + (held && held.endsAt > now() ? REST_MS : SHORT_REST_MS);
        log.warn({ err: error }, `${what} cannot be renewed`);
        throw error;
      })
      .finally(() => {
        flight = undefined;
      });
    return flight;
  };

  return {
    get() {
      const time = now();
      if (held && held.endsAt - MARGIN_MS > time) {
        const aheadMs = Math.min(AHEAD_MS, (held.endsAt - held.since) / 5);
        // The caller has a valid value; the failed renewal is logged.
        if (held.endsAt - time < aheadMs && time >= restsUntil) renew().catch(() => undefined);
        return held.value;
      }
      if (time < restsUntil && !flight) return Promise.reject(lastError);
      return renew();
    },
    forget() {
      if (held && now() - held.since < YOUNG_MS) return false;
      held = undefined;
      return true;
    },
  };
}

/**
 * Bearer token as a provider's credential: sent in `authorization`, renewed ahead of its expiry, and again after a
 * rejection.
 */
export function tokenCredential(token: Renewed<string>): Credential {
  const headersOf = (value: string) => ({ authorization: `Bearer ${value}` });
  return {
    header: 'authorization',
    prefix: 'Bearer ',
    value: undefined,
    required: false,
    headers() {
      const value = token.get();
      return typeof value === 'string' ? headersOf(value) : value.then(headersOf);
    },
    refused: (status) => status === 401 && token.forget(),
  };
}

/** Request for a credential. */
export interface TokenRequest {
  /** Name of the server for messages: `Entra`. */
  readonly who: string;
  readonly url: string;
  readonly method?: Method;
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: object;
}

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 300;
/** A smaller clock skew is not the cause of a rejected credential. */
const CLOCK_S = 60;

/** Response with the server's time, to convert an expiry time on its clock to a lifetime. */
export interface Dated<T> {
  readonly body: T;
  readonly clockMs: number;
}

/**
 * Requests a credential with the client of the control plane, and returns the body as text. Rejects with a {@link
 * StreamFailure}: `authentication` with the server's message if it rejected the request, `upstream_error` if it was
 * unreachable.
 */
export async function fetchText(
  http: () => Promise<Got>,
  { who, url, method, ...request }: TokenRequest,
): Promise<Dated<string>> {
  const client = await http();
  const { statusCode, body, headers } = await client(url, {
    method: method ?? (request.form || request.json ? 'POST' : 'GET'),
    ...(request.headers && { headers: request.headers }),
    ...(request.form && { form: request.form }),
    ...(request.json && { json: request.json as Record<string, unknown> }),
    responseType: 'text',
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: { request: TIMEOUT_MS },
  }).catch((cause: unknown) => {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw failed('upstream_error', `${who} cannot be reached for a credential (${code})`);
  });
  const clockMs = Date.parse(headers.date ?? '') || Date.now();
  if (statusCode === 200) return { body, clockMs };
  const type = statusCode >= 500 || statusCode === 429 ? 'upstream_error' : 'authentication';
  throw failed(type, `${who} returned no credential: status ${statusCode}${wordsOf(body)}${sayClock(clockMs)}`);
}

/** Describes the skew of this machine's clock if it is large enough to invalidate signatures or dates. */
function sayClock(clockMs: number): string {
  const offMs = Date.now() - clockMs;
  const seconds = Math.round(Math.abs(offMs) / 1000);
  return seconds < CLOCK_S ? '' : `; the clock of this machine is ${seconds} s ${offMs > 0 ? 'ahead' : 'behind'}`;
}

/** Requests a credential as JSON. */
export async function fetchDated(http: () => Promise<Got>, request: TokenRequest): Promise<Dated<JsonObject>> {
  const { body: text, clockMs } = await fetchText(http, request);
  const body: unknown = parseJson(text);
  if (isObject(body)) return { body, clockMs };
  throw failed('upstream_error', `${request.who} returned a response that is not a JSON object`);
}

/** Requests a credential whose response contains its lifetime, not its expiry time. */
export async function fetchCredential(http: () => Promise<Got>, request: TokenRequest): Promise<JsonObject> {
  return (await fetchDated(http, request)).body;
}

/** Error message in a body: OAuth's `error` and `error_description`, Google's `error.message`, or text of AWS. */
function wordsOf(text: string): string {
  const body: unknown = parseJson(text);
  const { error, error_description: description, message } = isObject(body) ? body : {};
  const inner = isObject(error) ? error['message'] : error;
  const inXml = isObject(body) ? undefined : /<Message>([^<]*)<\/Message>/.exec(text)?.[1];
  const words = [inner, description, message, inXml].filter((word) => typeof word === 'string' && word !== '');
  return words.length === 0 ? '' : `, ${words.join(': ').slice(0, MAX_WORDS)}`;
}

const SHORT_LIFE_S = 300;

/** Reads an OAuth token: its text, and its expiry by this machine's clock, independent of the server's. */
export function readToken(body: JsonObject, who: string, now: number): Lease<string> {
  const value = readString(body['access_token']);
  if (value === undefined || value === '') throw failed('upstream_error', `${who} returned no token`);
  // Default without a lifetime: the shortest that tokens have.
  const seconds = Number(body['expires_in'] ?? SHORT_LIFE_S);
  return { value, endsAt: now + (Number.isNaN(seconds) ? SHORT_LIFE_S : seconds) * 1000 };
}

/** Reads a file with a credential; `name` is its name in messages. Rejects with a {@link StreamFailure}. */
export async function readSecretFile(file: string, name: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw failed('authentication', `${name} cannot be read (${error.code})`);
  });
  return text.trim();
}

/** Failure of an attempt without a credential; the message is for the log. */
export function failed(type: FailureClass, message: string): StreamFailure {
  return new StreamFailure({ class: type, message });
}
