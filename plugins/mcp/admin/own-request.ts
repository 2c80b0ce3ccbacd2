import type { OutgoingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import {
  ERRORS,
  type ErrorCode,
  GatewayError,
  isObject,
  parseJson,
  type RouteContext,
} from '../../../contract/index.ts';

/** Time limit of one request of the gateway to itself. */
const REQUEST_MS = 30_000;

/** Headers with the caller's credential, and those by which a session accepts changes. */
const CREDENTIALS = ['authorization', 'x-api-key', 'cookie', 'host', 'origin', 'sec-fetch-site'] as const;

/** Request of a route to another route of this gateway, with the credential of its caller. */
interface OwnCall {
  readonly method: string;
  /** Path and query, URL-encoded. */
  readonly path: string;
  /** JSON body. */
  readonly body?: object | undefined;
  readonly headers?: OutgoingHttpHeaders;
  readonly maxBytes: number;
}

/** Response of a route of this gateway. */
interface OwnReply {
  readonly status: number;
  readonly etag: string | undefined;
  readonly contentType: string;
  /** Body, up to the limit. */
  readonly text: string;
  /** False if the body is longer than the limit. */
  readonly isWhole: boolean;
}

/** Sends a request with the credential of the caller of `ctx`: authentication, rights, checks and audit are those of the route. */
export async function sendOwn(
  ctx: RouteContext,
  { method, path, body, headers, maxBytes }: OwnCall,
): Promise<OwnReply> {
  const bytes = body && Buffer.from(JSON.stringify(body));
  const credentials = CREDENTIALS.flatMap((name) => {
    const value = ctx.headers[name];
    return value === undefined ? [] : [[name, value]];
  });
  const response = await ctx.state.send({
    method,
    path,
    headers: {
      ...Object.fromEntries(credentials),
      ...headers,
      accept: 'application/json',
      ...(bytes && { 'content-type': 'application/json', 'content-length': bytes.length }),
    },
    body: Readable.from(bytes ? [bytes] : []),
    signal: AbortSignal.any([ctx.state.signal, AbortSignal.timeout(REQUEST_MS)]),
  });
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      response.destroy();
      break;
    }
    chunks.push(chunk);
  }
  return {
    status: response.statusCode ?? 500,
    etag: response.headers.etag,
    contentType: response.headers['content-type'] ?? '',
    text: Buffer.concat(chunks).toString('utf8'),
    isWhole: size <= maxBytes,
  };
}

/** Returns the error of a route, to return it as one's own. */
export function errorOf({ text }: Pick<OwnReply, 'text'>): GatewayError {
  const reply = parseJson(text);
  const { code, message, param } = isObject(reply) && isObject(reply['error']) ? reply['error'] : {};
  const isKnown = typeof code === 'string' && Object.hasOwn(ERRORS, code) && typeof message === 'string';
  if (!isKnown) return new GatewayError('internal_error', 'The route returned no valid response.');
  return new GatewayError(code as ErrorCode, message, typeof param === 'string' ? { param } : {});
}
