import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { CREDENTIAL_SHAPES } from '../config/redact.ts';
import { isObject } from '../contract/json.ts';
import { nearest } from '../contract/nearest.ts';
import type { Endpoint, HttpRequest } from '../contract/provider.ts';
import { secretPattern } from '../contract/secret-pattern.ts';
import { joinPath, parseBaseUrl } from './address.ts';
import type { UpstreamError } from './attempt.ts';

/** Unusable folder of exchanges. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError';
  readonly hint: string;
  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

/** Contents of an exchange's file; its response bytes are in a separate file. */
export interface Exchange {
  readonly version: 1;
  readonly request: {
    readonly method: string;
    readonly origin: string;
    /** Path with the query. */
    readonly path: string;
    /** JSON as it is, else `{ text }` or `{ base64 }`. */
    readonly json?: unknown;
    readonly text?: string;
    readonly base64?: string;
  };
  /** Absent without a response. */
  readonly response?: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    /** File with the bytes. */
    readonly body: string;
    /** Lengths of the received chunks. */
    readonly chunks: readonly number[];
    /** Arrival time of each chunk, relative to the end of sending. */
    readonly timesMs?: readonly number[];
    readonly headMs?: number;
  };
  /** Failure of the exchange. */
  readonly failure?: Pick<UpstreamError, 'failure' | 'phase' | 'message' | 'sent' | 'refused'>;
}

export const SUFFIX = '.exchange';

/** Maximum number of exchanges in a folder, for writing and reading. */
export const MAX_EXCHANGES = 10_000;
export const MAX_BYTES = 1024 * 1024 * 1024;

/** Request headers without secrets. */
const OPEN_HEADERS =
  /^(?:accept|content-type|user-agent|traceparent|tracestate|[a-z]+-version|[a-z]+-beta|x-[a-z]+-api-client)$/i;

/** Shorter values are ordinary words. */
const LEAST_SECRET = 8;

const SHAPES: readonly RegExp[] = CREDENTIAL_SHAPES.map(({ source }) => new RegExp(source, 'gi'));

/** Ordinary words after `bearer` or `basic`, as in `basic knowledge`. */
const PROSE = /^(?:bearer|basic)\s+[a-z]+$/i;

/** Replaces secrets by asterisks of the same length, so that later bytes keep their offsets. */
export type Cut = (bytes: Buffer) => Buffer;

export function createCut(secrets: readonly string[]): Cut {
  const forms = secrets.flatMap((secret) => {
    const plain = secret.replace(/^(?:bearer|basic)\s+/i, '');
    const bytes = Buffer.from(plain);
    return plain.length < LEAST_SECRET
      ? []
      : [plain, ...(['base64', 'base64url', 'hex'] as const).map((form) => bytes.toString(form).replace(/=+$/, ''))];
  });
  // Decodes each byte as one character.
  const own = secretPattern(
    forms.map((form) => Buffer.from(form).toString('latin1')),
    'gi',
    LEAST_SECRET,
  );
  const patterns = [...(own ? [own] : []), ...SHAPES];
  return (bytes) => {
    let text = bytes.toString('latin1');
    for (const pattern of patterns)
      text = text.replace(pattern, (found) =>
        pattern !== own && PROSE.test(found) ? found : '*'.repeat(found.length),
      );
    return Buffer.from(text, 'latin1');
  };
}

export const cutText = (cut: Cut, text: string): string => cut(Buffer.from(text)).toString();

/** Converts a request to its recorded and searchable form. */
export function describeRequest(endpoint: Endpoint, request: HttpRequest, cut: Cut): Exchange['request'] {
  const address = parseBaseUrl(endpoint.baseUrl);
  const { body = null } = request;
  const place = {
    method: request.method ?? (body === null ? 'GET' : 'POST'),
    origin: address.origin,
    path: cutText(cut, joinPath(address, request.path)),
  };
  if (body === null) return place;
  if (!(body instanceof Uint8Array)) {
    const cutBody = cutText(cut, JSON.stringify(body));
    try {
      return { ...place, json: JSON.parse(cutBody) as unknown };
    } catch {
      // The asterisks cover more than texts.
      return { ...place, text: cutBody };
    }
  }
  const bytes = cut(withoutBoundary(Buffer.from(body), request));
  const text = bytes.toString();
  return { ...place, ...(Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') }) };
}

/** Removes the boundary of a form, which differs in each request. */
function withoutBoundary(bytes: Buffer, { headers = {} }: HttpRequest): Buffer {
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
  const boundary = /^multipart\/.*boundary="?([^";]+)/i.exec(type)?.[1];
  return boundary === undefined
    ? bytes
    : Buffer.from(bytes.toString('latin1').replaceAll(boundary, 'boundary'), 'latin1');
}

/** Returns the secrets of an endpoint and a request, exactly as they are sent. */
export function secretsOf({ credential, keys = [], headers = {} }: Endpoint, request: HttpRequest): readonly string[] {
  const own = [...Object.entries(headers), ...Object.entries(request.headers ?? {})];
  return [
    ...[credential, ...keys.map((key) => key.credential)].flatMap((each) => each?.value ?? []),
    ...own.flatMap(([name, value]) => (OPEN_HEADERS.test(name) ? [] : [value])),
  ];
}

