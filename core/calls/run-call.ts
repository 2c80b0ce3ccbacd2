import type { ModelRoute } from '../../config/model-routes.ts';
import { type CallHook, CHAT, type Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { GatewayError, isGatewayError, rewordError, toGatewayError } from '../../contract/errors.ts';
import { factsOf, findDisguised } from '../../contract/facts.ts';
import type { Answered } from '../../contract/hooks.ts';
import { splitModel } from '../../contract/model-names.ts';
import { rulesOf } from '../../models/caller-rules.ts';
import { assertAllowed, targetOfPath } from '../../models/catalog.ts';
import { chooseTargets, stickyKeyOf } from '../../routing/choose-targets.ts';
import { ownerOf } from '../plugins/attribution.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import type { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { assertEffects, assertNoDisguisedFields, assertOwnBlocks, assertPublicMedia } from './gates.ts';
import { estimateAt, meterUnfinished } from './meter.ts';
import { withNativeTexts, withoutNativeTexts } from './native-texts.ts';
import { keepAtOwner } from './pass-through-auth.ts';
import type { Route } from './routes.ts';
import { deploymentOf, sealedDeployments } from './seals.ts';

/** Gets the response of a call from its targets. `early`: response of a hook in their place. */
export type Respond<T> = (deps: CallDeps, call: Call, early: Answered | undefined) => Promise<T>;

const NONE: readonly never[] = Object.freeze([]);
/** Header with the actions of hooks, for instances that show them. */
const VERDICTS_HEADER = 'x-tollgate-verdicts';

/**
 * Runs a call: checks, request hooks in order, then `respond`. Every error passes the `error` hooks and ends the call.
 * Without `respond` the call is admitted like any other, and ends there.
 */
export async function runCall<T>(deps: CallDeps, call: Call, respond?: Respond<T>): Promise<T> {
  const { principal, client, hooks } = call;
  const { catalog, definition, offers } = call.parts;
  call.begin();
  try {
    if (call.signal.aborted) throw isShutdown(call.signal) ? shuttingDown() : hungUp();
    const facts = definition ? undefined : factsOf(call.request as ChatRequest);
    const disguised = facts ? facts.disguised : findDisguised(call.request, definition?.request ?? {});
    if (disguised) assertNoDisguisedFields(disguised);
    const route = findRoute(call, respond !== undefined);
    call.useRoute(route);
    rulesOf(principal).assertMayCall(catalog, route);
    if (client && facts && facts.dialects.size > 0) assertOwnBlocks(client, facts);
    if (client && client.needs.length > 0)
      call.record.without = await assertEffects(deps, call, client.needs, call.targets);
    if (facts && call.operation === CHAT) {
      assertPublicMedia(facts.media);
      assertPublicMedia(client?.media ?? NONE);
    }
    // Results of synchronous hooks are not awaited, since each wait costs two promises.
    const admitted = hooks.admit?.(call);
    if (admitted) await admitted;
    if (!respond) {
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
      } else if (route.rule) applyRule(deps, call, route.rule);
      if (call.operation === CHAT && call.targets.length > 1) preferReaders(deps, call);
      if (client?.ownSubscription) keepAtOwner(call, offers);
      const reserved = hooks.reserve?.(call);
      if (reserved) await reserved;
    }
    call.record.isLetThrough = true;
    return await respond(deps, call, early);
  } catch (thrown) {
    throw await endWithError(deps, call, thrown);
  }
}

/** Route of a call: the targets that a plugin named, else those of the request's model. `isSent`: one of them gets the request. */
function findRoute({ request, client, given, parts }: Call, isSent: boolean): Route {
  const { catalog, routes } = parts;
  const { targets, requested } = given;
  if (targets) {
    const known = isSent ? targets.map(({ provider, model }) => targetOfPath(catalog, provider, model)) : targets;
    return { targets: known, requested };
  }
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  if (client?.provider !== undefined) return routes.ofProvider(client.provider, model);
  return routes.find(model, client?.format.value.aliases);
}

/** Runs the `prepare` hooks. Returns a promise only if a hook is asynchronous. */
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
  call.record.isTranslated = !isNative;
}

