import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import { type Call as CallView, CHAT, type Operation, type Principal, type Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import type { AccountDocuments, Counters } from '../../contract/store.ts';
import { steadyNow } from '../../contract/units.ts';
import { assertAllowed } from '../../models/catalog.ts';
import { Call } from '../calls/call.ts';
import type { CallDeps } from '../calls/call-deps.ts';
import { runCall } from '../calls/run-call.ts';
import { urlCredentialsOf } from './authenticate.ts';
import type { InnerRequests } from './inner-requests.ts';
import type { RequestState } from './lifecycle.ts';

interface IdempotencyDeps {
  readonly counters: Counters;
  readonly stored: AccountDocuments;
  readonly deps: CallDeps;
  readonly inner: InnerRequests;
  /** Maximum size of a stored response, in bytes. */
  readonly maxBytes: number;
  readonly keepForMs: number;
  readonly log: Log;
}

/** Responds to a request with an `Idempotency-Key`: from the stored response, or by running it once. */
export type RespondOnce = (ctx: Koa.Context, body: Buffer) => Promise<void>;

/** Returns the caller's key. Throws if it is invalid. */
export function readIdempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) return key;
  throw new GatewayError('invalid_request', 'Idempotency-Key must have 1 to 255 printable ASCII characters.', {
    param: 'Idempotency-Key',
  });
}

/**
 * Runs a request with a key once: the gateway posts it to itself, so it completes even if its caller disconnects. The response is
 * forwarded as it arrives, and stored if it succeeds.
 */
export function createIdempotency(own: IdempotencyDeps): RespondOnce {
  const { deps, inner, maxBytes, log } = own;
  return async (ctx, body) => {
    const state = ctx.state as RequestState;
    const { principal, requestId: request_id, alias } = state;
    const key = readIdempotencyKey(ctx.req);
    if (!principal || key === undefined) throw new TypeError('an idempotent route has a caller and a key');
    const name = nameOf(principal, alias?.path ?? ctx.path, key);
    const fingerprint = fingerprintOf(ctx, body);
    const opened = await openKey(own, name, fingerprint);
    if (typeof opened !== 'function') {
      await checkAgain(deps, state, principal, opened);
      return replay(ctx, opened);
    }
    try {
      const response = await inner.post(innerRequest(ctx, body), state);
      const recorded = await passOn(ctx, response, maxBytes);
      const result = storedResultOf(ctx, response, recorded, fingerprint);
      // Stored before the caller receives the end, so that a following request finds it.
      if (result && isWell(state, recorded))
        await keepResult(own, name, principal, result).catch((err: unknown) =>
          log.error({ request_id, err }, 'the result for an idempotency key could not be stored'),
        );
      ctx.res.end();
    } finally {
      await opened();
    }
  };
}

/** Returns a fingerprint of everything in the request that determines the response. */
function fingerprintOf({ querystring, headers }: Koa.Context, body: Buffer): string {
  return createHash('sha256')
    .update(JSON.stringify([querystring, headers.accept ?? '']))
    .update(body)
    .digest('base64url');
}

/** Headers of the connection or the transfer of the body, and headers that are set again. */
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
  const { requestId, alias } = ctx.state as RequestState;
  return {
    path: `${alias?.path ?? ctx.path}${search}`,
    headers: { ...copyHeaders(ctx.headers), 'x-request-id': requestId },
    address: ctx.req.socket.remoteAddress ?? '',
    body,
    // Completes even if its caller disconnects.
    signal: new AbortController().signal,
  };
}

/** Recorded response. */
interface Recorded {
  /** Undefined if it was too large. */
  readonly body: Buffer | undefined;
  readonly isWhole: boolean;
}

/** Forwards a response as it arrives, except its end, and records it. Continues if the caller disconnects. */
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
      // Neither sent nor stored: the rest has no recipient.
      if (res.closed && !chunks) return { body: undefined, isWhole: false };
      if (!res.closed && !res.write(chunk)) await drained(res);
    }
  } catch {
    res.destroy();
  }
  return { body: chunks && Buffer.concat(chunks, size), isWhole: response.complete };
}

/** Milliseconds without progress after which the connection of a slow reader is closed. */
const STUCK_MS = 60_000;

/** Resolves when the reader has received all writes or disconnected. */
async function drained(res: ServerResponse): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(STUCK_MS)]);
  await Promise.race([once(res, 'drain', { signal }), once(res, 'close', { signal })]).catch(() => res.destroy());
  over.abort();
}

