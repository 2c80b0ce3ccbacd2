import { setTimeout as pause } from 'node:timers/promises';
import type { Target } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { AttemptReport } from '../contract/hooks.ts';
import type { Timeouts } from '../contract/provider.ts';
import { retryDelayMs } from '../routing/retries.ts';
import { type FailedAttempt, readFailedAttempt } from './attempt.ts';
import { type Call, joinRecords, owedBy } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { meterUnfinished } from './meter.ts';
import { type Lap, nameOf, reportFailure, tellAttempt } from './tell-attempt.ts';

/** The clocks of one attempt. */
type Clocks = Partial<Timeouts>;

/** Until something of the response is there, in milliseconds, unless provider or alias say otherwise. */
const DEFAULTS = Object.freeze({
  /** To the first token of a stream. */
  firstTokenMs: 30_000,
  /** To a whole response, which comes when the model has written all of it. */
  firstByteMs: 120_000,
});

/** A model that was asked to think is silent for longer. */
const THINKING = 4;

/** The share of the time that a target gets while another one waits, and when its last attempt failed beside. */
const ANOTHER_WAITS = 1 / 2;
const ANOTHER_WAITS_AND_DOUBTFUL = 1 / 6;

const THINKS: ReadonlySet<unknown> = new Set(['medium', 'high', 'xhigh', 'max']);

interface ClockFacts {
  readonly stream: boolean;
  readonly request: object;
  /** Whether another target could take over now. */
  readonly anotherWaits: boolean;
  readonly isDoubtful: boolean;
}

/** The clocks of an attempt: the alias's over the provider's over the defaults. Only defaults become shorter. */
export function clocksFor(provider: Clocks = {}, alias: Clocks = {}, facts: ClockFacts): Clocks {
  const set = { ...provider, ...alias };
  const share = !facts.anotherWaits ? 1 : facts.isDoubtful ? ANOTHER_WAITS_AND_DOUBTFUL : ANOTHER_WAITS;
  const firstByteMs = set.firstByteMs ?? DEFAULTS.firstByteMs * share;
  if (!facts.stream) return { ...set, firstByteMs };
  const { reasoning_effort: effort } = facts.request as Partial<ChatRequest>;
  const patience = THINKS.has(effort) ? THINKING : 1;
  // Who waits longer for the first byte, as for a model that is loaded first, waits as long for the first token.
  const firstTokenMs = set.firstTokenMs ?? Math.max(DEFAULTS.firstTokenMs * patience * share, set.firstByteMs ?? 0);
  return { ...set, firstTokenMs, firstByteMs: Math.min(firstByteMs, firstTokenMs) };
}

/** One attempt; `own` is the call, or a copy of it where two attempts run at once. */
type AttemptOf<T extends object> = (target: Target, own: Call) => Promise<T>;

/** Tries the targets in order until one responds; throws what the last one failed with. */
export function tryTargets<T extends object>(deps: CallDeps, call: Call, attempt: AttemptOf<T>): Promise<T> {
  deps.routing.shared?.refresh();
  deps.routing.budget.enter(call.ended);
  if (call.hedge && call.alias !== undefined) deps.routing.hedges.enter(call.alias, call.hedge);
  return new TargetRun(deps, call, attempt).run();
}

/** One try of one target. */
interface Step {
  readonly target: Target;
  /** Set for the second try of the same target: it has a place in the budget, and waits so long before. */
  readonly delayMs?: number;
}

type Tried<T> = { readonly response: T } | { readonly next: Step | undefined };

/** As many attempts as SDKs make on their own: a caller's SDK that went to the provider directly would stop as well. */
const ATTEMPTS_OF_SDKS = 3;

/** The targets of one call: which comes next, and what is left when all have failed. */
class TargetRun<T extends object> {
  readonly #deps: CallDeps;
  readonly #call: Call;
  readonly #attempt: AttemptOf<T>;
  /** Those that were not tried, in order. */
  #remaining: readonly Target[];
  #overflow: Target | undefined;
  /** The target that may be tried a second time soonest. */
  #retry: Required<Step> | undefined;
  #wasRetried = false;
  #error: GatewayError | undefined;
  /** Whether any target was sent the request. */
  #wasSent = false;
  /** Whether the last failure was one that another target may not have. */
  #mayHelpElsewhere = false;

