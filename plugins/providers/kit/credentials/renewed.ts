import { readFile } from 'node:fs/promises';
import type { Got, Method } from 'got';
import type { Credential, FailureClass, JsonObject, Log } from '../../../../contract/index.ts';
import { isObject, parseJson, readString, StreamFailure } from '../../../../contract/index.ts';

/** What ends, and has to be fetched anew. */
export interface Lease<T> {
  readonly value: T;
  /** Milliseconds since 1970, by the clock of this machine. */
  readonly endsAt: number;
}

/** A value that is renewed ahead of its end, by one request however many wait for it. */
export interface Renewed<T> {
  /** The value; a promise only where none is known that goes on. Rejects with a {@link StreamFailure}. */
  get(): T | Promise<T>;
  /** Forgets a value that was refused; false where it is so new that another one would be refused too. */
  forget(): boolean;
}

interface RenewedParts<T> {
  /** What it is, for the log: `the token of Entra`. */
  readonly what: string;
  fetch(): Promise<Lease<T>>;
  readonly log: Pick<Log, 'warn'>;
  /** The clock; the system's unless set. */
  now?(): number;
}

/** A value is renewed when a fifth of its time is left, at most so long before its end. */
const AHEAD_MS = 300_000;
/** It is not used in its last moments, which a request may outlive. */
const MARGIN_MS = 10_000;
/** After a failure so long nothing is fetched: while a value is there, and while there is none. */
const REST_MS = 10_000;
const SHORT_REST_MS = 1000;
/** A value that is younger is not why a request is refused. */
const YOUNG_MS = 30_000;

/** Keeps a value that ends: at once while it holds, renewed in the background ahead of its end, waited for after it. */
export function createRenewed<T>({ what, fetch, log, now = Date.now }: RenewedParts<T>): Renewed<T> {
  let held: (Lease<T> & { readonly since: number }) | undefined;
  let flight: Promise<T> | undefined;
  let restsUntil = 0;
  let lastError: unknown;

  const renew = (): Promise<T> => {
    flight ??= fetch()
      .then((lease) => {
        if (lease.endsAt <= now()) throw failed('upstream_error', `${what} had ended when it came`);
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
        // Who asks has a value; that it could not be renewed is in the log.
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

/** A bearer token as a provider's credential: sent in `authorization`, renewed ahead, and once more when it is refused. */
export function tokenCredential(token: Renewed<string>): Credential {
  const headersOf = (value: string) => ({ authorization: `Bearer ${value}` });
  return {
    ...{ header: 'authorization', prefix: 'Bearer ', value: undefined, required: false },
    headers() {
      const value = token.get();
      return typeof value === 'string' ? headersOf(value) : value.then(headersOf);
    },
    refused: (status) => status === 401 && token.forget(),
  };
}

/** How a place is asked for a credential. */
export interface TokenRequest {
  /** Who is asked, for messages: `Entra`. */
  readonly who: string;
  readonly url: string;
  readonly method?: Method;
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: object;
}

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 300;
/** A clock that is less off than that is not why a credential is refused. */
const CLOCK_S = 60;

/** What was responded, and the time at the other side: how long a thing is good for that ends at a time of its clock. */
export interface Dated<T> {
  readonly body: T;
  readonly clockMs: number;
}

/**
 * Asks for a credential, over the client of the control plane, and answers the body's text. Rejects with a {@link StreamFailure}:
 * `authentication` where it was refused, with the words of who refused it, `upstream_error` where it could not be reached.
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
  throw failed(type, `${who} gives no credential: status ${statusCode}${wordsOf(body)}${sayClock(clockMs)}`);
}

/** Of this machine’s clock, where it is so far off that what it signs or dates is refused. */
function sayClock(clockMs: number): string {
  const offMs = Date.now() - clockMs;
  const seconds = Math.round(Math.abs(offMs) / 1000);
  return seconds < CLOCK_S ? '' : `; the clock of this machine is ${seconds} s ${offMs > 0 ? 'ahead' : 'behind'}`;
}

/** The same for JSON. */
export async function fetchDated(http: () => Promise<Got>, request: TokenRequest): Promise<Dated<JsonObject>> {
  const { body: text, clockMs } = await fetchText(http, request);
  const body: unknown = parseJson(text);
  if (isObject(body)) return { body, clockMs };
  throw failed('upstream_error', `${request.who} answered with something that is no JSON object`);
}

/** The same where it is said how long the credential is good for, not until when. */
export async function fetchCredential(http: () => Promise<Got>, request: TokenRequest): Promise<JsonObject> {
  return (await fetchDated(http, request)).body;
}

/** What a body says of an error: OAuth's `error` and `error_description`, Google's `error.message`, a text of AWS. */
function wordsOf(text: string): string {
  const body: unknown = parseJson(text);
  const { error, error_description: description, message } = isObject(body) ? body : {};
  const inner = isObject(error) ? error['message'] : error;
  const inXml = isObject(body) ? undefined : /<Message>([^<]*)<\/Message>/.exec(text)?.[1];
  const words = [inner, description, message, inXml].filter((word) => typeof word === 'string' && word !== '');
  return words.length === 0 ? '' : `, ${words.join(': ').slice(0, MAX_WORDS)}`;
}

const SHORT_LIFE_S = 300;

/** Reads a token of OAuth: its text, and when it ends by this machine's clock, whatever the other's says. */
export function readToken(body: JsonObject, who: string, now: number): Lease<string> {
  const value = readString(body['access_token']);
  if (value === undefined || value === '') throw failed('upstream_error', `${who} answered without a token`);
  // Where nothing is said: the shortest life that tokens have.
  const seconds = Number(body['expires_in'] ?? SHORT_LIFE_S);
  return { value, endsAt: now + (Number.isNaN(seconds) ? SHORT_LIFE_S : seconds) * 1000 };
}

/** Reads a file that a credential is in; `name` is what messages say of it. Rejects with a {@link StreamFailure}. */
export async function readSecretFile(file: string, name: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw failed('authentication', `${name} cannot be read (${error.code})`);
  });
  return text.trim();
}

/** What an attempt fails with that has no credential; the message is for the log. */
export function failed(type: FailureClass, message: string): StreamFailure {
  return new StreamFailure({ class: type, message });
}
