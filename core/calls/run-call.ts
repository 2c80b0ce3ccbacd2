import type { CallHook, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { GatewayError, rewordError, toGatewayError } from '../../contract/errors.ts';
import { factsOf, findDisguised } from '../../contract/facts.ts';
import type { Answered } from '../../contract/hooks.ts';
import { splitModel } from '../../contract/model-names.ts';
import { assertAllowed } from '../../models/catalog.ts';
import { chooseTargets, stickyKeyOf } from '../../routing/choose-targets.ts';
import { ownerOf } from '../plugins/attribution.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import { Call, type CallInput } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { assertEffects, assertNoDisguisedFields, assertOwnBlocks, assertPublicMedia } from './ingress.ts';
import { estimateAt, meterUnfinished } from './meter.ts';
import { withNativeTexts, withoutNativeTexts } from './native-texts.ts';
import { keepAtOwner } from './own-token.ts';
import { deploymentOf, sealedDeployments } from './seals.ts';

/** How an operation responds. */
export interface Handlers<R, T> {
  /** What a hook responded with at once, as if a target had. */
  respondEarly(call: Call, answered: Answered): R;
  callTargets(deps: CallDeps, call: Call): Promise<R>;
  /** Lets hooks see a response on its way out, and ends the call where it does not go on. */
  respond(deps: CallDeps, call: Call, response: R): T | Promise<T>;
}

const NONE: readonly never[] = Object.freeze([]);
/** What hooks did, of instances that are to show it. */
const VERDICTS_HEADER = 'x-tollgate-verdicts';

/**
 * The life of a call up to its response: the inward hooks in order, then the targets. Whatever goes wrong passes the `error` hooks and ends
 * the call. Without handlers it is let in like any other, and ends there.
 */
export async function runCall<R, T>(deps: CallDeps, input: CallInput, handlers?: Handlers<R, T>): Promise<T> {
  const { hooks, catalog, definition } = deps.partsOf(input.operation);
  const call = new Call(deps, input);
  const { principal, client } = call;
  try {
    if (call.signal.aborted) throw isShutdown(call.signal) ? shuttingDown() : hungUp();
    const facts = definition ? undefined : factsOf(call.request as ChatRequest);
    const disguised = facts ? facts.disguised : findDisguised(call.request, definition?.request ?? {});
    if (disguised) assertNoDisguisedFields(disguised);
    const { targets, requested, alias } = input.findTargets();
    call.replaceTargets(targets);
    call.route.alias = alias;
    assertAllowed(catalog, principal, targets, { requested });
    if (client && facts && facts.dialects.size > 0) assertOwnBlocks(client, facts);
    if (client && client.needs.length > 0)
      call.route.without = await assertEffects(deps, call, client.needs, call.targets);
    const media = facts && call.operation === 'chat' ? [...facts.media, ...(client?.media ?? [])] : NONE;
    if (media.length > 0) assertPublicMedia(media);
    // What is there at once is not awaited: hooks are seldom asynchronous, and each wait costs two promises.
    const admitted = hooks.admit?.(call);
    if (admitted) await admitted;
    if (!handlers) {
      call.finish('ok');
      return undefined as T;
    }
    const preparing = hooks.prepare && prepare(call, hooks.prepare);
    if (preparing) await preparing;
    const given = hooks.answer?.(call);
    const early = given instanceof Promise ? await given : given;
    if (!early) {
      const chosen = hooks.route?.(call);
      const routed = chosen instanceof Promise ? await chosen : chosen;
      if (routed) {
        assertAllowed(catalog, principal, routed);
        call.replaceTargets(routed);
      } else if (alias !== undefined) applyRoute(deps, call, alias);
      if (call.operation === 'chat' && call.targets.length > 1) preferReaders(deps, call);
      if (client?.ownSubscription) keepAtOwner(call, deps.partsOf(call.operation).offers);
      const reserved = hooks.reserve?.(call);
      if (reserved) await reserved;
    }
    call.record.isLetThrough = true;
    const response = early ? handlers.respondEarly(call, early) : await handlers.callTargets(deps, call);
    const responded = handlers.respond(deps, call, response);
    return responded instanceof Promise ? await responded : responded;
  } catch (thrown) {
    throw await endWithError(deps, call, thrown);
  }
}

/** Lets hooks change the request; a promise where they take their time. */
function prepare(call: Call, hook: NonNullable<CompiledHooks['prepare']>): Promise<void> | undefined {
  const shown = withNativeTexts(call);
  const prepared = hook(call, shown);
  if (prepared instanceof Promise) return prepared.then((given) => takePrepared(call, shown, given));
  takePrepared(call, shown, prepared);
  return undefined;
}

function takePrepared(call: Call, shown: object, prepared: object): void {
  if (prepared === shown) return;
  const isPlain = shown === call.request;
  const { request, isNative } = isPlain ? { request: prepared, isNative: true } : withoutNativeTexts(shown, prepared);
  call.replaceRequest(request as typeof call.request);
  call.route.isTranslated = !isNative;
}

/** Puts targets first that can read what the request has sealed. */
function preferReaders(deps: CallDeps, call: Call): void {
  const deployments = sealedDeployments(deps.seals, call.principal.account, call.request as ChatRequest);
  if (deployments.length === 0) return;
  // Another target would go on without what it can't read.
  call.route.hedge = undefined;
  const { offers } = deps.partsOf('chat');
  const reads = ({ provider }: Target): boolean => deployments.includes(deploymentOf(offers.get(provider), provider));
  call.replaceTargets([...call.targets.filter(reads), ...call.targets.filter((target) => !reads(target))]);
}

/** Ends a call that failed, and returns the error as the `error` hooks leave it. */
export async function endWithError(deps: CallDeps, call: Call, thrown: unknown): Promise<GatewayError> {
  const isDrained = isShutdown(call.signal);
  const hasLeft = call.signal.aborted && !isDrained;
  let error = isDrained ? shuttingDown() : toGatewayError(thrown);
  // What the gateway itself, its store or a plugin failed to do is an error, not a refusal.
  if (!hasLeft && !call.record.isLetThrough && error.status < 500)
    call.record.refusedBy = error.refusedBy ?? ownerOf(error) ?? 'gateway';
  try {
    if (!hasLeft && call.hooks.error) error = await call.hooks.error(call, error);
  } catch (thrownByHook) {
    error = toGatewayError(thrownByHook);
  }
  if (error.code === 'internal_error' && !hasLeft)
    deps.log.error(
      { request_id: call.requestId, ...findFailedHook(call, error), err: error.cause ?? error },
      'internal error',
    );
  const verdicts = call.headers.get(VERDICTS_HEADER);
  if (verdicts !== undefined)
    error = rewordError(error, { headers: { ...error.headers, [VERDICTS_HEADER]: verdicts } });
  meterUnfinished(deps, call);
  // The caller does not wait for the `finish` hooks; the end of the generation does.
  call.finish(hasLeft ? 'aborted' : 'error', error);
  return error;
}

/** Whose hook an error is of. */
function findFailedHook({ record }: Call, error: GatewayError): { readonly plugin?: string; readonly hook?: string } {
  const plugin = ownerOf(error);
  const failed = record.hooks.findLast((each) => each.plugin === plugin && each.action === 'failed');
  return { ...(plugin !== undefined && { plugin }), ...(failed && { hook: failed.hook }) };
}

/** The reason a drain aborts calls with; everything else that fires the signal is the caller's leaving. */
export const SHUTDOWN = Symbol('shutdown');

export function isShutdown(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason === SHUTDOWN;
}

export function shuttingDown(): GatewayError {
  return new GatewayError(
    'shutting_down',
    'The gateway is shutting down. Try again immediately, on another instance if there is one.',
    { retryAfterMs: 1000 },
  );
}

export function hungUp(): GatewayError {
  return new GatewayError('request_timeout', 'The caller disconnected.');
}

/** Puts the targets of a call in the order that its alias says. */
function applyRoute(deps: CallDeps, call: Call, alias: string): void {
  const route = deps.routes.get(alias);
  if (!route) return;
  const { health, sticky } = deps.routing;
  const { principal, session, request, stream } = call;
  // The order of a list is the same for everybody: nothing has to be remembered.
  const stickyKey =
    route.strategy === 'fallback' ? undefined : stickyKeyOf(route.sticky, { ...principal, session, request });
  call.route.stickyKey = stickyKey;
  call.route.timeouts = route.timeouts;
  call.route.mayResume = route.resume;
  if (call.targets.length < 2) return;
  const ordered = chooseTargets(route, {
    stream,
    stickyKey,
    health,
    sticky,
    random: Math.random,
    costAt: (target) => estimateAt(deps, call, target).cost,
  });
  // What a response was made of is cached where it was made, whatever the strategy says of new conversations.
  const { follows } = call;
  const maker = follows && route.sticky !== 'none' ? ordered.find((each) => isSame(each, follows)) : undefined;
  const chosen = maker && health.mayTry(maker) ? [maker, ...ordered.filter((target) => target !== maker)] : ordered;
  const overflow = route.onOverflow === undefined ? undefined : splitModel(route.onOverflow);
  // Chats are safe to ask twice, but for what a vendor does in addition: its tools act on the world.
  if (call.operation === 'chat' && chosen.length > 1 && !usesServerTools(call)) call.route.hedge = route.hedge;
  const isExtra = overflow && !chosen.some((each) => isSame(each, overflow));
  call.replaceTargets(isExtra ? [...chosen, overflow] : chosen);
  if (isExtra) call.route.overflow = call.targets.at(-1);
}

function usesServerTools({ client }: Call): boolean {
  return client?.needs.some(({ kind }) => kind === 'server tool') ?? false;
}

function isSame(one: Call['targets'][number], other: Call['targets'][number]): boolean {
  return one.provider === other.provider && one.model === other.model;
}

/** Names of instances and hooks are short: these are some 20 verdicts. */
const MAX_VERDICTS = 1000;

/** Adds what a hook did to what the response of its call says, as long as that has room. */
export function showVerdict({ headers }: Call, { plugin, hook, action }: CallHook): void {
  const before = headers.get(VERDICTS_HEADER);
  const verdicts = `${before === undefined ? '' : `${before}, `}${plugin} ${hook} ${action}`;
  if (verdicts.length <= MAX_VERDICTS) headers.set(VERDICTS_HEADER, verdicts);
}
