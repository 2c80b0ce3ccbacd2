import {
  isObject,
  type JsonObject,
  parseJson,
  readObject,
  readString,
  type TransportResponse,
} from '../../../contract/index.ts';
import { readFailure } from './failures.ts';

/** Error of a package as a response: the vendor's own, if it is one. */
export function errorResponse(error: unknown, name: string): TransportResponse {
  const { statusCode, responseBody, responseHeaders } = readObject(error);
  const status = typeof statusCode === 'number' && statusCode >= 400 && statusCode <= 599 ? statusCode : undefined;
  const headers = Object.fromEntries(
    Object.entries(readObject(responseHeaders)).flatMap(([field, value]) =>
      typeof value === 'string' ? [[field.toLowerCase(), value] as const] : [],
    ),
  );
  const { 'content-length': _length, 'content-encoding': _encoding, ...kept } = headers;
  const vendors = typeof responseBody === 'string' ? parseJson(responseBody) : undefined;
  const failure = status === undefined ? undefined : readFailure(status, vendors, headers);
  if (status !== undefined && failure) {
    const { class: type, message, retryAfterMs } = failure;
    const retry = retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) };
    return jsonResponse(status, { error: { type: `failure_${type}`, message } }, { ...kept, ...retry });
  }
  if (status !== undefined && isObject(vendors)) return jsonResponse(status, vendors, kept);
  return jsonResponse(status ?? 500, { error: describeError(error, name) }, kept);
}

/** Maximum length of an error's message. */
const MAX_MESSAGE = 2000;

/** Error of a package in OpenAI's form. Its `type` is the error's name. */
export function describeError(error: unknown, name: string): JsonObject {
  const { name: type, message, statusCode } = readObject(error);
  const own = error instanceof Error ? error : undefined;
  const said = readString(message) ?? own?.message ?? String(error);
  const isOurs = own !== undefined && /^(?:NotTaken|UnknownKind|UnknownVersion)$/.test(own.name);
  return {
    type: readString(type) ?? own?.name ?? 'package_error',
    message: (isOurs ? said : `package "${name}": ${said}`).slice(0, MAX_MESSAGE),
    ...(typeof statusCode === 'number' && { status: statusCode }),
  };
}

export function jsonResponse(
  status: number,
  value: unknown,
  headers: TransportResponse['headers'] = {},
): TransportResponse {
  const bytes = Buffer.from(JSON.stringify(value));
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
    body: (async function* () {
      yield bytes;
    })(),
  };
}

/** Response with server-sent events. */
export function eventResponse(events: AsyncIterable<string>): TransportResponse {
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: (async function* () {
      for await (const event of events) yield Buffer.from(event);
    })(),
  };
}
