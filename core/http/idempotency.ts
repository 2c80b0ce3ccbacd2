import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import { type Call, CHAT, type Operation, type Principal } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import type { AccountDocuments, Counters } from '../../contract/store.ts';
import { steadyNow } from '../../contract/units.ts';
import { assertAllowed } from '../../models/catalog.ts';
import type { Destination } from '../calls/call.ts';
import type { CallDeps } from '../calls/call-deps.ts';
import { runCall } from '../calls/run-call.ts';
import { urlCredentialsOf } from './authenticate.ts';
import type { InnerRequests } from './inner-requests.ts';
import type { RequestState } from './lifecycle.ts';

interface IdempotencyDeps {
  readonly counters: Counters;
  readonly kept: AccountDocuments;
  readonly deps: CallDeps;
  readonly inner: InnerRequests;
  /** The largest response that is kept, in bytes. */
  readonly maxBytes: number;
  readonly keepForMs: number;
  readonly log: Log;
}

/** Responds to a request that has an `Idempotency-Key`: with what is kept for it, or by working on it once. */
export type RespondOnce = (ctx: Koa.Context, body: Buffer) => Promise<void>;

/** The key as the caller sent it. Throws for one that is none. */
export function readIdempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) return key;
  throw new GatewayError('invalid_request', 'Idempotency-Key must have 1 to 255 printable ASCII characters.', {
    param: 'Idempotency-Key',
  });
}

/**
 * Works on a request with a key once: the gateway posts it to itself, so that it runs to its end also when its
 * caller leaves; the response goes out as it comes and is kept when it ended well.
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
      const result = keptOf(ctx, response, recorded, fingerprint);
      // Before the caller sees the end: a request that follows on it finds the result.
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
  const { requestId, alias } = ctx.state as RequestState;
  return {
    path: `${alias?.path ?? ctx.path}${search}`,
    headers: { ...copyHeaders(ctx.headers), 'x-request-id': requestId },
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
async function drained(res: ServerResponse): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(STUCK_MS)]);
  await Promise.race([once(res, 'drain', { signal }), once(res, 'close', { signal })]).catch(() => res.destroy());
  over.abort();
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
    ...{ fingerprint, status: statusCode, calls: (ctx.state as RequestState).outcomes?.map(destinationOf) ?? [] },
    headers: Object.fromEntries([...kept.map(([name, value]) => [name, String(value)]), ['content-type', type]]),
    ...(body && { body: body.toString('base64') }),
  };
}

function destinationOf({ call: { operation, targets, request } }: { readonly call: Call }): KeptCall {
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  return { operation, targets, requested: model };
}

/** Holds the caller of a kept response to what any call is held to: the models of its key, its limits, its plan. */
async function checkAgain(
  deps: CallDeps,
  { requestId, session, trace }: RequestState,
  principal: Principal,
  { calls: [first = UNKNOWN, ...others] = [] }: KeptResult,
): Promise<void> {
  for (const { operation, targets, requested } of others)
    assertAllowed(deps.partsOf(operation).catalog, principal, targets, { requested });
  const { operation, requested: model } = first;
  const caller = { requestId, principal, session, trace };
  await runCall(deps, {
    ...{ operation, caller, stream: false },
    request: { model, messages: [] },
    findTargets: () => first,
  });
}

function replay(ctx: Koa.Context, { status, headers, body }: KeptResult): void {
  if (body === undefined)
    throw new GatewayError(
      'conflict',
      'The request with this Idempotency-Key was processed and charged, but its response was too large to store. Use a new key to send it again.',
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
  /** The calls that it took; absent where an older release kept it. */
  readonly calls?: readonly KeptCall[];
  /** Base64; absent for a response that is larger than what is kept. */
  readonly body?: string | undefined;
}

/** A call that was made for a kept response. */
interface KeptCall extends Destination {
  readonly operation: Operation;
  readonly requested: string;
}

const UNKNOWN: KeptCall = Object.freeze({ operation: CHAT, targets: [], requested: '' });

/** How long a gateway that died has its keys; a living one renews it. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;

/** How soon a caller may try again while the first request runs. */
const RETRY_MS = 1000;

async function findKept({ kept }: IdempotencyDeps, name: string, fingerprint: string): Promise<KeptResult | undefined> {
  const found = await kept.get<KeptResult>(name);
  if (!found || found.fingerprint === fingerprint) return found;
  throw new GatewayError(
    'conflict',
    'This Idempotency-Key was used for another request. Use a new key for each request.',
    { param: 'Idempotency-Key' },
  );
}

/** That it was worked on is remembered also where its response is too large to be kept. */
async function keepResult(
  { kept, keepForMs }: IdempotencyDeps,
  name: string,
  { account }: Principal,
  { body, ...rest }: KeptResult,
): Promise<void> {
  if (!(await kept.set(account, name, { ...rest, body }, keepForMs))) await kept.set(account, name, rest, keepForMs);
}

/**
 * The kept result of this request, or what releases the key, which it has for itself until then: in the store, so that it counts on every
 * node. Throws `conflict` for another request, or while the first one runs.
 */
async function openKey(
  own: IdempotencyDeps,
  name: string,
  fingerprint: string,
): Promise<KeptResult | (() => Promise<void>)> {
  const { counters } = own;
  const known = await findKept(own, name, fingerprint);
  if (known) return known;
  const holder = randomUUID();
  const lease = (): Promise<boolean> => counters.lease(name, holder, 1, LEASE_MS, steadyNow());
  if (!(await lease())) throw stillRuns();
  const renewal = setInterval(() => void lease().catch(() => undefined), RENEW_MS).unref();
  const release = async (): Promise<void> => {
    clearInterval(renewal);
    // What cannot be released runs out.
    await counters.release(name, holder).catch(() => undefined);
  };
  try {
    // The first request may have ended between the two looks.
    const kept = await findKept(own, name, fingerprint);
    if (!kept) return release;
    await release();
    return kept;
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

/** Nothing of it is readable in the store, and no part can pass for another. */
function nameOf({ account, userId }: Principal, path: string, key: string): string {
  return `idempotency.${createHash('sha256')
    .update(JSON.stringify([account, userId, path, key]))
    .digest('base64url')}`;
}
