import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { GatewayError, isObject, type PluginApi, parseJson, type Route } from '../../../contract/index.ts';
import type { ExportOptions } from './exporter.ts';
import { ATTRIBUTES as A } from './names.ts';

/**
 * OpenTelemetry signals with the list in their request: field 1 in protobuf, whose messages have the resource as field
 * 1.
 */
const SIGNALS = Object.freeze({
  '/v1/traces': 'resourceSpans',
  '/v1/metrics': 'resourceMetrics',
  '/v1/logs': 'resourceLogs',
});

/** Maximum bytes of a request, both compressed and decompressed. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Maximum requests that wait for the collector. */
const MAX_WAITING = 32;
const RETRY_MS = 30_000;

const unpack = promisify(gunzip);
const pack = promisify(gzip);

/**
 * Routes that accept OTLP/HTTP telemetry of callers' programs, and forward it to the collector with the caller's
 * identity. Claude Code sends it to the gateway at which it is signed in; its possible content is in
 * docs/decisions/sign-in-of-agents.md.
 */
export function relayRoutes(
  api: Pick<PluginApi, 'http' | 'log'>,
  { endpoint, headers, timeoutMs }: Omit<ExportOptions, 'protocol'>,
): readonly Route[] {
  const base = endpoint.replace(/\/+$/, '');
  let waiting = 0;
  const send = async (path: string, type: string, body: Buffer): Promise<void> => {
    if (waiting >= MAX_WAITING) throw away();
    waiting += 1;
    try {
      const http = await api.http();
      const { statusCode } = await http.post(`${base}${path}`, {
        body: await pack(body),
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: timeoutMs },
        headers: { ...headers, 'content-type': type, 'content-encoding': 'gzip' },
      });
      if (statusCode === 429 || statusCode >= 500) throw away();
      if (statusCode >= 400) {
        api.log.warn({ path, status: statusCode }, 'the collector rejected telemetry of a caller’s program');
        throw new GatewayError('invalid_request', 'The collector of this gateway rejected this message.');
      }
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw away(error);
    } finally {
      waiting -= 1;
    }
  };
  return Object.entries(SIGNALS).map(([path, list]) => ({
    method: 'POST',
    path,
    auth: ['key'],
    summary: `Send telemetry of a caller’s program (OTLP/HTTP, ${path.slice(4)})`,
    description:
      'Accepts protobuf or JSON of at most 4 MiB, optionally gzip-compressed. Forwards it to the gateway’s collector with the user as `user.id` of each resource.',
    responses: { 200: 'Accepted by the collector.' },
    async handler(ctx) {
      const type = /^application\/(json|x-protobuf)\s*(?:;|$)/i.exec(ctx.get('content-type'))?.[1]?.toLowerCase();
      if (type === undefined)
        throw new GatewayError(
          'invalid_request',
          'The content-type must be application/x-protobuf or application/json.',
        );
      const bytes = await readBody(ctx.req, ctx.get('content-encoding'));
      const { userId } = ctx.state.principal;
      const body = type === 'json' ? ownJson(bytes, list, userId) : ownProtobuf(bytes, userId);
      await send(path, `application/${type}`, body);
      ctx.type = `application/${type}`;
      ctx.body = type === 'json' ? '{}' : Buffer.alloc(0);
    },
  }));
}

function away(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The collector of this gateway is unavailable. Try again later.', {
    retryAfterMs: RETRY_MS,
    cause,
  });
}

async function readBody(req: IncomingMessage, encoding: string): Promise<Buffer> {
  const tooLarge = (): GatewayError =>
    new GatewayError('request_too_large', `Telemetry exceeds the limit of ${MAX_BYTES} bytes. Send smaller messages.`);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks, size);
  if (encoding === '' || encoding === 'identity') return bytes;
  if (encoding !== 'gzip') throw new GatewayError('invalid_request', 'The content-encoding must be gzip or missing.');
  return unpack(bytes, { maxOutputLength: MAX_BYTES }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new GatewayError('invalid_request', 'The body is not valid gzip.');
  });
}

