import type { Target } from '../contract/call.ts';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { Endpoint, HttpRequest, UpstreamFailure } from '../contract/provider.ts';
import { isStreamFailure, StreamFailure } from '../contract/provider.ts';
import { parseErrorBody } from '../contract/read-json.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import { type Upstream, UpstreamError, type UpstreamResponse } from '../upstream/upstream.ts';
import { FAILURES, failureToError } from './failures.ts';
import type { LiveCall } from './live-call.ts';

/** A failed attempt: what the caller would be told, and whether another target may be asked instead. */
export interface FailedAttempt {
  readonly error: GatewayError;
  readonly failover: boolean;
}

export interface AttemptDeps {
  readonly upstream: Upstream;
  readonly hooks: CompiledHooks;
}

/** The longest error body that is read, in bytes: enough for any vendor's words. */
const MAX_ERROR_BYTES = 64 * 1024;

/** How often a target is asked again when the connection failed before anything was sent. */
const CONNECT_RETRIES = 1;

/** Sends one request and answers a response with a good status; anything else throws, classified. */
export async function exchange(
  deps: AttemptDeps,
  call: LiveCall,
  target: Target,
  endpoint: Endpoint,
  request: HttpRequest,
): Promise<UpstreamResponse> {
  assertConfigured(endpoint, target);
  const { hooks, upstream } = deps;
  const outgoing = hooks.send ? ((await hooks.send(call, request, target)) ?? request) : request;
  call.measures.target = target;
  call.measures.attempts += 1;
  const started = performance.now();
  try {
    const response = await send(upstream, call, target, endpoint, outgoing, CONNECT_RETRIES);
    if (response.status >= 200 && response.status < 300 && response.status !== 204 && response.status !== 205) {
      call.measures.unanswered.push(target);
      return response;
    }
    // An error status is an answer that no vendor charges for.
    throw new StreamFailure(await classify(endpoint, response));
  } finally {
    call.measures.upstreamMs += performance.now() - started;
  }
}

/** Sends a request, and again where the connection failed before anything of it was sent. */
function send(
  upstream: Upstream,
  call: LiveCall,
  target: Target,
  endpoint: Endpoint,
  request: HttpRequest,
  retries: number,
): Promise<UpstreamResponse> {
  return upstream.send(endpoint, request, { signal: call.signal }).catch((error: unknown) => {
    if (error instanceof UpstreamError && error.sent && !error.refused) call.measures.unanswered.push(target);
    const again =
      error instanceof UpstreamError && error.phase === 'connect' && !error.sent && error.failure !== 'timeout';
    if (!again || retries === 0 || call.signal.aborted) throw error;
    return send(upstream, call, target, endpoint, request, retries - 1);
  });
}

/**
 * An error inside an answer with a good status, before any of the answer: the vendor did not do the work, so the attempt
 * that {@link exchange} noted last owes nothing. What earlier attempts owe stays.
 */
export function noteRefusal(call: LiveCall, error: unknown): void {
  if (isStreamFailure(error) || error instanceof PageError) call.measures.unanswered.pop();
}

/** A page of HTML under a good status, as proxies and sign-in walls send: whoever wrote it, no model did. */
export class PageError extends GatewayError {
  constructor(cause?: unknown) {
    super('provider_invalid_response', 'The provider answered with a web page, not with an answer.', { cause });
  }
}

function assertConfigured(endpoint: Endpoint, target: Target): void {
  const { credential } = endpoint;
  if (!credential?.required || credential.value !== undefined) return;
  const usually = credential.env === undefined ? '' : `, usually from the environment variable ${credential.env}`;
  throw new GatewayError(
    'provider_not_configured',
    `The provider "${target.provider}" has no API key yet. Its operator sets \`apiKey\` in its configuration${usually}.`,
  );
}

async function classify(endpoint: Endpoint, response: UpstreamResponse): Promise<UpstreamFailure> {
  if (response.status < 400) {
    response.destroy();
    return { class: 'upstream_error', message: `answered with status ${response.status}` };
  }
  const bytes = await response.readAll(MAX_ERROR_BYTES).catch(() => Buffer.alloc(0));
  return endpoint.error(response.status, parseErrorBody(bytes.toString('utf8')), response.headers);
}

/** Errors of core's own that say something about the target, so that another one may do better. */
const UPSTREAM_FAULTS: ReadonlySet<string> = new Set([
  'provider_not_configured',
  'provider_invalid_response',
  'provider_unavailable',
]);

/** What an attempt's failure means for the call. An abort by the caller is thrown on as it is. */
export function failedAttempt(thrown: unknown, target: Target): FailedAttempt {
  if (isStreamFailure(thrown)) return fromFailure(thrown.failure, target, thrown);
  if (thrown instanceof UpstreamError) {
    if (thrown.phase === 'aborted') throw thrown;
    return fromFailure({ class: thrown.failure, message: thrown.message }, target, thrown);
  }
  if (isGatewayError(thrown)) return { error: thrown, failover: UPSTREAM_FAULTS.has(thrown.code) };
  throw thrown;
}

function fromFailure(failure: UpstreamFailure, target: Target, cause: unknown): FailedAttempt {
  return { error: failureToError(failure, target.provider, cause), failover: FAILURES[failure.class].failover };
}
