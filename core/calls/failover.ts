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
import { hedge, nameOf, type RunningAttempt, type SendTo, type Step } from './hedge.ts';

/** Until something of the response is there, in milliseconds; providers and aliases may set others. */
const DEFAULTS = Object.freeze({
  /** To the first token of a stream. */
  firstTokenMs: 30_000,
  /** To a non-streaming response, which comes when the model has written all of it. */
  firstByteMs: 120_000,
});

/** A model that was asked to think is silent for longer. */
const THINKING = 4;
const THINKS: ReadonlySet<unknown> = new Set(['medium', 'high', 'xhigh', 'max']);

/** The share of the time that a target gets while another one waits, and when its last attempt failed in addition. */
const ANOTHER_WAITS = 1 / 2;
const ANOTHER_WAITS_AND_SUSPECT = 1 / 6;

interface TimeoutFacts {
  readonly stream: boolean;
  readonly request: object;
  /** Whether another target could take over now. */
  readonly anotherWaits: boolean;
  readonly isSuspect: boolean;
}

/** The timeouts of an attempt: the alias's over the provider's over the defaults. Only defaults become shorter. */
export function timeoutsFor(
  provider: Partial<Timeouts> = {},
  alias: Partial<Timeouts> = {},
  facts: TimeoutFacts,
): Partial<Timeouts> {
  const set = { ...provider, ...alias };
  const share = !facts.anotherWaits ? 1 : facts.isSuspect ? ANOTHER_WAITS_AND_SUSPECT : ANOTHER_WAITS;
  const firstByteMs = set.firstByteMs ?? DEFAULTS.firstByteMs * share;
  if (!facts.stream) return { ...set, firstByteMs };
  const { reasoning_effort: effort } = facts.request as Partial<ChatRequest>;
  const patience = THINKS.has(effort) ? THINKING : 1;
  // A longer time to the first byte, as for a model that is loaded first, is one to the first token too.
  const firstTokenMs = set.firstTokenMs ?? Math.max(DEFAULTS.firstTokenMs * patience * share, set.firstByteMs ?? 0);
  return { ...set, firstTokenMs, firstByteMs: Math.min(firstByteMs, firstTokenMs) };
}

/** Tries the targets in order until one responds; throws what the last one failed with. */
export async function tryTargets<T extends object>(deps: CallDeps, call: Call, send: SendTo<T>): Promise<T> {
  const { shared, hedges } = deps.routing;
  const { hedge: rule, alias } = call.route;
  shared?.refresh();
  if (rule && alias !== undefined) hedges.deposit(alias, rule);
  const failover = new Failover(deps, call);
  try {
    for (let step = failover.nextTarget(); step; ) {
      const { target, delayMs } = step;
      if (rule && delayMs === undefined) {
        const ended = await hedge(deps, call, rule, failover, target, send);
        if ('response' in ended) return ended.response;
        step = ended.next;
        continue;
      }
      if (delayMs !== undefined) await pause(delayMs, undefined, { signal: call.signal });
      const attempt = failover.begin(call, target);
      try {
        const response = await send(deps, call, target);
        failover.succeed(attempt, response);
        return response;
      } catch (thrown) {
        step = failover.fail(attempt, thrown);
      }
    }
  } finally {
    if (failover.wasRetried) deps.routing.budget.release();
  }
  throw failover.error();
}

/** As many attempts as SDKs make on their own: a caller's SDK that went to the provider directly would stop as well. */
const ATTEMPTS_OF_SDKS = 3;

/** When a caller whom a drained target refused may try again. */
const DRAINED_RETRY_MS = 30_000;

/** Why a target was opened that may work again by now. */
const MAY_HAVE_PASSED: ReadonlySet<unknown> = new Set(['failures', 'shared']);

