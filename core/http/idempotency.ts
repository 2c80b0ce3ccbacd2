import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Keyv from 'keyv';
import type Koa from 'koa';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/plugin.ts';
import type { Counters } from '../contract/store.ts';
import { steadyNow } from '../contract/units.ts';
import { urlCredentialsOf } from './authenticate.ts';
import type { InnerRequests } from './inner-requests.ts';
import type { RequestState } from './lifecycle.ts';

interface IdempotencyDeps {
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

/** What is kept of a response. */
export interface KeptResult {
  /** Of the request: another one under the same key is refused. */
  readonly fingerprint: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64; absent for a response that is larger than what is kept. */
  readonly body?: string;
}

/** Whose key it is, and where it was sent to. */
interface KeyScope {
  readonly account: string;
  readonly userId: string;
  readonly path: string;
  readonly key: string;
}

/** A key that this request has for itself until it is released. */
interface Claim {
  /** Keeps the result before others get the key. */
  keep(result: KeptResult): Promise<void>;
  release(): Promise<void>;
}

interface KeptResultsOptions {
  /** What belongs to idempotency keys in the store. */
  readonly documents: () => Keyv<KeptResult>;
  readonly counters: () => Counters;
  readonly keepForMs: number;
}

/** Results by idempotency key, in the store: so they survive a restart and count on every node. */
interface KeptResults {
  /** The kept result of this request, or the claim to make it. Throws `conflict` for another request, or while the first one runs. */
  open(scope: KeyScope, fingerprint: string): Promise<KeptResult | Claim>;
}

/** How long a claim of a gateway that died holds; a living one renews it. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;

/** How soon a caller may try again while the first request runs. */
const RETRY_MS = 1000;

/** Whether it is a result, and not a claim. */
function isKept(opened: KeptResult | Claim): opened is KeptResult {
  return 'fingerprint' in opened;
}

export function createKeptResults({ documents, counters, keepForMs }: KeptResultsOptions): KeptResults {
  const find = async (name: string, fingerprint: string): Promise<KeptResult | undefined> => {
    const kept = await documents().get(name);
    if (kept && kept.fingerprint !== fingerprint)
      throw new GatewayError(
        'conflict',
        'This Idempotency-Key was used for another request. Send a new key with a new request.',
        { param: 'Idempotency-Key' },
      );
    return kept;
  };
  return {
    async open(scope, fingerprint) {
      const name = nameOf(scope);
      const known = await find(name, fingerprint);
      if (known) return known;
      const holder = randomUUID();
      const lease = (): Promise<boolean> => counters().lease(name, holder, 1, LEASE_MS, steadyNow());
      if (!(await lease())) throw stillRuns();
      const renewal = setInterval(() => void lease().catch(() => undefined), RENEW_MS).unref();
      const release = async (): Promise<void> => {
        clearInterval(renewal);
        // What cannot be released runs out.
        await counters()
          .release(name, holder)
          .catch(() => undefined);
      };
      try {
        // The first request may have ended between the two looks.
        const kept = await find(name, fingerprint);
        if (!kept) return { release, keep: async (result) => void (await documents().set(name, result, keepForMs)) };
        await release();
        return kept;
      } catch (error) {
        await release();
        throw error;
      }
    },
  };
}

function stillRuns(): GatewayError {
  return new GatewayError(
    'conflict',
    'The first request with this Idempotency-Key still runs. Try again in a moment.',
    {
      ...{ param: 'Idempotency-Key', retryAfterMs: RETRY_MS, headers: { 'x-should-retry': 'true' } },
    },
  );
}

/** Nothing of it is readable in the store, and no part can pass for another. */
function nameOf({ account, userId, path, key }: KeyScope): string {
  return createHash('sha256')
    .update(JSON.stringify([account, userId, path, key]))
    .digest('base64url');
}
