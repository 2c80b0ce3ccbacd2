import type { Target } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { CHAT_REQUEST } from '../contract/chat-schemas.ts';
import { GatewayError, toGatewayError } from '../contract/errors.ts';
import type { Answered } from '../contract/hooks.ts';
import type { CallDeps } from './call-deps.ts';
import { assertNoDisguisedFields } from './disguised-fields.ts';
import { assertOwnBlocks, assertServerTools } from './ingress.ts';
import { type CallInit, type CallRequest, LiveCall } from './live-call.ts';
import { meterUnfinished } from './meter.ts';
import { assertPublicMedia } from './remote-media.ts';
import { applyRoute } from './routing/choose-targets.ts';
import { deploymentOf, sealedDeployments } from './seals.ts';
import { assertAllowed } from './targets.ts';

/** How an operation responds: what a hook answered at once, or what a target says. */
export interface CallWork<T> {
  answered(call: LiveCall, answered: Answered): T | Promise<T>;
  callTargets(call: LiveCall): Promise<T>;
}

/** The life of a call up to its response: the inward hooks in order, then the work. Whatever goes wrong passes the `error` hooks and ends the call. */
export async function runCall<T>(
  deps: CallDeps,
  callRequest: CallRequest,
  init: CallInit,
  { answered, callTargets }: CallWork<T>,
): Promise<T> {
  const { hooks, catalog, definition } = deps.partsOf(callRequest.operation);
  const call = new LiveCall(callRequest, init, hooks);
  deps.pending.track(call.ended, 'a call');
  try {
    throwIfAborted(call.signal);
    assertNoDisguisedFields(call.request, definition?.request ?? CHAT_REQUEST);
    assertAllowed(catalog, call.principal, callRequest.targets, callRequest.requested);
    assertNamedModels(call, catalog);
    if (call.ingress) assertOwnBlocks(call.ingress);
    if (call.ingress?.needs.some(({ kind }) => kind === 'server tool'))
      call.withhold(await assertServerTools(call.ingress, call.principal, deps.planOf));
    if (call.operation === 'chat') assertPublicMedia(call.request as ChatRequest);
    // What is there at once is not awaited: hooks are seldom asynchronous, and each wait costs two promises.
    const admitted = hooks.admit?.(call);
    if (admitted) await admitted;
    const prepared = hooks.prepare?.(call, call.request);
    if (prepared) call.replaceRequest((prepared instanceof Promise ? await prepared : prepared) as typeof call.request);
    const given = hooks.answer?.(call);
    const atOnce = given instanceof Promise ? await given : given;
    if (atOnce) return await answered(call, atOnce);
    const chosen = hooks.route?.(call);
    const routed = chosen instanceof Promise ? await chosen : chosen;
    if (routed) {
      assertAllowed(catalog, call.principal, routed);
      call.replaceTargets(routed);
    } else applyRoute(deps, call);
    if (call.operation === 'chat') preferReaders(deps, call);
    const reserved = hooks.reserve?.(call);
    if (reserved) await reserved;
    return await callTargets(call);
  } catch (thrown) {
    throw await endWithError(deps, call, thrown);
  }
}

/** Other models that a vendor is told to call are held to the caller's allow-list like the request's own. */
function assertNamedModels(call: LiveCall, catalog: Parameters<typeof assertAllowed>[0]): void {
  for (const { kind, name } of call.ingress?.needs ?? [])
    if (kind === 'model')
      assertAllowed(
        catalog,
        call.principal,
        call.targets.map(({ provider }) => ({ provider, model: name })),
      );
}

/** Puts targets first that can read what the request has sealed. */
function preferReaders(deps: CallDeps, call: LiveCall): void {
  const deployments = sealedDeployments(deps.seals, call.principal.account, call.request as ChatRequest);
  if (deployments.length === 0 || call.targets.length < 2) return;
  // Another target would go on without what it can't read.
  call.hedgeBy(undefined);
  const { offers } = deps.partsOf('chat');
  const reads = ({ provider }: Target): boolean => deployments.includes(deploymentOf(offers.get(provider), provider));
  const { overflow } = call;
  const sorted = [...call.targets.filter(reads), ...call.targets.filter((target) => !reads(target))];
  call.replaceTargets(sorted, overflow);
}

/** Ends a call that failed, and returns the error as the `error` hooks leave it. */
export async function endWithError(deps: CallDeps, call: LiveCall, thrown: unknown): Promise<GatewayError> {
  const isDrained = isShutdown(call.signal);
  const hasLeft = call.signal.aborted && !isDrained;
  let error = isDrained ? shuttingDown() : toGatewayError(thrown);
  try {
    if (!hasLeft && call.hooks.error) error = await call.hooks.error(call, error);
  } catch (thrownByHook) {
    error = toGatewayError(thrownByHook);
  }
  if (error.code === 'internal_error' && !hasLeft)
    deps.log.error({ request_id: call.requestId, err: error.cause ?? error }, 'internal error');
  meterUnfinished(deps, call);
  // The caller does not wait for the books; the end of the generation does.
  void call.finish(hasLeft ? 'aborted' : 'error', error);
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

function throwIfAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw isShutdown(signal) ? shuttingDown() : new GatewayError('request_timeout', 'The caller hung up.');
}