/** Prefers targets that can decrypt the request's reasoning. */
function preferReaders(deps: CallDeps, call: Call): void {
  const deployments = sealedDeployments(deps.seals, call.principal.account, call.request as ChatRequest);
  if (deployments.length === 0) return;
  // A second target would run without reasoning that it cannot decrypt.
  call.record.hedge = undefined;
  const { offers } = deps.partsOf('chat');
  const reads = ({ provider }: Target): boolean => deployments.includes(deploymentOf(offers.get(provider), provider));
  call.replaceTargets([...call.targets.filter(reads), ...call.targets.filter((target) => !reads(target))]);
}

/** Ends a call that failed, and returns the error as the `error` hooks leave it. */
export async function endWithError(deps: CallDeps, call: Call, thrown: unknown): Promise<GatewayError> {
  const isDrained = isShutdown(call.signal);
  const hasLeft = call.signal.aborted && !isDrained;
  let error = isDrained ? shuttingDown() : toGatewayError(thrown);
  // Failures of the gateway, its store or a plugin are errors, not rejections.
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

/** Ends a call that was refused before it began, so that the records have it. Returns the error as the `error` hooks leave it. */
export function endRefused(deps: CallDeps, call: Call, thrown: unknown): Promise<GatewayError> {
  call.begin();
  // Also if a server is down: the call itself did not begin.
  if (isGatewayError(thrown) && !call.signal.aborted)
    call.record.refusedBy = thrown.refusedBy ?? ownerOf(thrown) ?? 'gateway';
  return endWithError(deps, call, thrown);
}

/** Returns the hook that caused an error. */
function findFailedHook({ record }: Call, error: GatewayError): { readonly plugin?: string; readonly hook?: string } {
  const plugin = ownerOf(error);
  const failed = record.hooks.findLast((each) => each.plugin === plugin && each.action === 'failed');
  return { ...(plugin !== undefined && { plugin }), ...(failed && { hook: failed.hook }) };
}

/** Abort reason of a drain. With any other reason, the caller has disconnected. */
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

/** Orders the targets of a call by the rule of its alias. */
function applyRule(deps: CallDeps, call: Call, rule: ModelRoute): void {
  const { health, sticky } = deps.routing;
  const { principal, session, request, stream } = call;
  // The order of a list is the same for all callers, so it is not stored.
  const stickyKey =
    rule.strategy === 'fallback' ? undefined : stickyKeyOf(rule.sticky, { ...principal, session, request });
  call.record.stickyKey = stickyKey;
  call.record.rule = rule;
  if (call.targets.length < 2) return;
  const ordered = chooseTargets(rule, {
    stream,
    stickyKey,
    health,
    sticky,
    random: Math.random,
    costAt: (target) => estimateAt(deps, call, target).cost,
  });
  // The target of the previous response has its prompt cached, so it comes first for every strategy.
  const follows = call.client?.follows;
  const maker = follows && rule.sticky !== 'none' ? ordered.find((each) => isSame(each, follows)) : undefined;
  const chosen = maker && health.mayTry(maker) ? [maker, ...ordered.filter((target) => target !== maker)] : ordered;
  const overflow = rule.onOverflow === undefined ? undefined : splitModel(rule.onOverflow);
  // Chats are safe to send twice, except with the vendor's own tools, which have side effects.
  if (call.operation === 'chat' && chosen.length > 1 && !usesServerTools(call)) call.record.hedge = rule.hedge;
  const isExtra = overflow && !chosen.some((each) => isSame(each, overflow));
  call.replaceTargets(isExtra ? [...chosen, overflow] : chosen);
  if (isExtra) call.record.overflow = call.targets.at(-1);
}

function usesServerTools({ client }: Call): boolean {
  return client?.needs.some(({ kind }) => kind === 'server tool') ?? false;
}

function isSame(one: Call['targets'][number], other: Call['targets'][number]): boolean {
  return one.provider === other.provider && one.model === other.model;
}

/** Maximum length of the header, for some 20 verdicts: names of instances and hooks are short. */
const MAX_VERDICTS = 1000;

/** Adds a hook action to the response header, up to its maximum length. */
export function showVerdict({ headers }: Call, { plugin, hook, action }: CallHook): void {
  const before = headers.get(VERDICTS_HEADER);
  const verdicts = `${before === undefined ? '' : `${before}, `}${plugin} ${hook} ${action}`;
  if (verdicts.length <= MAX_VERDICTS) headers.set(VERDICTS_HEADER, verdicts);
}
