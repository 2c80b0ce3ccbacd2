import { CHAT, type Target } from '../../contract/call.ts';
import { GatewayError, isGatewayError, rewordError } from '../../contract/errors.ts';
import { parseArgumentNumbers } from '../../contract/exact-json.ts';
import { FAILURES, failureToError } from '../../contract/failures.ts';
import type { AttemptReport } from '../../contract/hooks.ts';
import { deepFreeze, measureJson, parseErrorBody, RESPONSE_BOUNDS, readObject } from '../../contract/json.ts';
import type { SentBy } from '../../contract/operation.ts';
import {
  type ClientLibrary,
  type CodecCall,
  type Endpoint,
  type FailureClass,
  type HttpRequest,
  isStreamFailure,
  StreamFailure,
  type Transport,
  type UpstreamFailure,
  type UpstreamPhase,
} from '../../contract/provider.ts';
import { cutKey, cutSecrets, redact } from '../../contract/redaction.ts';
import { formatUsd } from '../../contract/units.ts';
import { UpstreamError, type UpstreamResponse } from '../../egress/upstream.ts';
import { pluginError } from '../plugins/attribution.ts';
import { redactError, redactText } from '../plugins/plugin-secrets.ts';
import { type Rejected, rejectedFields, withoutAdded } from './added-fields.ts';
import { type Call, owedBy, recordDropped } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { isRefusal, isWebPage, webPageError } from './error-marks.ts';
import { assertEffects, effectsOf } from './gates.ts';
import type { RunningAttempt } from './hedge.ts';
import { refuseOwnToken, withOwnToken } from './pass-through-auth.ts';
import { withTrace } from './trace.ts';

/** Maximum size of an error body that is read, in bytes. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Maximum size of a non-streaming response, in bytes. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** Sends one request and returns the response if its status is below 300. Throws a classified error otherwise. */
export async function sendAttempt(
  deps: CallDeps,
  call: Call,
  target: Target,
  offered: Endpoint,
  requested: HttpRequest,
  by?: SentBy,
): Promise<UpstreamResponse> {
  const isOwn = call.client?.ownSubscription === true;
  const { rejected } = call.record;
  call.record.rejected = undefined;
  call.record.omitted = undefined;
  const omitted = rejected?.target === target ? rejected : undefined;
  const accepted = withoutAdded(requested, omitted?.fields ?? deps.rejected.of(target));
  const { endpoint, request } = isOwn
    ? withOwnToken(call, target, offered, accepted)
    : { endpoint: call.record.key?.endpoint ?? offered, request: accepted };
  const { credential } = endpoint;
  const { effects } = call.at(target);
  if (credential?.required && credential.value === undefined) throw notConfigured(target, credential.env);
  // Effects are checked in the request as written, native or translated. Plugins are responsible for later changes.
  const body = readObject(request.body);
  let mayAct = false;
  for (const field in effects)
    if (field !== 'model') mayAct ||= (body[field] ?? false) !== false;
    else for (const { values } of effects[field] ?? []) mayAct ||= values?.test(target.model) !== false;
  const needs = mayAct ? effectsOf(effects, target, request) : [];
  if (needs.length > 0) await assertEffects(deps, call, needs, [target]);
  const client = endpoint.client && startClient(deps, call, target, endpoint, endpoint.client);
  const changed = client ? request : (call.hooks.send?.(call, request, target) ?? request);
  const written = changed instanceof Promise ? await changed : changed;
  const { record, trace, elapsedMs: startedMs } = call;
  const outgoing = trace.parentId === undefined || client ? written : withTrace(written, trace);
  record.target = target;
  record.attemptedMs = startedMs;
  const attempt: (typeof record.attempts)[number] = record.key
    ? { target: call.at(target).name, key: record.key.name, ms: 0 }
    : { target: call.at(target).name, ms: 0 };
  record.attempts.push(attempt);
  try {
    const options = {
      ...by,
      ...(client && { transport: client.transport }),
      signal: record.attemptSignal ?? call.signal,
      heldUntil: call.ended,
      deadlines: record.timeouts,
    };
    let response = await deps.upstream.send(endpoint, outgoing, options);
    if (credential?.refused && isWorthAgain(credential, response))
      response = await deps.upstream.send(endpoint, outgoing, options);
    record.status = response.status;
    attempt.status = response.status;
    if (response.status < 300) {
      record.sentTo.push(target);
      record.omitted = omitted;
      // A chat may still reject a field in a response with status 200.
      if (call.operation !== CHAT) rememberRejected(deps, call);
      record.firstByteMs ??= call.elapsedMs;
      const served = endpoint.tierHeader && response.headers[endpoint.tierHeader];
      if (served) record.serviceTier = served.toLowerCase();
      return response;
    }
    // Vendors do not charge for error responses.
    const failure = await classify(endpoint, response);
    if (isOwn) refuseOwnToken(target, response.status, failure);
    recordRejected(deps, call, target, accepted, response.status, failure, omitted);
    throw new StreamFailure(failure);
  } catch (thrown) {
    const error = client?.failure() ?? thrown;
    // Requests that may have reached their vendor are recorded even without a response.
    if (error instanceof UpstreamError && error.sent && !error.refused) record.sentTo.push(target);
    throw error;
  } finally {
    const ms = call.elapsedMs - startedMs;
    attempt.ms = Math.round(ms);
    record.upstreamMs += ms;
  }
}