/** Last frame of a failed stream, in any client's format. */
const FAILED = /(?:^|\n)(?:event: (?:error|response\.failed)\n|data: \{"(?:error"|type":"(?:error|response\.failed)"))/;
const LAST_FRAMES = 4096;

/**
 * Returns whether a response may be replayed: it is complete and without an error. Errors are not stored, because a repeated
 * request should retry.
 */
function isWell({ outcomes = [] }: RequestState, { body, isWhole }: Recorded): boolean {
  const [only, ...others] = outcomes;
  if (only && others.length === 0 && only.outcome.status !== 'ok') return false;
  return isWhole && !FAILED.test(body?.subarray(-LAST_FRAMES).toString('utf8') ?? '');
}

/** Headers that each response sets again. */
const NOT_KEPT = /^(?:request-id|server-timing|x-ratelimit-.*|access-control-.*|vary)$/;

function storedResultOf(
  ctx: Koa.Context,
  { statusCode = 500, headers }: IncomingMessage,
  { body }: Recorded,
  fingerprint: string,
): StoredResult | undefined {
  if (statusCode < 200 || statusCode > 299) return undefined;
  const stored = Object.entries(copyHeaders(headers)).filter(([name]) => !NOT_KEPT.test(name));
  const type = ctx.res.getHeader('content-type');
  return {
    fingerprint,
    status: statusCode,
    calls: (ctx.state as RequestState).outcomes?.map(destinationOf) ?? [],
    headers: Object.fromEntries([...stored.map(([name, value]) => [name, String(value)]), ['content-type', type]]),
    ...(body && { body: body.toString('base64') }),
  };
}

function destinationOf({ call: { operation, targets, request } }: { readonly call: CallView }): StoredCall {
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  return { operation, targets, requested: model };
}

/** Applies the checks of every call to the caller of a stored response: models of its key, limits, plan. */
async function checkAgain(
  deps: CallDeps,
  { requestId, session, trace }: RequestState,
  principal: Principal,
  { calls: [first = UNKNOWN, ...others] = [] }: StoredResult,
): Promise<void> {
  for (const { operation, targets, requested } of others)
    assertAllowed(deps.partsOf(operation).catalog, principal, targets, { requested });
  const { operation, targets, requested } = first;
  const request = { model: requested, messages: [] };
  await runCall(deps, new Call(deps, operation, request, { requestId, principal, session, trace, targets, requested }));
}

function replay(ctx: Koa.Context, { status, headers, body }: StoredResult): void {
  if (body === undefined)
    throw new GatewayError(
      'conflict',
      'The request with this Idempotency-Key was processed and charged, but its response was too large to store. Use a new key to send it again.',
      { param: 'Idempotency-Key' },
    );
  ctx.status = status;
  ctx.set(headers);
  // Cost of this request: none.
  if (headers['x-tollgate-cost-usd'] !== undefined) ctx.set('x-tollgate-cost-usd', '0');
  ctx.set('idempotency-replayed', 'true');
  ctx.body = Buffer.from(body, 'base64');
}

/** Stored response. */
export interface StoredResult {
  /** Fingerprint of the request: a different request under the same key is rejected. */
  readonly fingerprint: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Calls of the request; absent in responses stored by an older release. */
  readonly calls?: readonly StoredCall[];
  /** Base64; absent if the response exceeds the maximum size. */
  readonly body?: string | undefined;
}

/** Call of a stored response. */
interface StoredCall {
  readonly operation: Operation;
  readonly targets: readonly Target[];
  readonly requested: string;
}

const UNKNOWN: StoredCall = Object.freeze({ operation: CHAT, targets: [], requested: '' });

/** Time until the keys of a crashed gateway are released; a running gateway renews them. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;

/** Retry delay for a caller while the first request runs. */
const RETRY_MS = 1000;

async function findStored(
  { stored }: IdempotencyDeps,
  name: string,
  fingerprint: string,
): Promise<StoredResult | undefined> {
  const found = await stored.get<StoredResult>(name);
  if (!found || found.fingerprint === fingerprint) return found;
  throw new GatewayError(
    'conflict',
    'This Idempotency-Key was used for another request. Use a new key for each request.',
    { param: 'Idempotency-Key' },
  );
}

/** Stores the completion even if the response is too large to store. */
async function keepResult(
  { stored, keepForMs }: IdempotencyDeps,
  name: string,
  { account }: Principal,
  { body, ...rest }: StoredResult,
): Promise<void> {
  if (!(await stored.set(account, name, { ...rest, body }, keepForMs)))
    await stored.set(account, name, rest, keepForMs);
}

/**
 * Returns the stored result of this request, or a function that releases the key, which the request holds exclusively until then.
 * The key is in the store, so it is valid on every node. Throws `conflict` for a different request, or while the first one runs.
 */
async function openKey(
  own: IdempotencyDeps,
  name: string,
  fingerprint: string,
): Promise<StoredResult | (() => Promise<void>)> {
  const { counters } = own;
  const known = await findStored(own, name, fingerprint);
  if (known) return known;
  const holder = randomUUID();
  const lease = (): Promise<boolean> => counters.lease(name, holder, 1, LEASE_MS, steadyNow());
  if (!(await lease())) throw stillRuns();
  const renewal = setInterval(() => void lease().catch(() => undefined), RENEW_MS).unref();
  const release = async (): Promise<void> => {
    clearInterval(renewal);
    // A key that cannot be released expires.
    await counters.release(name, holder).catch(() => undefined);
  };
  try {
    // The first request may have ended between the two checks.
    const stored = await findStored(own, name, fingerprint);
    if (!stored) return release;
    await release();
    return stored;
  } catch (error) {
    await release();
    throw error;
  }
}

function stillRuns(): GatewayError {
  const options = { param: 'Idempotency-Key', retryAfterMs: RETRY_MS, headers: { 'x-should-retry': 'true' } };
  const message = 'The first request with this Idempotency-Key is still running. Try again in a moment.';
  return new GatewayError('conflict', message, options);
}

/** Returns an opaque name: unreadable in the store, and unambiguous in its parts. */
function nameOf({ account, userId }: Principal, path: string, key: string): string {
  return `idempotency.${createHash('sha256')
    .update(JSON.stringify([account, userId, path, key]))
    .digest('base64url')}`;
}
