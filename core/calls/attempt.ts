import type { Target } from '../../contract/call.ts';
import { GatewayError, isGatewayError, rewordError } from '../../contract/errors.ts';
import { FAILURES, failureToError } from '../../contract/failures.ts';
import type { AttemptReport } from '../../contract/hooks.ts';
import { deepFreeze, measureJson, parseErrorBody, RESPONSE_BOUNDS, readObject } from '../../contract/json.ts';
import type { SentBy } from '../../contract/operation.ts';
import {
  type CodecCall,
  type Endpoint,
  type FailureClass,
  type HttpRequest,
  isStreamFailure,
  type ResponseHeaders,
  StreamFailure,
  type UpstreamFailure,
  type UpstreamPhase,
} from '../../contract/provider.ts';
import { cutSecrets, redact } from '../../contract/redaction.ts';
import { formatUsd } from '../../contract/units.ts';
import { UpstreamError, type UpstreamResponse } from '../../egress/upstream.ts';
import { pluginError } from '../plugins/attribution.ts';
import { type Call, type NotedAttempt, owedBy, withTrace } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { isRefusal, isWebPage, webPageError } from './error-marks.ts';
import { assertEffects, effectsFor, effectsOf } from './ingress.ts';
import { refuseOwnToken, withOwnToken } from './own-token.ts';

/** The longest error body that is read, in bytes: enough for any vendor's words. */
const MAX_ERROR_BYTES = 64 * 1024;

/** The largest whole response that is read, in bytes. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** Sends one request and resolves with a response of a good status; anything else throws, classified. */
export async function sendAttempt(
  deps: CallDeps,
  call: Call,
  target: Target,
  offered: Endpoint,
  requested: HttpRequest,
  by?: SentBy,
): Promise<UpstreamResponse> {
  const isOwn = call.client?.ownSubscription === true;
  const { endpoint, request } = isOwn
    ? withOwnToken(call, target, offered, requested)
    : { endpoint: call.record.key?.endpoint ?? offered, request: requested };
  const { credential } = endpoint;
  const effects = effectsFor(endpoint.effects, target.model);
  if (credential?.required && credential.value === undefined) throw notConfigured(target, credential.env);
  // Whichever way it came, what is sent is what is checked; what plugins change from here on is theirs.
  const body = readObject(request.body);
  let mayAct = false;
  for (const field in effects)
    if (field !== 'model') mayAct ||= (body[field] ?? false) !== false;
    else for (const { values } of effects[field] ?? []) mayAct ||= values?.test(target.model) !== false;
  const needs = mayAct ? effectsOf(effects, target, request) : [];
  if (needs.length > 0) await assertEffects(deps, call, needs, [target]);
  const changed = call.hooks.send?.(call, request, target) ?? request;
  const written = changed instanceof Promise ? await changed : changed;
  const { record, trace, elapsedMs: startedMs } = call;
  const outgoing = trace.parentId === undefined ? written : withTrace(written, trace);
  record.target = target;
  const attempt: NotedAttempt = { target, startedMs, ms: 0 };
  if (record.key) attempt.key = record.key.name;
  record.attempts.push(attempt);
  try {
    const options = {
      ...by,
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
      record.firstByteMs ??= call.elapsedMs;
      const served = endpoint.tierHeader && response.headers[endpoint.tierHeader];
      if (served) record.serviceTier = served.toLowerCase();
      return response;
    }
    // An error status is a response that no vendor charges for.
    const failure = await classify(endpoint, response);
    if (isOwn) refuseOwnToken(target, response.status, failure);
    throw new StreamFailure(failure);
  } catch (error) {
    // One that may have reached its vendor is noted, also when no response comes.
    if (error instanceof UpstreamError && error.sent && !error.refused) record.sentTo.push(target);
    throw error;
  } finally {
    attempt.ms = call.elapsedMs - startedMs;
    record.upstreamMs += attempt.ms;
  }
}

/** Whether a credential that was refused is made anew: nothing was done for it. */
function isWorthAgain(credential: NonNullable<Endpoint['credential']>, response: UpstreamResponse): boolean {
  if (response.status < 400 || credential.refused?.(response.status, response.headers) !== true) return false;
  response.destroy();
  return true;
}

/**
 * An error inside a response with a good status, before any content: the attempt that was noted last owes nothing. What earlier
 * attempts owe stays.
 */
export function forgetRefused(call: Call, error: unknown): void {
  if (isStreamFailure(error) || isWebPage(error)) call.record.sentTo.pop();
}

/**
 * Reads and parses a response that is no stream; vendors may send blank lines before the JSON to keep the connection alive. Rejects with
 * `provider_invalid_response` for what is not JSON or goes over its bounds, and with `overloaded` where there is no memory for it.
 */