/** Records the fields that the gateway added and that an error rejects, so that the next attempt omits them. */
function recordRejected(
  deps: CallDeps,
  call: Call,
  target: Target,
  request: HttpRequest,
  status: number,
  failure: UpstreamFailure,
  omitted: Rejected | undefined,
): void {
  const named = rejectedFields(request, status, failure);
  if (named.length === 0) return;
  call.record.rejected = { target, fields: [...(omitted?.fields ?? deps.rejected.of(target)), ...named] };
}

/** Does the same for an error in a response whose status is 200, before any content. `request` is what the codec wrote. */
export function readRejection(
  deps: CallDeps,
  call: Call,
  target: Target,
  { request, error }: { readonly request: HttpRequest; readonly error: unknown },
): void {
  if (request.added === undefined || !isStreamFailure(error) || error.failure.class !== 'invalid_request') return;
  const { omitted } = call.record;
  const accepted = withoutAdded(request, omitted?.fields ?? deps.rejected.of(target));
  recordRejected(deps, call, target, accepted, 400, error.failure, omitted);
}

/** Omits fields from later requests to a target that has responded to a request without them. Logs it once. */
export function rememberRejected({ log, rejected }: CallDeps, call: Call): void {
  const { omitted } = call.record;
  if (!omitted) return;
  call.record.omitted = undefined;
  const fields = rejected.remember(omitted);
  if (fields.length === 0) return;
  log.warn(
    { request_id: call.requestId, target: call.at(omitted.target).name, fields },
    'a provider rejected fields that the gateway adds; this target is sent none of them until the next reload',
  );
}

/** Attempt by the client library of a vendor. */
interface ClientAttempt {
  readonly transport: Transport;
  /** Failure of a connection that ended the attempt; the library may have wrapped it. */
  failure(): unknown;
}

/** Runs a client library as the transport of an attempt. Its requests go out like those of codecs. */
function startClient(
  deps: CallDeps,
  call: Call,
  target: Target,
  endpoint: Endpoint,
  client: ClientLibrary,
): ClientAttempt {
  let broken: unknown;
  let isOver = false;
  return {
    async transport(request, signal) {
      const response = await client(request, signal, async (origin, sent, own) => {
        try {
          const written = (await call.hooks.send?.(call, sent, target)) ?? sent;
          const outgoing = call.trace.parentId === undefined ? written : withTrace(written, call.trace);
          return await deps.upstream.send(networkOf(endpoint, origin), outgoing, {
            signal: own && own !== signal ? AbortSignal.any([signal, own]) : signal,
            deadlines: call.record.timeouts,
          });
        } catch (error) {
          // Otherwise the attempt itself has ended, with the reason, or the library has aborted the request.
          if (!signal.aborted && own?.aborted !== true) broken ??= error;
          throw error;
        }
      });
      isOver = true;
      if (response.dropped) recordDropped(call, response.dropped);
      return response;
    },
    failure: () => (isOver ? undefined : broken),
  };
}

const networks = new WeakMap<Endpoint, Map<string, Endpoint>>();

/** Maximum number of origins that are remembered for an endpoint. */
const MAX_ORIGINS = 16;

/** The endpoint of a client library at one origin, as the network needs it. */
function networkOf(endpoint: Endpoint, origin: string): Endpoint {
  const known = networks.get(endpoint) ?? new Map<string, Endpoint>();
  networks.set(endpoint, known);
  const found = known.get(origin);
  if (found) return found;
  const made: Endpoint = Object.create(endpoint, { baseUrl: { value: origin }, client: { value: undefined } });
  if (known.size < MAX_ORIGINS) known.set(origin, made);
  return made;
}

/**
 * Returns true and discards the response if the vendor rejected a renewable credential. The request is then sent again.
 */
function isWorthAgain(credential: NonNullable<Endpoint['credential']>, response: UpstreamResponse): boolean {
  if (response.status < 400 || credential.refused?.(response.status, response.headers) !== true) return false;
  response.destroy();
  return true;
}