  constructor(deps: CallDeps, call: Call, attempt: AttemptOf<T>) {
    this.#deps = deps;
    this.#call = call;
    this.#attempt = attempt;
    this.#overflow = call.overflow;
    this.#remaining = call.targets.filter((target) => target !== call.overflow);
  }

  async run(): Promise<T> {
    let step = this.#nextTarget();
    while (step) {
      const tried = await this.#tryStep(step);
      if ('response' in tried) return tried.response;
      step = tried.next;
    }
    if (this.#error && this.#mayHelpElsewhere && this.#call.record.attempts.length >= ATTEMPTS_OF_SDKS)
      throw inVain(this.#error);
    throw this.#error ?? new GatewayError('unsupported_model', 'No target is left for this model.', { param: 'model' });
  }

  #tryStep(step: Step): Promise<Tried<T>> {
    const { target, delayMs } = step;
    const { hedge: rule, stream } = this.#call;
    if (!rule || delayMs !== undefined)
      return this.#try(step, { call: this.#call, target, isSecond: false, end: () => false });
    return hedge<Tried<T>>(this.#deps, this.#call, target, {
      afterMs: this.#deps.routing.hedges.afterMs(rule, target, stream),
      attempt: (lap) => this.#try({ target: lap.target }, lap),
      second: () => this.#secondTarget(),
    });
  }