/** The targets of one call: which comes next, and what is left when all have failed. */
export class Failover {
  readonly #deps: CallDeps;
  readonly #call: Call;
  /** Those that were not tried, in order. */
  #remaining: readonly Target[];
  #overflow: Target | undefined;
  /** The target that may be tried a second time soonest. */
  #retry: Required<Step> | undefined;
  /** Whether a target was tried a second time, for which the budget has a place. */
  wasRetried = false;
  #error: GatewayError | undefined;
  /** Whether any target was sent the request. */
  #wasSent = false;
  /** Keys of providers that refused the call. */
  readonly #refusedKeys = new Set<PooledKey>();
  /** Whether the last failure was one that another target may not have. */
  #mayHelpElsewhere = false;

  constructor(deps: CallDeps, call: Call) {
    const { overflow } = call.route;
    const { health } = deps.routing;
    this.#deps = deps;
    this.#call = call;
    const targets = health.drained.size > 0 ? call.targets.filter((each) => !health.isDrained(each)) : call.targets;
    this.#overflow = overflow && targets.includes(overflow) ? overflow : undefined;
    this.#remaining = overflow ? targets.filter((target) => target !== overflow) : targets;
  }

  /**
   * The first target that can be tried, one where calls hang only when there is no other. While none was asked, the best of those
   * that can't: a call is never refused because all are open. Afterwards, those that only failed lately.
   */
  nextTarget(): Step | undefined {
    const { health } = this.#deps.routing;
    const targets = this.#remaining;
    const [only] = targets;
    if (only && targets.length === 1 && !this.#wasSent) {
      this.#remaining = [];
      return { target: only };
    }
    const target =
      this.#working() ??
      targets.find((each) => health.mayTry(each)) ??
      health.bestOf(targets.filter((each) => !this.#wasSent || MAY_HAVE_PASSED.has(health.causeOf(each))));
    return target && { target: this.#take(target) };
  }

  /** The one to ask concurrently with a target that takes long: one that works by all that is known, as far as the budget goes. */
  secondTarget(): Target | undefined {
    const { alias } = this.#call.route;
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

  /** An attempt begins; `call` is the call, or a copy of it. */
  begin(call: Call, target: Target, rivals?: Set<RunningAttempt>): RunningAttempt {
    const { health, waiting } = this.#deps.routing;
    const { record, stream, request } = call;
    const offer = this.#deps.partsOf(call.operation).offers.get(target.provider);
    const anotherWaits = this.#remaining.some((each) => health.mayTry(each));
    const isSuspect = anotherWaits && health.isSuspect(target);
    record.status = undefined;
    record.timeouts = timeoutsFor(offer?.timeouts, call.route.timeouts, { stream, request, anotherWaits, isSuspect });
    // Whether a caller's own token works says nothing about the target.
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

  /** A response says that its target works; of one that goes on, the end of the call says it. */
  succeed(attempt: RunningAttempt, response: object): void {
    const { health, waiting, sticky } = this.#deps.routing;
    const { call, target, startedMs } = attempt;
    const { record, stream } = call;
    const durationMs = this.#call.elapsedMs - startedMs;
    const goesOn = 'isStreaming' in response && response.isStreaming === true;
    attempt.rivals?.delete(attempt);
    waiting.end(attempt.waiting, true);
    if (record.running)
      health.report(target, { kind: goesOn ? 'answered' : 'success', stream, durationMs }, 'model', record.running);
    if (!goesOn) record.running = undefined;
    if (record.key) health.report(record.key.attempt.target, { kind: 'success', stream }, 'model', record.key.attempt);
    const { stickyKey } = this.#call.route;
    if (stickyKey !== undefined) sticky.set(stickyKey, `${target.provider}/${target.model}`);
    reportAttempt(this.#deps, this.#call, attempt, { next: 'respond' });
  }

  /** Notes a failure; returns what is tried now. An abort is thrown on. */
  fail(attempt: RunningAttempt, thrown: unknown): Step | undefined {
    const { target, call: own, startedMs, rivals } = attempt;
    const call = this.#call;
    const { health, waiting } = this.#deps.routing;
    const { running, status, key } = own.record;
    // Whether it sent anything back.
    waiting.end(attempt.waiting, status !== undefined);
    rivals?.delete(attempt);
    this.#wasSent ||= own.record.attempts.length > 0;
    // Says nothing about the target, unless a failure is read from it.
    own.record.running = undefined;
    if (running) health.leave(running);
    if (key) health.leave(key.attempt);
    if (own.signal.aborted) {
      if (!call.signal.aborted) reportAttempt(this.#deps, call, attempt, { next: 'left' });
      throw thrown;
    }
    const offer = this.#deps.partsOf(call.operation).offers.get(target.provider);
    const failed = readFailedAttempt(thrown, target, offer);
    const facts = { status, requestId: call.requestId, isBroken: false };
    const keyRestMs = key && offer?.keys && this.#refuseKey(attempt, offer.keys, failed, facts);
    // While another key works, the target does.
    const hasKey = keyRestMs === 0;
    if (running && !hasKey) reportHealth(this.#deps, running, failed, { ...facts, keyRestMs });
    this.#noteRetry(attempt, failed, call.elapsedMs - startedMs);
    const hasOther = rivals !== undefined && rivals.size > 0;
    const step = hasOther ? undefined : hasKey ? { target } : this.#nextAfter(failed);
    const next = hasOther ? 'wait' : !step ? 'end' : hasKey ? 'next key' : 'delayMs' in step ? 'retry' : 'next target';
    reportAttempt(this.#deps, call, attempt, { failed, next, then: step?.target });
    if (failed.isRefusal) own.record.skipped.push(target.provider);
    // What a missing key or a refusal hides must not replace what a real attempt said; of refusals the first one counts.
    if (!this.#error || (failed.error.code !== 'provider_not_configured' && !failed.isRefusal))
      this.#error = failed.error;
    this.#mayHelpElsewhere = failed.failover;
    return step;
  }

  /**
   * Notes what a failure says about the key that it was met with. Returns how long all keys of the target rest, 0 where another one works;
   * undefined where the failure is not the key's.
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
    // One that refused the call is not asked again by it, also when it could be.
    return next && this.#refusedKeys.has(next.key) ? Math.max(next.restMs, 1) : next?.restMs;
  }

  #nextAfter(failed: FailedAttempt): Step | undefined {
    if (failed.class === 'context_length' && this.#overflow) {
      const target = this.#overflow;
      this.#overflow = undefined;
      this.#remaining = [];
      return { target };
    }
    if (!failed.failover) return undefined;
    const next = this.nextTarget();
    if (next || !this.#retry || this.wasRetried || !this.#deps.routing.budget.reserve()) return next;
    this.wasRetried = true;
    return this.#retry;
  }

  #noteRetry({ target, call }: RunningAttempt, failed: FailedAttempt, durationMs: number): void {
    const { class: kind, phase, isSent = true, error } = failed;
    const { status } = call.record;
    const facts = { class: kind, phase, isSent, status, durationMs, retryAfterMs: error.retryAfterMs };
    const delayMs = retryDelayMs(facts, this.#call.isIdempotent, Math.random);
    if (delayMs !== undefined && delayMs < (this.#retry?.delayMs ?? Number.POSITIVE_INFINITY))
      this.#retry = { target, delayMs };
  }

  #withoutTarget(): GatewayError {
    if (!this.#call.targets.some(this.#deps.routing.health.isDrained))
      return new GatewayError('unsupported_model', 'No target is available for this model.', { param: 'model' });
    return new GatewayError(
      'provider_unavailable',
      'An operator drained all targets of this model. Use another model or try again later.',
      { retryAfterMs: DRAINED_RETRY_MS },
    );
  }

  /** What the caller gets when no target responded; an SDK of theirs need not try again what was tried often enough. */
  error(): GatewayError {
    const error = this.#error ?? this.#withoutTarget();
    if (!this.#mayHelpElsewhere || this.#call.record.attempts.length < ATTEMPTS_OF_SDKS) return error;
    return rewordError(error, { headers: { ...error.headers, 'x-should-retry': 'false' } });
  }
}

/** Failures that another key of the same provider may not meet. */
const OF_KEY: ReadonlySet<FailureClass | undefined> = new Set(['authentication', 'billing', 'rate_limit'] as const);

const endpoints = new WeakMap<Endpoint, Map<string, Endpoint>>();

/** A provider's endpoint with one of its keys; the same one each time, since its address and headers are read once. */
function endpointBy(offer: Endpoint, { name, credential }: PooledKey): Endpoint {
  const known = endpoints.get(offer) ?? new Map<string, Endpoint>();
  endpoints.set(offer, known);
  const endpoint = known.get(name) ?? { ...offer, credential };
  known.set(name, endpoint);
  return endpoint;
}

/** What came of an attempt, and what is done now. */
interface Ending {
  readonly failed?: FailedAttempt;
  readonly next: AttemptReport['next'];
  /** The target that is tried now. */
  readonly then?: Target | undefined;
}

/**
 * Reports what broke a response off that had begun: its attempt was reported as one that responded. `then`: the target that goes on with it.
 */
export function reportBroken(deps: CallDeps, call: Call, target: Target, failed: FailedAttempt, then?: Target): void {
  if (!isOfTarget(failed)) return;
  const { running, status } = call.record;
  if (running) reportHealth(deps, running, failed, { status, requestId: call.requestId, isBroken: true });
  const next = then ? 'next target' : 'end';
  reportAttempt(deps, call, { call, target, startedMs: 0, isSecond: false }, { failed, next, then });
}

/** Reports an attempt that is over to the record of the call, the log and the `attempt` hooks. */
function reportAttempt(
  { log }: CallDeps,
  call: Call,
  { target, isSecond, startedMs, call: own }: Omit<RunningAttempt, 'waiting'>,
  { failed, next, then }: Ending,
): void {
  const { record } = own;
  const reason = failed ? redact(failed.message) : next === 'left' ? 'another target responded first' : undefined;
  const last = record.attempts.at(-1);
  if (last?.target === target && last.reason === undefined) {
    last.ms = call.elapsedMs - last.startedMs;
    last.class = reason === undefined ? undefined : failed?.class;
    last.reason = reason;
  }
  // A missing key would be a line for each call, and a plugin's error has one of its own.
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
  const number = call.targets.indexOf(target) + 1;
  call.hooks.attempt?.(call, attemptReport(own, { target, number, isSecond, startedMs, failed, next, then }));
}

/** What a class of failure says about its target; undefined for what a caller sent, or for how long a caller waits. */
const CAUSES: Readonly<Record<FailureClass, Exclude<OpenCause, 'shared'> | undefined>> = Object.freeze({
  authentication: 'credential',
  billing: 'credential',
  rate_limit: 'rate_limit',
  overloaded: 'failures',
  upstream_error: 'failures',
  broken_off: 'failures',
  timeout: 'failures',
  model_not_found: undefined,
  context_length: undefined,
  request_over_limit: undefined,
  content_filter: undefined,
  invalid_request: undefined,
});

/** Errors of core's own about malformed upstream responses. */
const BROKEN: ReadonlySet<string> = new Set(['provider_invalid_response', 'provider_unavailable']);

/** Whether an attempt failed by what its target did, not by a plugin or because nothing could be sent. */
function isOfTarget({ class: kind, error }: FailedAttempt): boolean {
  return kind !== undefined || BROKEN.has(error.code);
}

/** What is known in addition to the failure itself. */
interface FailureFacts {
  readonly status: number | undefined;
  readonly requestId: string;
  /** Whether a stream had begun that it broke off. */
  readonly isBroken: boolean;
  /** How long all keys of the target rest, where the failure is that of a key. */
  readonly keyRestMs?: number | undefined;
}

/** Notes what a failed attempt says about its target: nothing when the caller, or a plugin, is why it failed. */
function reportHealth(
  { routing: { health } }: CallDeps,
  running: TargetAttempt,
  failed: FailedAttempt,
  { status, requestId, isBroken, keyRestMs }: FailureFacts,
): void {
  const { class: kind, phase, message, errno, error } = failed;
  // Our own bound on connections, and a caller's slowness that the vendor reports.
  if (!isOfTarget(failed) || status === 408 || (phase === 'connect' && kind === 'overloaded')) return;
  const cause = kind === undefined ? 'failures' : CAUSES[kind];
  // Nothing of a provider works without connection, key or credit; a 403 may be about one model.
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