export async function readJson(response: UpstreamResponse, maxBytes: number = MAX_RESPONSE_BYTES): Promise<unknown> {
  const bytes = await response.readAll(maxBytes);
  try {
    const { exceeded, heapBytes } = measureJson(bytes, RESPONSE_BOUNDS);
    if (exceeded !== undefined) throw invalidResponse(EXCEEDED[exceeded]);
    response.reserve(heapBytes);
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // Another target may be asked now.
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

/** What a codec is told of the call. */
export function codecCallOf(call: Call, target: Target): CodecCall {
  return { model: target.model, stream: call.stream, created: Math.floor(call.startedAt / 1000), id: call.id };
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

/** The headers of a response. */
export interface ResponseNotes {
  readonly call: Call;
  /** The headers, as far as the call has come when they are asked for; names in lower case. */
  headers(): Record<string, string>;
}

interface NotesInput {
  /** Request fields that the provider does not have. */
  readonly dropped?: readonly string[];
  /** Whose rate limits are passed on. */
  readonly endpoint?: Endpoint;
  readonly upstream?: ResponseHeaders;
  /** Headers that a plugin adds. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Tells how a response came about (docs/http.md lists the headers). */
export function responseNotes(call: Call, target: Target | undefined, input: NotesInput): ResponseNotes {
  const { dropped = [], endpoint, upstream = {}, headers = {} } = input;
  return {
    call,
    headers() {
      const { attempts, upstreamMs, lane, skipped, unmappedFinish } = call.record;
      const metered = owedBy(call.record);
      const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
      const told: Record<string, string> = {};
      const limits = endpoint ? (endpoint.rateLimits?.(upstream) ?? upstream) : {};
      for (const name of Object.keys(limits)) {
        const value = limits[name];
        if (RATE_LIMIT.test(name) && value !== undefined && RATE_VALUE.test(value)) told[name] = value;
      }
      if (target) {
        told['x-tollgate-provider'] = target.provider;
        told['x-tollgate-model'] = headerSafe(target.model);
      }
      told['x-tollgate-attempts'] = String(attempts.length);
      if (lane) told['x-tollgate-lane'] = lane;
      if (unmappedFinish !== undefined) told['x-tollgate-finish'] = headerSafe(unmappedFinish);
      if (skipped.length > 0) told['x-tollgate-skipped'] = skipped.join(', ');
      told['server-timing'] = `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`;
      if (dropped.length > 0) told['x-tollgate-dropped'] = headerSafe(dropped.join(', '));
      if (metered) told['x-tollgate-cost-usd'] = metered.cost === undefined ? 'unknown' : formatUsd(metered.cost);
      for (const [name, value] of call.headers) if (HEADER.test(name)) told[name] = headerSafe(value);
      return Object.assign(told, headers);
    },
  };
}

/** What plugins may tell: headers of our own, so that none of HTTP's is replaced. */
const HEADER = /^x-[a-z0-9-]{1,60}$/;

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

/** A vendor's own limits, passed on as `x-ratelimit-*`. */
const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;

/** Numbers (`12`, `1.5`), spans (`6m0s`, `20ms`) and times (`2026-01-01T00:00:00Z`): nothing else is a limit, and words may be secrets. */
const RATE_VALUE =
  /^(?:-?\d{1,15}(?:\.\d{1,9})?|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|d|h|m|s))+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;

/** A failed attempt: what the caller would be told, and whether another target may be asked instead. */
export interface FailedAttempt {
  readonly error: GatewayError;
  readonly failover: boolean;
  readonly class?: FailureClass;
  /** Whether the target could not be sent the request at all. */
  readonly isRefusal?: boolean;
  /** Where the connection failed, and whether the request may have reached the vendor by then. */
  readonly phase?: UpstreamPhase;
  readonly isSent?: boolean;
  /** What the system says of it, such as `ECONNREFUSED`. */
  readonly errno?: string;
  /** For operators. */
  readonly message: string;
}

/** Errors of core's own that say something about the target, so that another one may do better. */
const TARGET_ERRORS: ReadonlySet<string> = new Set([
  'provider_not_configured',
  'provider_invalid_response',
  'provider_unavailable',
  'upstream_rate_limited',
]);

/** What an attempt's failure means for the call. An abort by the caller is thrown on as it is. */
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
    const error = withoutSecrets(thrown, endpoint);
    const failover = TARGET_ERRORS.has(error.code) || isRefusal(thrown);
    return { error, failover, isRefusal: isRefusal(thrown), message: error.message };
  }
  // A codec that stumbles over what it was given.
  const error = pluginError(`provider "${target.provider}"`, thrown);
  return {
    error,
    failover: false,
    message: redact(thrown instanceof Error ? thrown.message : String(thrown), endpoint),
  };
}

/** The word of the system, or of TLS, for what happened to a connection. */
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
  return {
    error: failureToError(failure, target.provider, cause, endpoint),
    failover: FAILURES[failure.class].failover,
    class: failure.class,
    message: redact(failure.message, endpoint),
  };
}

/** An error that a codec made, which may have a vendor's words in it. */
function withoutSecrets(error: GatewayError, endpoint: Endpoint | undefined): GatewayError {
  const { message, param } = error;
  const shown = cutSecrets(message, endpoint);
  const place = param === undefined ? undefined : cutSecrets(param, endpoint);
  return shown === message && place === param ? error : rewordError(error, { message: shown, param: place });
}

/** An attempt that is over. */
interface EndedAttempt extends Pick<AttemptReport, 'target' | 'number' | 'next'> {
  readonly startedMs: number;
  readonly failed: FailedAttempt | undefined;
  /** Whether it was begun beside another one that takes long. */
  readonly isSecond?: boolean;
  /** The target that is tried now. */
  readonly then: Target | undefined;
}

/** What the `attempt` hook is told. */
export function attemptReport(
  call: Call,
  { target, number, isSecond, startedMs, failed, next, then }: EndedAttempt,
): AttemptReport {
  const { status, key } = call.record;
  return deepFreeze({
    target,
    number,
    next,
    ...(key && { key: key.name }),
    durationMs: call.elapsedMs - startedMs,
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