  async #try(step: Step, lap: Lap): Promise<Tried<T>> {
    const { record, signal, stream } = lap.call;
    const { health, budget, sticky, waiting } = this.#deps.routing;
    const { target, delayMs } = step;
    try {
      if (delayMs !== undefined) await pause(delayMs, undefined, { signal });
      record.status = undefined;
      record.clocks = this.#clocksOf(target);
      record.running = health.begin(target);
      const startedMs = this.#call.elapsedMs;
      const end = waiting.begin(target, stream);
      try {
        const response = await this.#attempt(target, lap.call);
        lap.end();
        end(true);
        noteResponse(lap.call, response, this.#call.elapsedMs - startedMs);
        if (this.#call.stickyKey !== undefined) sticky.set(this.#call.stickyKey, `${target.provider}/${target.model}`);
        tellAttempt(this.#deps, this.#call, lap, { startedMs, next: 'respond' });
        return { response };
      } catch (thrown) {
        // Whether it sent anything back: the attempt has noted the status meanwhile.
        end(lap.call.record.status !== undefined);
        return { next: this.#fail(lap, startedMs, thrown) };
      }
    } finally {
      if (delayMs !== undefined) budget.release();
    }
  }

  /** Notes a failure; returns what is tried now. An abort is thrown on. */
  #fail(lap: Lap, startedMs: number, thrown: unknown): Step | undefined {
    const { target, call: own } = lap;
    const call = this.#call;
    const { offers } = this.#deps.partsOf(call.operation);
    const { running, status } = own.record;
    const hasOther = lap.end();
    this.#wasSent ||= own.record.attempts.length > 0;
    // Says nothing about the target, unless a failure is read from it.
    own.record.running = undefined;
    running?.leave();
    if (own.signal.aborted) {
      if (!call.signal.aborted) tellAttempt(this.#deps, call, lap, { startedMs, next: 'left' });
      throw thrown;
    }
    const failed = readFailedAttempt(thrown, target, offers.get(target.provider));
    if (running) reportFailure(running, failed, { status, requestId: call.requestId, isBroken: false });
    this.#noteRetry(lap, failed, call.elapsedMs - startedMs);
    const next = hasOther ? undefined : this.#nextAfter(failed);
    const told = hasOther ? 'wait' : next === undefined ? 'end' : wordOf(next);
    tellAttempt(this.#deps, call, lap, { startedMs, failed, next: told, then: next?.target });
    if (failed.isRefusal) own.record.skipped.push(target.provider);
    // What a missing key or a refusal hides must not replace what a real attempt said; of refusals the first one counts.
    if (!this.#error || (failed.error.code !== 'provider_not_configured' && !failed.isRefusal))
      this.#error = failed.error;
    this.#mayHelpElsewhere = failed.failover;
    return next;
  }

  #nextAfter(failed: FailedAttempt): Step | undefined {
    if (failed.class === 'context_length' && this.#overflow) {
      const target = this.#overflow;
      this.#overflow = undefined;
      this.#remaining = [];
      return { target };
    }
    if (!failed.failover) return undefined;
    return this.#nextTarget() ?? this.#nextRetry();
  }

  /**
   * The first target that can be tried, one where calls hang only when there is no other. While none was asked, the best of those that can't: a call is never refused because all
   * are open. Afterwards, those that only failed lately.
   */
  #nextTarget(): Step | undefined {
    const { health } = this.#deps.routing;
    const target =
      this.#remaining.find((each) => health.mayTry(each) && !this.#isStuck(each)) ??
      this.#remaining.find((each) => health.mayTry(each)) ??
      health.bestOf(this.#remaining.filter((each) => !this.#wasSent || MAY_HAVE_PASSED.has(health.causeOf(each))));
    if (!target) return undefined;
    this.#remaining = this.#remaining.filter((each) => each !== target);
    return { target };
  }

  /** The one to ask beside a target that takes long: one that works by all that is known, and only as often as may be. */
  #secondTarget(): Target | undefined {
    const { health, hedges } = this.#deps.routing;
    const { alias } = this.#call;
    const target = this.#remaining.find((each) => health.mayTry(each) && !this.#isStuck(each));
    if (!target || alias === undefined || !hedges.take(alias)) return undefined;
    this.#remaining = this.#remaining.filter((each) => each !== target);
    return target;
  }

  #isStuck(target: Target): boolean {
    const { stream } = this.#call;
    const { health, waiting } = this.#deps.routing;
    return waiting.isStuck(target, stream, health.latencyMs(target, stream));
  }

  #noteRetry({ target, call }: Lap, failed: FailedAttempt, durationMs: number): void {
    const { class: kind, phase, isSent = true, error } = failed;
    const { status } = call.record;
    const facts = { class: kind, phase, isSent, status, durationMs, retryAfterMs: error.retryAfterMs };
    const delayMs = retryDelayMs(facts, this.#call.isIdempotent, Math.random);
    if (delayMs !== undefined && delayMs < (this.#retry?.delayMs ?? Number.POSITIVE_INFINITY))
      this.#retry = { target, delayMs };
  }

  /** One target once more, when one may be and not too many are tried again already. */
  #nextRetry(): Step | undefined {
    if (!this.#retry || this.#wasRetried || !this.#deps.routing.budget.reserve()) return undefined;
    this.#wasRetried = true;
    return this.#retry;
  }

  #clocksOf(target: Target): ReturnType<typeof clocksFor> {
    const call = this.#call;
    const { health } = this.#deps.routing;
    const endpoint = this.#deps.partsOf(call.operation).offers.get(target.provider);
    return clocksFor(endpoint?.timeouts, call.timeouts, {
      stream: call.stream,
      request: call.request,
      anotherWaits: this.#remaining.some((each) => health.mayTry(each)),
      isDoubtful: health.isDoubtful(target),
    });
  }
}

/** A response says that its target works; of one that goes on, the end of the call says it. */
function noteResponse({ record, stream }: Call, response: object, durationMs: number): void {
  const { running } = record;
  if ('isStreaming' in response && response.isStreaming === true) {
    running?.report({ kind: 'answered', stream, durationMs });
    return;
  }
  record.running = undefined;
  running?.report({ kind: 'success', stream, durationMs });
}

function wordOf({ delayMs }: Step): AttemptReport['next'] {
  return delayMs === undefined ? 'next target' : 'retry';
}

const MAY_HAVE_PASSED: ReadonlySet<unknown> = new Set(['failures', 'shared']);

/** An error after which the caller's SDK need not try again. */
function inVain({ code, message, param, retryAfterMs, headers, cause }: GatewayError): GatewayError {
  return new GatewayError(code, message, {
    ...(param !== undefined && { param }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    headers: { ...headers, 'x-should-retry': 'false' },
    cause,
  });
}

/** How two targets are asked. */
interface HedgePlan<R> {
  /** How long the first one has; undefined: for ever. */
  readonly afterMs: number | undefined;
  /** Resolves with what is to be done when the attempt failed; rejects when it was left. */
  attempt(lap: Lap): Promise<R>;
  /** The target to ask beside, when there is one now and the call may be asked twice. */
  second(): Target | undefined;
}

type Ended<R> = { readonly result: R } | { readonly thrown: unknown };

/** An attempt that runs. */
interface Runner<R> {
  readonly lap: Lap;
  readonly startedMs: number;
  /** Hangs up; the call goes on. */
  leave(): void;
  readonly ended: Promise<Ended<R>>;
}

/**
 * Asks a target, and another one when that takes long. The first response wins; the other attempt is left, and what its target has
 * done by then is owed too. What became of both is in the call's record afterwards.
 */
async function hedge<R extends object>(deps: CallDeps, call: Call, target: Target, plan: HedgePlan<R>): Promise<R> {
  const running = new Set<Lap>();
  const first = start(call, target, false, running, plan);
  await endOrTime(first.ended, plan.afterMs);
  // Whoever was done at the same moment has decided what is tried now.
  const other = running.size > 0 ? plan.second() : undefined;
  if (!other) return settle(deps, call, first, []);
  const second = start(call, other, true, running, plan);
  const both = [first, second];
  const earlier = await Promise.race(both.map((each) => each.ended.then(() => each)));
  const later = earlier === first ? second : first;
  const winner = hasResponded(await earlier.ended) || !hasResponded(await later.ended) ? earlier : later;
  const hasWon = hasResponded(await winner.ended);
  // Of two that failed, the one that failed last knows what is tried now.
  const last = hasWon ? winner : later;
  const left = last === first ? second : first;
  left.leave();
  await left.ended;
  deps.log.info(
    {
      request_id: call.requestId,
      ...{ target: nameOf(target), beside: nameOf(other), after_ms: Math.round(plan.afterMs ?? 0) },
      won: hasWon ? nameOf(winner.lap.target) : 'none',
    },
    'a second target was asked beside a slow one',
  );
  return settle(deps, call, last, [left]);
}

function start<R extends object>(
  call: Call,
  target: Target,
  isSecond: boolean,
  running: Set<Lap>,
  plan: HedgePlan<R>,
): Runner<R> {
  const own = new AbortController();
  const lap: Lap = {
    ...{ target, isSecond },
    call: call.fork(AbortSignal.any([call.signal, own.signal])),
    end() {
      running.delete(lap);
      return running.size > 0;
    },
  };
  running.add(lap);
  const ended = plan.attempt(lap).then(
    (result): Ended<R> => ({ result }),
    (thrown: unknown): Ended<R> => ({ thrown }),
  );
  return { lap, startedMs: call.elapsedMs, leave: () => own.abort(), ended };
}

/** Puts together what came of the attempts; what was left without a failure is owed beside the last one. */
async function settle<R extends object>(
  deps: CallDeps,
  call: Call,
  last: Runner<R>,
  others: readonly Runner<R>[],
): Promise<R> {
  for (const { lap, startedMs, ended } of others) {
    const end = await ended;
    if (!('thrown' in end) && !hasResponded(end)) continue;
    if (hasResponded(end)) hangUp(end.result);
    const { record } = lap.call;
    record.running?.leave();
    meterUnfinished(deps, lap.call);
    record.beside = owedBy(record);
    record.sentTo.length = 0;
    deps.routing.hedges.note(lap.target, call.stream, call.elapsedMs - startedMs);
  }
  const end = await last.ended;
  call.adopt(joinRecords([call.record, ...others.map(({ lap }) => lap.call.record)], last.lap.call.record));
  if ('thrown' in end) throw end.thrown;
  if (hasResponded(end)) deps.routing.hedges.note(last.lap.target, call.stream, call.elapsedMs - last.startedMs);
  return end.result;
}

function hasResponded<R extends object>(ended: Ended<R>): ended is { readonly result: R } {
  return 'result' in ended && 'response' in ended.result;
}

/** A response that came at the same moment as the one that won: nobody reads it. */
function hangUp(result: object): void {
  const { response } = result as { readonly response?: { destroy?(): void } };
  response?.destroy?.();
}

/** Resolves when an attempt is over, or its time. */
function endOrTime(ended: Promise<unknown>, afterMs: number | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = afterMs === undefined ? undefined : setTimeout(resolve, afterMs);
    void ended.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