function ownJson(bytes: Buffer, list: string, userId: string): Buffer {
  const message = parseJson(bytes.toString('utf8'));
  const resources = isObject(message) ? (message[list] ?? []) : undefined;
  if (!Array.isArray(resources) || !resources.every(isObject))
    throw new GatewayError('invalid_request', `The body must be an object with the list "${list}".`);
  const own = { key: A.user, value: { stringValue: userId } };
  const marked = resources.map((each) => {
    const resource = isObject(each['resource']) ? each['resource'] : {};
    const attributes = Array.isArray(resource['attributes']) ? resource['attributes'] : [];
    const others = attributes.filter((one) => !isObject(one) || one['key'] !== A.user);
    return { ...each, resource: { ...resource, attributes: [...others, own] } };
  });
  return Buffer.from(JSON.stringify({ [list]: marked }));
}

/** Field of a protobuf message: its number, its content if length-delimited, and its raw bytes. */
interface Part {
  readonly number: number;
  readonly inner?: Buffer;
  readonly whole: Buffer;
}

/** Maximum parts of one request: resources, their fields and their attributes. */
const MAX_PARTS = 20_000;

/** Adds the user to each resource of a message; unknown fields are unchanged. */
function ownProtobuf(bytes: Buffer, userId: string): Buffer {
  let left = MAX_PARTS;
  const readParts = (message: Buffer): readonly Part[] => {
    const parts = splitParts(message, left);
    left -= parts.length;
    return parts;
  };
  const user = lengthField(1, lengthField(1, Buffer.from(A.user)), lengthField(2, lengthField(1, Buffer.from(userId))));
  const isUser = ({ number, inner }: Part): boolean =>
    number === 1 &&
    inner !== undefined &&
    readParts(inner).some((key) => key.number === 1 && key.inner?.toString() === A.user);
  const writeResource = (inner: Buffer): Buffer =>
    Buffer.concat(
      readParts(inner)
        .filter((part) => !isUser(part))
        .map(({ whole }) => whole),
    );
  const resources = readParts(bytes).map(({ number, inner, whole }) => {
    if (number !== 1 || inner === undefined) return whole;
    const isResource = (part: Part): boolean => part.number === 1 && part.inner !== undefined;
    const parts = readParts(inner);
    const kept = parts.filter(isResource).map((part) => writeResource(part.inner ?? Buffer.alloc(0)));
    const others = parts.filter((part) => !isResource(part)).map(({ whole }) => whole);
    return lengthField(1, lengthField(1, ...kept, user), ...others);
  });
  return Buffer.concat(resources);
}

/** Field lengths by protobuf wire type; type 2 contains its length. */
const FIXED_BYTES: Readonly<Record<number, number>> = Object.freeze({ 1: 8, 5: 4 });

function splitParts(bytes: Buffer, most: number): readonly Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = readVarint(bytes, at);
    const kind = tag.value & 7;
    const value = kind === 0 || kind === 2 ? readVarint(bytes, tag.end) : undefined;
    const start = value?.end ?? tag.end;
    const length = kind === 0 ? 0 : kind === 2 ? (value?.value ?? 0) : FIXED_BYTES[kind];
    if (length === undefined || start + length > bytes.length || parts.length >= most) throw broken();
    const whole = bytes.subarray(at, start + length);
    parts.push({
      number: Math.floor(tag.value / 8),
      whole,
      ...(kind === 2 && { inner: bytes.subarray(start, start + length) }),
    });
    at = start + length;
  }
  return parts;
}

function readVarint(bytes: Buffer, from: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let at = from, factor = 1; at < Math.min(bytes.length, from + 10); at += 1, factor *= 128) {
    const byte = bytes[at] ?? 0;
    value += (byte & 127) * factor;
    if (byte < 128) return { value, end: at + 1 };
  }
  throw broken();
}

function broken(): GatewayError {
  return new GatewayError('invalid_request', 'The body is not an OTLP message in protobuf, or has too many parts.');
}

function lengthField(number: number, ...inner: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(inner);
  const head: number[] = [number * 8 + 2];
  let rest = bytes.length;
  for (; rest > 127; rest = Math.floor(rest / 128)) head.push((rest % 128) | 128);
  head.push(rest);
  return Buffer.concat([Buffer.from(head), bytes]);
}
