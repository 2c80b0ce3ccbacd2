import { setTimeout as pause } from 'node:timers/promises';
import type { OpenCause, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { GatewayError, rewordError } from '../../contract/errors.ts';
import type { AttemptReport } from '../../contract/hooks.ts';
import type { Endpoint, FailureClass, PooledKey, Timeouts } from '../../contract/provider.ts';
import { redact } from '../../contract/redaction.ts';
import { chooseKey, conversationOf } from '../../routing/choose-targets.ts';
import { type TargetAttempt, targetByKey } from '../../routing/health-book.ts';
import { retryDelayMs } from '../../routing/retries.ts';
import type { Verdict } from '../../routing/target-health.ts';
import { attemptReport, type FailedAttempt, readFailedAttempt } from './attempt.ts';
import type { Call, CallRecord } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { type Ended, hedge, nameOf, type RunningAttempt, type SendTo } from './hedge.ts';

/** Default timeouts for the start of a response, in milliseconds. Providers and aliases can override them. */
const DEFAULTS = Object.freeze({
  /** To the first token of a stream. */
  firstTokenMs: 30_000,
  /** To a non-streaming response, which comes when the model has written all of it. */
  firstByteMs: 120_000,
});

/** Factor for requests with reasoning, which delays the first token. */
const THINKING = 4;
const THINKS: ReadonlySet<unknown> = new Set(['medium', 'high', 'xhigh', 'max']);

/** Share of the default timeout if another target is available, and if in addition the target's last attempt failed. */
const ANOTHER_WAITS = 1 / 2;
const ANOTHER_WAITS_AND_SUSPECT = 1 / 6;

/**
 * Timeouts of an attempt. The alias overrides the provider, which overrides the defaults. Only defaults are shortened.
 */
export function timeoutsFor(
  provider: Partial<Timeouts> = {},
  alias: Partial<Timeouts> = {},
  { stream, request }: { readonly stream: boolean; readonly request: object },
  /** True if another target could take over now. */
  anotherWaits: boolean,
  /** True if the last attempt at this target failed, too. */
  isSuspect: boolean,
): Partial<Timeouts> {
  const set = { ...provider, ...alias };
  const share = !anotherWaits ? 1 : isSuspect ? ANOTHER_WAITS_AND_SUSPECT : ANOTHER_WAITS;
  const firstByteMs = set.firstByteMs ?? DEFAULTS.firstByteMs * share;
  if (!stream) return { ...set, firstByteMs };
  const { reasoning_effort: effort } = request as Partial<ChatRequest>;
  const patience = THINKS.has(effort) ? THINKING : 1;
  // A longer first-byte timeout, for example while a model loads, also extends the first-token timeout.
  const firstTokenMs = set.firstTokenMs ?? Math.max(DEFAULTS.firstTokenMs * patience * share, set.firstByteMs ?? 0);
  return { ...set, firstTokenMs, firstByteMs: Math.min(firstByteMs, firstTokenMs) };
}

/** Tries the targets in order until one responds. Throws the error for the caller if all fail. */
export async function tryTargets<T extends object>(deps: CallDeps, call: Call, send: SendTo<T>): Promise<T> {
  const { shared, hedges } = deps.routing;
  const { hedge: rule } = call.record;
  const alias = call.route?.alias;
  shared?.refresh();
  if (rule && alias !== undefined) hedges.deposit(alias, rule);
  const failover = new Failover(deps, call);
  try {
    for (let target = failover.nextTarget(); target; ) {
      const { delayMs } = failover;
      if (rule && delayMs === undefined) {
        const ended: Ended<T> = await hedge(deps, call, rule, failover, target, send);
        if ('response' in ended) return ended.response;
        target = ended.next;
        continue;
      }
      if (delayMs !== undefined) {
        await pause(delayMs, undefined, { signal: call.signal });
        call.record.retryWaitMs += delayMs;
      }
      const attempt = failover.begin(call, target);
      try {
        const response = await send(deps, call, target);
        failover.succeed(attempt);
        return response;
      } catch (thrown) {
        target = failover.fail(attempt, thrown);
      }
    }
  } finally {
    if (failover.wasRetried) deps.routing.budget.release();
  }
  throw failover.error();
}

/** Attempts that SDKs make by default. With a direct connection to the provider the caller's SDK would stop as well. */
const ATTEMPTS_OF_SDKS = 3;

/** Retry delay for the caller if an operator drained all targets, in milliseconds. */
const DRAINED_RETRY_MS = 30_000;

/** Causes of an open circuit that may have passed by now. */
const MAY_HAVE_PASSED: ReadonlySet<unknown> = new Set(['failures', 'shared']);

/** Targets of one call: selects the next one, and the error if all have failed. */
export class Failover {
  readonly #deps: CallDeps;
  readonly #call: Call;
  /** Untried targets, in order. */
  #remaining: readonly Target[];
  #overflow: Target | undefined;
  /** Target with the shortest delay before a second try. */
  #retry: { readonly target: Target; readonly delayMs: number } | undefined;
  /** Delay before the next target, in milliseconds, if it was tried before. */
  delayMs: number | undefined;
  /** True if a target was tried a second time, which takes a place in the retry budget. */
  wasRetried = false;
  #error: GatewayError | undefined;
  /** True if any target was sent the request. */
  #wasSent = false;
  /** Keys of providers that refused the call. */
  readonly #refusedKeys = new Set<PooledKey>();
  /** True if another target may succeed after the last failure. */
  #mayFailOver = false;

  constructor(deps: CallDeps, call: Call) {
    const { overflow } = call.record;
    const { health } = deps.routing;
    this.#deps = deps;
    this.#call = call;
    const targets = health.drained.size > 0 ? call.targets.filter((each) => !health.isDrained(each)) : call.targets;
    this.#overflow = overflow && targets.includes(overflow) ? overflow : undefined;
    this.#remaining = overflow ? targets.filter((target) => target !== overflow) : targets;
  }

  /**
   * Returns the first healthy target. A target whose calls hang is returned only if there is no other healthy one. If
   * none is healthy and the request was not sent yet, returns the best one: a call is never rejected because all
   * circuits are open. Once it was sent, only open targets whose cause may have passed are tried.
   */
  nextTarget(): Target | undefined {
    const { health } = this.#deps.routing;
    const targets = this.#remaining;
    const [only] = targets;
    if (only && targets.length === 1 && !this.#wasSent) {
      this.#remaining = [];
      return only;
    }
    const target =
      this.#working() ??
      targets.find((each) => health.mayTry(each)) ??
      health.bestOf(targets.filter((each) => !this.#wasSent || MAY_HAVE_PASSED.has(health.causeOf(each))));
    return target && this.#take(target);
  }

  /** Returns a healthy target for a hedged request, if the hedge budget allows it. */
  secondTarget(): Target | undefined {
    const alias = this.#call.route?.alias;
    const target = this.#working();
    return target && alias !== undefined && this.#deps.routing.hedges.withdraw(alias) ? this.#take(target) : undefined;
  }

  #working(): Target | undefined {
    const { health, waiting } = this.#deps.routing;
    const { stream } = this.#call;
    return this.#remaining.find(
      (each) => health.mayTry(each) && !waiting.isStuck(each, stream, health.latencyMs(each, stream)),
    );
  }

  #take(target: Target): Target {
    this.#remaining = this.#remaining.filter((each) => each !== target);
    return target;
  }

  /** Begins an attempt. `call`: the call, or a copy of it. */
  begin(call: Call, target: Target, rivals?: Set<RunningAttempt>): RunningAttempt {
    const { health, waiting } = this.#deps.routing;
    const { record, stream } = call;
    const { offer } = call.at(target);
    const anotherWaits = this.#remaining.some((each) => health.mayTry(each));
    const isSuspect = anotherWaits && health.isSuspect(target);
    this.delayMs = undefined;
    record.status = undefined;
    record.goesOn = false;
    record.timeouts = timeoutsFor(offer?.timeouts, record.rule?.timeouts, call, anotherWaits, isSuspect);
    // The validity of a caller's own token says nothing about the target.
    record.running = call.client?.ownSubscription ? undefined : health.begin(target);
    record.key = offer?.keys && record.running && this.#takeKey(target, offer, offer.keys);
    const startedMs = this.#call.elapsedMs;
    const isSecond = rivals !== undefined && rivals.size > 0;
    const attempt = { call, target, startedMs, isSecond, rivals, waiting: waiting.begin(target, stream) };
    rivals?.add(attempt);
    return attempt;
  }

  #takeKey(target: Target, offer: Endpoint, keys: readonly PooledKey[]): CallRecord['key'] {
    const key = this.#chooseKey(target, keys)?.key;
    if (!key) return undefined;
    const attempt = this.#deps.routing.health.begin(targetByKey(target, key.name));
    return { name: key.name, endpoint: endpointBy(offer, key), attempt };
  }

  #chooseKey(target: Target, keys: readonly PooledKey[]): ReturnType<typeof chooseKey> {
    const { principal, session, request } = this.#call;
    const { health } = this.#deps.routing;
    return chooseKey(keys, {
      conversation: conversationOf({ account: principal.account, session, request }),
      refused: this.#refusedKeys,
      restMs: ({ name }) => health.restMs(targetByKey(target, name)),
      random: Math.random,
    });
  }

  /** Reports a success of the target. If the response continues, the end of the call reports it. */
  succeed(attempt: RunningAttempt): void {
    const { health, waiting, sticky } = this.#deps.routing;
    const { call, target, startedMs } = attempt;
    const { record, stream } = call;
    const durationMs = this.#call.elapsedMs - startedMs;
    const { goesOn } = record;
    attempt.rivals?.delete(attempt);
    waiting.end(attempt.waiting, true);
    if (record.running)
      health.report(target, { kind: goesOn ? 'answered' : 'success', stream, durationMs }, 'model', record.running);
    if (!goesOn) record.running = undefined;
    if (record.key) health.report(record.key.attempt.target, { kind: 'success', stream }, 'model', record.key.attempt);
    const { stickyKey } = this.#call.record;
    if (stickyKey !== undefined) sticky.set(stickyKey, `${target.provider}/${target.model}`);
    reportAttempt(this.#deps, this.#call, attempt, 'respond');
  }

  /** Records a failure and returns the target to try next. Rethrows an abort. */
  fail(attempt: RunningAttempt, thrown: unknown): Target | undefined {
    const { target, call: own, startedMs, rivals } = attempt;
    const call = this.#call;
    const { health, waiting } = this.#deps.routing;
    const { running, status, key } = own.record;
    // A status shows that the target sent a response.
    waiting.end(attempt.waiting, status !== undefined);
    rivals?.delete(attempt);
    this.#wasSent ||= own.record.attempts.length > 0;
    // Without effect on the target's health, unless a failure is reported below.
    own.record.running = undefined;
    if (running) health.leave(running);
    if (key) health.leave(key.attempt);
    if (own.signal.aborted) {
      if (!call.signal.aborted) reportAttempt(this.#deps, call, attempt, 'left');
      throw thrown;
    }
    const { offer } = call.at(target);
    const failed = readFailedAttempt(thrown, target, offer);
    const facts = { status, requestId: call.requestId, isBroken: false };
    const keyRestMs = key && offer?.keys && this.#refuseKey(attempt, offer.keys, failed, facts);
    // The target is healthy while another key is.
    const hasKey = keyRestMs === 0;
    if (running && !hasKey) reportHealth(this.#deps, running, failed, { ...facts, keyRestMs });
    this.#recordRetry(attempt, failed, call.elapsedMs - startedMs);
    const hasOther = rivals !== undefined && rivals.size > 0;
    const isShorter = own.record.rejected !== undefined;
    const then = hasOther ? undefined : hasKey || isShorter ? target : this.#chooseNext(failed);
    const next = hasOther
      ? 'wait'
      : !then
        ? 'end'
        : hasKey
          ? 'next key'
          : isShorter || this.delayMs !== undefined
            ? 'retry'
            : 'next target';
    reportAttempt(this.#deps, call, attempt, next, failed, then);
    if (failed.isRefusal) own.record.skipped.push(target.provider);
    // A missing key or a refusal must not hide the error of a real attempt. The first of several refusals counts.
    if (!this.#error || (failed.error.code !== 'provider_not_configured' && !failed.isRefusal))
      this.#error = failed.error;
    this.#mayFailOver = failed.failover;
    return then;
  }

  /**
   * Records a failure of the key that was used. Returns the time until a key of the target is available, 0 if another
   * one is. Returns undefined if the failure does not concern the key.
   */
  #refuseKey(
    { target, call: { record } }: RunningAttempt,
    keys: readonly PooledKey[],
    failed: FailedAttempt,
    facts: FailureFacts,
  ): number | undefined {
    const used = keys.find(({ name }) => name === record.key?.name);
    if (!used || !record.key || !OF_KEY.has(failed.class)) return undefined;
    this.#refusedKeys.add(used);
    reportHealth(this.#deps, record.key.attempt, failed, facts);
    const next = this.#chooseKey(target, keys);
    // A key that rejected the call is not used for it again, even if it is available.
    return next && this.#refusedKeys.has(next.key) ? Math.max(next.restMs, 1) : next?.restMs;
  }

  #chooseNext(failed: FailedAttempt): Target | undefined {
    if (failed.class === 'context_length' && this.#overflow) {
      const target = this.#overflow;
      this.#overflow = undefined;
      this.#remaining = [];
      return target;
    }
    if (!failed.failover) return undefined;
    const next = this.nextTarget();
    if (next || !this.#retry || this.wasRetried || !this.#deps.routing.budget.reserve()) return next;
    this.wasRetried = true;
    this.delayMs = this.#retry.delayMs;
    return this.#retry.target;
  }

  #recordRetry({ target, call }: RunningAttempt, failed: FailedAttempt, durationMs: number): void {
    const { class: kind, phase, isSent = true, error } = failed;
    const { status } = call.record;
    const facts = { class: kind, phase, isSent, status, durationMs, retryAfterMs: error.retryAfterMs };
    const delayMs = retryDelayMs(facts, this.#call.client?.isIdempotent ?? false, Math.random);
    if (delayMs !== undefined && delayMs < (this.#retry?.delayMs ?? Number.POSITIVE_INFINITY))
      this.#retry = { target, delayMs };
  }

  #withoutTarget(): GatewayError {
    if (!this.#call.targets.some(this.#deps.routing.health.isDrained))
      return new GatewayError('unsupported_model', 'No target is available for this model. Use another model.', {
        param: 'model',
      });
    return new GatewayError(
      'provider_unavailable',
      'An operator drained all targets of this model. Use another model or try again later.',
      { retryAfterMs: DRAINED_RETRY_MS },
    );
  }

  /** Error for the caller if no target responded. After enough attempts it asks SDKs not to retry. */
  error(): GatewayError {
    const error = this.#error ?? this.#withoutTarget();
    if (!this.#mayFailOver || this.#call.record.attempts.length < ATTEMPTS_OF_SDKS) return error;
    return rewordError(error, { headers: { ...error.headers, 'x-should-retry': 'false' } });
  }
}

/** Failure classes for which another key of the same provider may succeed. */
const OF_KEY: ReadonlySet<FailureClass | undefined> = new Set<FailureClass>([
  'authentication',
  'permission',
  'billing',
  'rate_limit',
]);

const endpoints = new WeakMap<Endpoint, Map<string, Endpoint>>();

/** Endpoint of a provider with one of its keys. Cached, since its address and headers are read once. */
function endpointBy(offer: Endpoint, { name, credential }: PooledKey): Endpoint {
  const known = endpoints.get(offer) ?? new Map<string, Endpoint>();
  endpoints.set(offer, known);
  const endpoint = known.get(name) ?? { ...offer, credential };
  known.set(name, endpoint);
  return endpoint;
}

/**
 * Reports the interruption of a response. Its attempt was reported as one that responded. `then`: the target that
 * resumes it.
 */
export function reportBroken(deps: CallDeps, call: Call, target: Target, failed: FailedAttempt, then?: Target): void {
  if (!isOfTarget(failed)) return;
  const { running, status } = call.record;
  if (running) reportHealth(deps, running, failed, { status, requestId: call.requestId, isBroken: true });
  const next = then ? 'next target' : 'end';
  reportAttempt(deps, call, { call, target, startedMs: 0, isSecond: false }, next, failed, then);
}

/** Reports an ended attempt to the record of the call, the log and the `attempt` hooks. */
function reportAttempt(
  { log }: CallDeps,
  call: Call,
  attempt: Omit<RunningAttempt, 'waiting'>,
  next: AttemptReport['next'],
  failed?: FailedAttempt,
  then?: Target,
): void {
  const { target, startedMs, call: own } = attempt;
  const { record } = own;
  const reason = failed ? redact(failed.message) : next === 'left' ? 'another target responded first' : undefined;
  const last = record.attempts.at(-1);
  if (last?.target === call.at(target).name && last.reason === undefined) {
    last.ms = Math.round(call.elapsedMs - record.attemptedMs);
    if (reason !== undefined) last.reason = reason;
    if (failed?.class) last.class = failed.class;
  }
  // A missing key would cause a line for each call. Errors of plugins have a separate line.
  if (failed && isOfTarget(failed))
    log.warn(
      {
        request_id: call.requestId,
        target: nameOf(target),
        key: record.key?.name,
        status: record.status,
        errno: failed.errno,
        class: failed.class,
        reason,
        ms: Math.round(call.elapsedMs - startedMs),
        next: next === 'next target' && then ? nameOf(then) : next,
      },
      'an attempt failed',
    );
  call.hooks.attempt?.(call, attemptReport(call, attempt, next, failed, then));
}

/** Effect of each failure class on the target's health; undefined if the request of the caller is the cause. */
const CAUSES: Readonly<Record<FailureClass, Exclude<OpenCause, 'shared'> | undefined>> = Object.freeze({
  authentication: 'credential',
  permission: 'credential',
  billing: 'credential',
  rate_limit: 'rate_limit',
  overloaded: 'failures',
  upstream_error: 'failures',
  broken_off: 'failures',
  timeout: 'failures',
  model_not_found: undefined,
  not_found: undefined,
  context_length: undefined,
  request_over_limit: undefined,
  content_filter: undefined,
  invalid_request: undefined,
});

/** Core's own errors about malformed upstream responses. */
const BROKEN: ReadonlySet<string> = new Set(['provider_invalid_response', 'provider_unavailable']);

/** Returns whether the target caused a failure, not a plugin or a request that could not be sent. */
function isOfTarget({ class: kind, error }: FailedAttempt): boolean {
  return kind !== undefined || BROKEN.has(error.code);
}

/** Facts in addition to the failure itself. */
interface FailureFacts {
  readonly status: number | undefined;
  readonly requestId: string;
  /** True if the failure interrupted a stream that had begun. */
  readonly isBroken: boolean;
  /** Time until a key of the target is available, if the failure concerns a key. */
  readonly keyRestMs?: number | undefined;
}

/** Reports the health of a target after a failed attempt. Failures by plugins are not reported. */
function reportHealth(
  { routing: { health } }: CallDeps,
  running: TargetAttempt,
  failed: FailedAttempt,
  { status, requestId, isBroken, keyRestMs }: FailureFacts,
): void {
  const { class: kind, phase, message, errno, error } = failed;
  // Not reported: the gateway's own limit on connections, and a slow caller as reported by the vendor.
  if (!isOfTarget(failed) || status === 408 || (phase === 'connect' && kind === 'overloaded')) return;
  const cause = kind === undefined ? 'failures' : CAUSES[kind];
  // Without connection, key or credit all models of a provider fail. A 403 may concern one model.
  const isOfProvider =
    keyRestMs === undefined &&
    (phase === 'connect' || kind === 'billing' || (kind === 'authentication' && status !== 403));
  const verdict: Verdict =
    cause === undefined
      ? { kind: 'alive' }
      : {
          ...{ kind: 'failure', cause, retryAfterMs: keyRestMs ?? error.retryAfterMs, isBroken },
          error: {
            ...{ message: redact(message), requestId },
            ...(kind && { class: kind }),
            ...(status !== undefined && { status }),
            ...(errno !== undefined && { errno }),
          },
        };
  health.report(running.target, verdict, isOfProvider ? 'provider' : 'model', running);
}
