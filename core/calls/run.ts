import type { Operation, OperationRequest, OutcomeStatus, Target } from '../contract/call.ts';
import { GatewayError, toGatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/log.ts';
import type { CodecCall, Provider } from '../contract/provider.ts';
import type { SpeechProvider } from '../contract/speech-provider.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import type { SpeechCache } from '../speech/cache.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { failedAttempt } from './attempt.ts';
import { type CallInit, LiveCall } from './live-call.ts';
import { meterUnanswered } from './meter.ts';
import type { ModelCatalog } from './model-catalog.ts';
import type { Pending } from './pending.ts';
import { assertAllowed, type Catalog } from './targets.ts';

/** What every operation of the pipeline works with; fixed once the gateway has booted. */
export interface PipelineDeps {
  readonly upstream: Upstream;
  readonly catalog: Catalog & Pick<ModelCatalog, 'priceOf'>;
  readonly hooks: Readonly<Record<Operation, CompiledHooks>>;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly speech: ReadonlyMap<string, SpeechProvider>;
  /** Absent unless the configuration has one. */
  readonly speechCache?: SpeechCache;
  readonly log: Log;
  /** `finish` hooks still at work; a drain waits for them. */
  readonly pending: Pending;
}

/** Ends a call beside its answer: the caller does not wait for the books, a drain does. */
export function finishBeside(deps: PipelineDeps, call: LiveCall, status: OutcomeStatus, error?: GatewayError): void {
  const finishing = call.finish(status, error);
  if (finishing) deps.pending.track(finishing);
}

/** A request on its way in: what is asked, and of whom. */
export interface Ask<O extends Operation> {
  readonly operation: O;
  readonly request: OperationRequest[O];
  readonly stream: boolean;
  readonly targets: readonly Target[];
  /** The model as the caller wrote it, when that was an alias. */
  readonly requested?: string;
}

/** Admits a call and works on it; whatever goes wrong passes the `error` hook and ends the call. */
export async function runCall<O extends Operation, T>(
  deps: PipelineDeps,
  ask: Ask<O>,
  init: CallInit,
  work: (call: LiveCall<O>) => Promise<T>,
): Promise<T> {
  const hooks = deps.hooks[ask.operation];
  const call = new LiveCall(ask.operation, ask.request, ask.stream, ask.targets, init, hooks);
  try {
    assertLive(call);
    assertAllowed(modelsOf(deps, ask.operation), init.principal, ask.targets, ask.requested);
    const admitted = hooks.admit?.(call);
    if (admitted) await admitted;
    if (hooks.prepare || hooks.route) await redirect(deps, call, hooks);
    return await work(call);
  } catch (thrown) {
    throw await endWithError(deps, call, thrown);
  }
}

/** Speech vendors name their models themselves; an allow-list counts those as written. */
function modelsOf(deps: PipelineDeps, operation: Operation): Pick<Catalog, 'find'> {
  return operation === 'speech' ? { find: () => undefined } : deps.catalog;
}

/** Lets plugins change what is asked, and of whom. */
async function redirect(deps: PipelineDeps, call: LiveCall, hooks: CompiledHooks): Promise<void> {
  const view = call;
  if (hooks.prepare) call.request = (await hooks.prepare(view, call.request)) ?? call.request;
  if (!hooks.route) return;
  const routed = await hooks.route(view);
  if (!routed) return;
  assertAllowed(modelsOf(deps, call.operation), call.principal, routed);
  call.targets = routed;
}

/** Ends a call that failed, and answers the error as the `error` hooks leave it. */
export async function endWithError(deps: PipelineDeps, call: LiveCall, thrown: unknown): Promise<GatewayError> {
  const hooks = deps.hooks[call.operation];
  const aborted = call.signal.aborted && !isShutdown(call.signal);
  let error = isShutdown(call.signal) ? shuttingDown() : toGatewayError(thrown);
  if (!aborted && hooks.error) {
    try {
      error = toGatewayError((await hooks.error(call, error)) ?? error);
    } catch (hookError) {
      error = toGatewayError(hookError);
    }
  }
  if (error.code === 'internal_error' && !aborted)
    deps.log.error({ request_id: call.requestId, err: error.cause ?? error }, 'internal error');
  meterUnanswered(deps, call);
  finishBeside(deps, call, aborted ? 'aborted' : 'error', error);
  return error;
}

/** The reason a drain aborts calls with; everything else that fires the signal is the caller's leaving. */
export const SHUTDOWN = Symbol('shutdown');

export function isShutdown(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason === SHUTDOWN;
}

export function shuttingDown(): GatewayError {
  return new GatewayError(
    'shutting_down',
    'The gateway is shutting down; try again at once, on another instance if there is one.',
    { retryAfterMs: 1000 },
  );
}

function assertLive(call: LiveCall<Operation>): void {
  if (call.signal.aborted)
    throw isShutdown(call.signal) ? shuttingDown() : new GatewayError('request_timeout', 'The caller hung up.');
}

/** Tries the targets in order until one answers; throws what the last one failed with. */
export async function tryTargets<T>(call: LiveCall, attempt: (target: Target) => Promise<T>): Promise<T> {
  let last: GatewayError | undefined;
  for (const target of call.targets) {
    try {
      return await attempt(target);
    } catch (thrown) {
      if (call.signal.aborted) throw thrown;
      const failed = failedAttempt(thrown, target);
      // Something answered and is paid for (a hook refused what it said): nobody is asked, and paid, twice.
      if (call.measures.usage) throw failed.error;
      // What a missing key hides must not replace what a real attempt said.
      if (!last || failed.error.code !== 'provider_not_configured') last = failed.error;
      if (!failed.failover) break;
    }
  }
  throw last ?? new GatewayError('unsupported_model', 'No target is left for this model.', { param: 'model' });
}

/** What a codec is told of the call. */
export function codecCall(call: LiveCall, target: Target, stream: boolean): CodecCall {
  return { model: target.model, stream, created: Math.floor(call.startedAt / 1000), id: call.id };
}

/** The registered provider of a target. */
export function providerOf(deps: PipelineDeps, target: Target): Provider {
  const provider = deps.providers.get(target.provider);
  if (!provider) throw new GatewayError('unsupported_provider', `There is no provider "${target.provider}".`);
  return provider;
}
