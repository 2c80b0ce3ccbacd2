import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/log.ts';
import { urlCredentialsOf } from './credentials.ts';
import type { InnerRequests } from './inner-requests.ts';
import { isKept, type KeptResult, type KeptResults } from './kept-results.ts';
import type { RequestState } from './request-state.ts';

export interface IdempotencyDeps {
  readonly inner: InnerRequests;
  readonly results: KeptResults;
  /** The largest response that is kept, in bytes. */
  readonly maxBytes: number;
  readonly log: Log;
}

/** Responds to a request that has an `Idempotency-Key`: with what is kept for it, or by working on it once. */
export type RespondOnce = (ctx: Koa.Context, body: Buffer) => Promise<void>;

/** The key as the caller sent it. Throws for one that is none. */
export function readIdempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) return key;
  throw new GatewayError('invalid_request', 'An Idempotency-Key is a text of 1 to 255 printable ASCII characters.', {
    param: 'Idempotency-Key',
  });
}

/**
 * Works on a request with a key once: the gateway posts it to itself, so that it runs to its end also when its
 * caller leaves; the response goes out as it comes and is kept when it ended well.
 */
export function createIdempotency({ inner, results, maxBytes, log }: IdempotencyDeps): RespondOnce {
  return async (ctx, body) => {
    const state = ctx.state as RequestState;
    const { principal } = state;
    const key = readIdempotencyKey(ctx.req);
    if (!principal || key === undefined) throw new TypeError('an idempotent route has a caller and a key');
    const { account, userId } = principal;
    const opened = await results.open({ account, userId, path: ctx.path, key }, fingerprintOf(ctx, body));
    if (isKept(opened)) return replay(ctx, opened);
    try {
      const response = await inner.post(innerRequest(ctx, body), state);
      const recorded = await passOn(ctx, response, maxBytes);
      const result = keptOf(ctx, response, recorded, fingerprintOf(ctx, body));
      // Before the caller sees the end: a request that follows on it finds the result.
      if (result && isWell(state, recorded))
        await opened.keep(result).catch((error: unknown) => {
          log.error({ request_id: state.requestId, err: error }, 'the result for an idempotency key was not kept');
        });
      ctx.res.end();
    } finally {
      await opened.release();
    }
  };
}

/** What makes two requests the same: all that decides what is responded, as far as the body says it. */
function fingerprintOf({ querystring, headers }: Koa.Context, body: Buffer): string {
  return createHash('sha256')
    .update(JSON.stringify([querystring, headers.accept ?? '']))
    .update(body)
    .digest('base64url');
}

/** About the connection or the body's way, or to be said anew. */
const NOT_COPIED =
  /^(?:connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|content-length|content-type|x-request-id|date)$/;

function copyHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || NOT_COPIED.test(name) ? [] : [[name, value]],
    ),
  );
}

function innerRequest(ctx: Koa.Context, body: Buffer): Parameters<InnerRequests['post']>[0] {
  const query = new URLSearchParams(ctx.querystring);
  for (const { name, value } of urlCredentialsOf(ctx.req)) query.append(name, value);
  const search = query.size > 0 ? `?${query}` : '';
  return {
    path: `${ctx.path}${search}`,
    headers: { ...copyHeaders(ctx.headers), 'x-request-id': (ctx.state as RequestState).requestId },
    address: ctx.req.socket.remoteAddress ?? '',
    body,
    // It runs to its end, also when its caller leaves.
    signal: new AbortController().signal,
  };
}

/** What was recorded of a response. */
interface Recorded {
  /** Undefined when it was too large. */
  readonly body: Buffer | undefined;
  readonly isWhole: boolean;
}

/** Sends a response on as it comes, all but its end, and records it. A caller who leaves does not stop it. */
async function passOn(ctx: Koa.Context, response: IncomingMessage, maxBytes: number): Promise<Recorded> {
  const { res } = ctx;
  ctx.respond = false;
  res.statusCode = response.statusCode ?? 500;
  for (const [name, value] of Object.entries(copyHeaders(response.headers))) res.setHeader(name, value);
  const type = response.headers['content-type'];
  if (type !== undefined) res.setHeader('content-type', type);
  res.flushHeaders();
  let chunks: Buffer[] | undefined = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size <= maxBytes) chunks?.push(chunk);
      else chunks = undefined;
      // Neither sent nor kept: there is nobody to go on for.
      if (res.closed && !chunks) return { body: undefined, isWhole: false };
      if (!res.closed && !res.write(chunk)) await drained(res);
    }
  } catch {
    res.destroy();
  }
  return { body: chunks && Buffer.concat(chunks, size), isWhole: response.complete };
}

/** How long a reader may take nothing before it is cut, in milliseconds. */
const STUCK_MS = 60_000;

/** Resolves when the reader has taken what was written, or is gone. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(stuck);
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    const stuck = setTimeout(() => res.destroy(), STUCK_MS);
    res.once('drain', done);
    res.once('close', done);
  });
}

/** The last frame of a stream that ended in an error, in any client's format. */
const FAILED = /(?:^|\n)(?:event: (?:error|response\.failed)\n|data: \{"(?:error"|type":"(?:error|response\.failed)"))/;
const LAST_FRAMES = 4096;

/** Whether a response may be given again: it ended, and in no error. Those are not kept: a repeated request is to try anew. */
function isWell({ outcomes = [] }: RequestState, { body, isWhole }: Recorded): boolean {
  const [only, ...others] = outcomes;
  if (only && others.length === 0 && only.outcome.status !== 'ok') return false;
  return isWhole && !FAILED.test(body?.subarray(-LAST_FRAMES).toString('utf8') ?? '');
}

/** Said anew with each response. */
const NOT_KEPT = /^(?:request-id|server-timing|x-ratelimit-.*|access-control-.*|vary)$/;

function keptOf(
  ctx: Koa.Context,
  { statusCode = 500, headers }: IncomingMessage,
  { body }: Recorded,
  fingerprint: string,
): KeptResult | undefined {
  if (statusCode < 200 || statusCode > 299) return undefined;
  const kept = Object.entries(copyHeaders(headers)).filter(([name]) => !NOT_KEPT.test(name));
  const type = ctx.res.getHeader('content-type');
  return {
    ...{ fingerprint, status: statusCode },
    headers: Object.fromEntries([...kept.map(([name, value]) => [name, String(value)]), ['content-type', type]]),
    ...(body && { body: body.toString('base64') }),
  };
}

function replay(ctx: Koa.Context, { status, headers, body }: KeptResult): void {
  if (body === undefined)
    throw new GatewayError(
      'conflict',
      'The request with this Idempotency-Key was worked on and charged, and its response was too large to be kept. Send it with a new key to have it worked on again.',
      { param: 'Idempotency-Key' },
    );
  ctx.status = status;
  ctx.set(headers);
  // What this request costs, which is nothing.
  if (headers['x-tollgate-cost-usd'] !== undefined) ctx.set('x-tollgate-cost-usd', '0');
  ctx.set('idempotency-replayed', 'true');
  ctx.body = Buffer.from(body, 'base64');
}