/**
 * Cancels the charge of the last attempt if its success response contained an error before any content. Earlier
 * attempts stay owed.
 */
export function forgetRefused(call: Call, error: unknown): void {
  if (isStreamFailure(error) || isWebPage(error)) call.record.sentTo.pop();
}

/**
 * Reads and parses a non-streaming response. Vendors may send blank lines before the JSON to keep the connection alive.
 * Rejects with `provider_invalid_response` for invalid JSON or JSON over its bounds, and with `overloaded` if there is
 * no memory for it. Removes the key of `endpoint`.
 */
export async function readJson(
  response: UpstreamResponse,
  maxBytes: number = MAX_RESPONSE_BYTES,
  endpoint?: Endpoint,
): Promise<unknown> {
  const bytes = await response.readAll(maxBytes);
  try {
    const { exceeded, heapBytes, mayChange } = measureJson(bytes, RESPONSE_BOUNDS);
    if (exceeded !== undefined) throw invalidResponse(EXCEEDED[exceeded]);
    response.reserve(heapBytes);
    const text = cutKey(bytes.toString('utf8'), endpoint);
    return mayChange ? parseArgumentNumbers(text) : JSON.parse(text);
  } catch (error) {
    // Another target may be tried now.
    response.release();
    if (!(error instanceof SyntaxError)) throw error;
    if (/^\s*</.test(bytes.toString('utf8', 0, 64))) throw webPageError(error);
    throw invalidResponse('something that is not JSON', error);
  }
}

const EXCEEDED = Object.freeze({
  depth: `JSON that is nested deeper than ${RESPONSE_BOUNDS.maxDepth} levels`,
  values: 'JSON with too many values',
});

function invalidResponse(what: string, cause?: unknown): GatewayError {
  return new GatewayError('provider_invalid_response', `The provider returned ${what}.`, { cause });
}

/** Facts about the call for a codec. */
export function codecCallOf(call: Call, target: Target): CodecCall {
  const { stream, id, principal } = call;
  return { model: target.model, stream, created: Math.floor(call.startedAt / 1000), id, principal };
}

function notConfigured(target: Target, env: string | undefined): GatewayError {
  const usually = env === undefined ? '' : `, usually from the environment variable ${env}`;
  return new GatewayError(
    'provider_not_configured',
    `The provider "${target.provider}" has no API key. The operator sets its \`apiKey\` in the configuration${usually}.`,
  );
}

async function classify(endpoint: Endpoint, response: UpstreamResponse): Promise<UpstreamFailure> {
  if (response.status < 400) {
    response.destroy();
    return { class: 'upstream_error', message: `returned status ${response.status}` };
  }
  const bytes = await response.readAll(MAX_ERROR_BYTES).catch(() => Buffer.alloc(0));
  return endpoint.error(response.status, parseErrorBody(bytes.toString('utf8')), response.headers);
}

/** Response headers that describe the call so far, with names in lower case (listed in docs/http.md). */
export function responseHeaders(call: Call): Record<string, string> {
  const { target = call.targets[0], attempts, upstreamMs, lane, skipped, unmappedFinish, dropped } = call.record;
  const { providerHeaders, hookHeaders } = call.record;
  const metered = owedBy(call.record);
  const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
  const headers: Record<string, string> = {};
  if (providerHeaders && target) {
    const limits = call.at(target).offer?.rateLimits?.(providerHeaders) ?? providerHeaders;
    for (const name of Object.keys(limits)) {
      const value = limits[name];
      if (RATE_LIMIT.test(name) && value !== undefined && RATE_VALUE.test(value)) headers[name] = value;
    }
  }
  if (target) {
    headers['x-tollgate-provider'] = target.provider;
    headers['x-tollgate-model'] = headerSafe(target.model);
  }
  headers['x-tollgate-attempts'] = String(attempts.length);
  if (lane) headers['x-tollgate-lane'] = lane;
  if (unmappedFinish !== undefined) headers['x-tollgate-finish'] = headerSafe(unmappedFinish);
  if (skipped.length > 0) headers['x-tollgate-skipped'] = skipped.join(', ');
  headers['server-timing'] = `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`;
  const missing = [...(dropped ?? []), ...(call.client?.omitted ?? [])];
  if (missing.length > 0) headers['x-tollgate-dropped'] = headerSafe(missing.join(', '));
  if (metered) headers['x-tollgate-cost-usd'] = metered.cost === undefined ? 'unknown' : formatUsd(metered.cost);
  for (const [name, value] of call.headers) if (HEADER.test(name)) headers[name] = headerSafe(value);
  return Object.assign(headers, hookHeaders);
}