/** Searchable recording. */
export interface Known {
  readonly name: string;
  readonly exchange: Exchange;
  readonly bytes: Buffer;
}

/** Returns all exchanges of a folder, ordered by the numbers in their names. */
export function readExchanges(folder: string): readonly Known[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
  } catch (error) {
    throw new ExchangeError(`${folder} cannot be read: ${messageOf(error)}`, 'Record exchanges with --record first.');
  }
  if (names.length === 0)
    throw new ExchangeError(`${folder} has no recorded exchange`, 'Record some with --record first.');
  const numberOf = (name: string): number => Number(/(\d+)\.exchange$/.exec(name)?.[1] ?? 0);
  let size = 0;
  return names
    .toSorted((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1))
    .map((name, index) => {
      const file = path.join(folder, name);
      size += statSync(file).size;
      const known = readExchange(folder, name);
      size += known.bytes.length;
      if (index >= MAX_EXCHANGES || size > MAX_BYTES)
        throw new ExchangeError(
          `${folder} contains more than ${MAX_EXCHANGES} exchanges or 1 GiB`,
          'Use a part of it.',
        );
      return known;
    });
}

function readExchange(folder: string, name: string): Known {
  const refuse = (why: string): ExchangeError =>
    new ExchangeError(`${path.join(folder, name)} ${why}`, 'Record it again, or remove it from the folder.');
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
  } catch (error) {
    throw refuse(`is not JSON: ${messageOf(error)}`);
  }
  if (!isExchange(value)) throw refuse('is not a recorded exchange of this version');
  const { response } = value;
  if (!response) return { name, exchange: value, bytes: Buffer.alloc(0) };
  if (path.basename(response.body) !== response.body) throw refuse('refers to a body outside of its folder');
  let bytes: Buffer;
  try {
    bytes = readFileSync(path.join(folder, response.body));
  } catch (error) {
    throw refuse(`has no body: ${messageOf(error)}`);
  }
  // An edited body is replayed as one chunk.
  const isWhole = response.chunks.reduce((sum, length) => sum + length, 0) === bytes.length;
  const exchange = isWhole ? value : { ...value, response: { ...response, chunks: [bytes.length] } };
  return { name, exchange, bytes };
}

function isExchange(value: unknown): value is Exchange {
  if (!isObject(value) || value['version'] !== 1 || !isObject(value['request'])) return false;
  const { request, response, failure } = value;
  const isText = (name: string): boolean => typeof (request as Record<string, unknown>)[name] === 'string';
  const isResponse =
    response === undefined ||
    (isObject(response) &&
      Number.isInteger(response['status']) &&
      isObject(response['headers']) &&
      typeof response['body'] === 'string' &&
      Array.isArray(response['chunks']) &&
      response['chunks'].every((length) => Number.isInteger(length)));
  return (
    ['method', 'origin', 'path'].every(isText) &&
    isResponse &&
    (failure === undefined || isObject(failure)) &&
    (response ?? failure) !== undefined
  );
}

/** Returns the search key of a request: method, path and body, independent of the order of object keys. */
export function keyOf(request: Exchange['request']): string {
  const { method, path: target, json, text, base64 } = request;
  const body = json === undefined ? (text ?? base64 ?? '') : canonical(json);
  return `${method} ${target} ${createHash('sha256').update(body).digest('base64url')}`;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(',')}}`;
}

/** Maximum number of differences in a message. */
const MAX_PLACES = 5;

/** Describes the most similar recording and its differences. */
export function describeMissing(request: Exchange['request'], all: readonly Known[]): string {
  const { method, path: target } = request;
  const begin = `No recording found for this request to the provider: ${method} ${target}.`;
  const end = 'Record it with --record, or change the request.';
  const same = all.filter(({ exchange }) => exchange.request.method === method && exchange.request.path === target);
  if (same.length === 0) {
    const paths = [...new Set(all.map(({ exchange }) => `${exchange.request.method} ${exchange.request.path}`))];
    const near = nearest(`${method} ${target}`, paths);
    return `${begin} Recorded are: ${(near.length > 0 ? near : paths.slice(0, MAX_PLACES)).join(', ')}. ${end}`;
  }
  const [closest] = same
    .map(({ name, exchange }) => ({ name, places: differences(exchange.request.json, request.json) }))
    .toSorted((a, b) => a.places.length - b.places.length);
  const places = closest?.places.slice(0, MAX_PLACES).join(', ') || 'its body';
  return `${begin} The nearest is ${closest?.name}, which differs in ${places}. ${end}`;
}

/** Returns the paths at which two values differ, such as `messages[0].content`. */
function differences(a: unknown, b: unknown, place = ''): readonly string[] {
  if (isObject(a) && isObject(b))
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) =>
      differences(a[key], b[key], place === '' ? key : `${place}.${key}`),
    );
  if (Array.isArray(a) && Array.isArray(b))
    return Array.from({ length: Math.max(a.length, b.length) }, (_, at) =>
      differences(a[at], b[at], `${place}[${at}]`),
    ).flat();
  return canonical(a ?? null) === canonical(b ?? null) ? [] : [place];
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