/** Headers that plugins may set: `x-` headers only, so that no HTTP header is replaced. */
const HEADER = /^x-[a-z0-9-]{1,60}$/;

/** Percent-encodes a value that is not printable ASCII, such as a model name from a caller. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

/** Vendor's own rate limits, forwarded as `x-ratelimit-*`. */
const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;

/**
 * Numbers (`12`, `1.5`), durations (`6m0s`, `20ms`) and times (`2026-01-01T00:00:00Z`). Other values are not forwarded,
 * since they may contain secrets.
 */
const RATE_VALUE =
  /^(?:-?\d{1,15}(?:\.\d{1,9})?|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|d|h|m|s))+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;

/** Failed attempt, with the caller's error and whether another target may be tried. */
export interface FailedAttempt {
  readonly error: GatewayError;
  readonly failover: boolean;
  readonly class?: FailureClass;
  /** True if the target cannot do what the request asks for. */
  readonly isRefusal?: boolean;
  /** Phase in which the connection failed. */
  readonly phase?: UpstreamPhase;
  /** True if the request may have reached the vendor by then. */
  readonly isSent?: boolean;
  /** System error code, such as `ECONNREFUSED`. */
  readonly errno?: string;
  /** For operators. */
  readonly message: string;
}

/** Core's own errors that concern the target, so that another one may succeed. */
const TARGET_ERRORS: ReadonlySet<string> = new Set([
  'provider_not_configured',
  'provider_invalid_response',
  'provider_unavailable',
  'upstream_rate_limited',
]);

/** Classifies the failure of an attempt. Rethrows an abort by the caller. */
export function readFailedAttempt(thrown: unknown, target: Target, endpoint: Endpoint | undefined): FailedAttempt {
  if (isStreamFailure(thrown)) return ofFailure(thrown.failure, target, endpoint);
  if (thrown instanceof UpstreamError) {
    if (thrown.phase === 'aborted') throw thrown;
    const { cause, phase, sent: isSent } = thrown;
    const message = cause instanceof Error ? `${thrown.message} (${cause.message})` : thrown.message;
    const failed = ofFailure({ class: thrown.failure, message: thrown.message }, target, endpoint, thrown);
    const errno = errnoOf(cause);
    return { ...failed, message, phase, isSent, ...(errno !== undefined && { errno }) };
  }
  if (isGatewayError(thrown)) {
    const error = withoutSecrets(redactError(target.provider, thrown), endpoint);
    const failover = TARGET_ERRORS.has(error.code) || isRefusal(thrown);
    return { error, failover, isRefusal: isRefusal(thrown), message: error.message };
  }
  // Unexpected error of a codec.
  const shown = redactError(target.provider, thrown);
  const error = pluginError(`provider "${target.provider}"`, shown);
  return {
    error,
    failover: false,
    message: redact(shown instanceof Error ? shown.message : String(shown), endpoint),
  };
}

/** Error code of the system, or of TLS, for a failed connection. */
function errnoOf(cause: unknown): string | undefined {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : undefined;
}

function ofFailure(
  failure: UpstreamFailure,
  target: Target,
  endpoint: Endpoint | undefined,
  cause?: unknown,
): FailedAttempt {
  const message = redactText(target.provider, failure.message);
  return {
    error: failureToError({ ...failure, message }, target.provider, cause, endpoint),
    failover: FAILURES[failure.class].failover,
    class: failure.class,
    message: redact(message, endpoint),
  };
}

/** Removes secrets from the error of a codec, which may quote its vendor. */
function withoutSecrets(error: GatewayError, endpoint: Endpoint | undefined): GatewayError {
  const { message, param } = error;
  const shown = cutSecrets(message, endpoint);
  const place = param === undefined ? undefined : cutSecrets(param, endpoint);
  return shown === message && place === param ? error : rewordError(error, { message: shown, param: place });
}

/** Report of an ended attempt for the `attempt` hook. `then`: the target that is tried next. */
export function attemptReport(
  { targets, elapsedMs }: Call,
  { call: own, target, isSecond, startedMs }: Pick<RunningAttempt, 'call' | 'target' | 'isSecond' | 'startedMs'>,
  next: AttemptReport['next'],
  failed?: FailedAttempt,
  then?: Target,
): AttemptReport {
  const { status, key } = own.record;
  return deepFreeze({
    target,
    number: targets.indexOf(target) + 1,
    next,
    ...(key && { key: key.name }),
    durationMs: elapsedMs - startedMs,
    ...(isSecond && { isSecond }),
    ...(then && { nextTarget: then }),
    ...(status !== undefined && { status }),
    ...(failed && {
      failure: {
        message: redact(failed.message),
        error: failed.error,
        ...(failed.class && { class: failed.class }),
      },
    }),
  });
}
