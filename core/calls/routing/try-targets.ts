import { setTimeout as pause } from 'node:timers/promises';
import type { Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { AttemptReport } from '../../contract/hooks.ts';
import { attemptReport, type FailedAttempt, readFailedAttempt } from '../attempt.ts';
import type { CallDeps } from '../call-deps.ts';
import { redact } from '../failures.ts';
import type { LiveCall } from '../live-call.ts';
import { clocksFor } from './clocks.ts';
import { retryDelayMs } from './retry-rules.ts';
import { isOfTarget, reportFailure } from './verdicts.ts';

/** Tries the targets in order until one responds; throws what the last one failed with. */
export function tryTargets<T>(deps: CallDeps, call: LiveCall, attempt: (target: Target) => Promise<T>): Promise<T> {
  deps.routing.shared?.refresh();
  deps.routing.budget.enter(call.ended);
  return new TargetRun(deps, call, attempt).run();
}

/** One try of one target. */
interface Step {
  readonly target: Target;
  /** Set for the second try of the same target: it has a place in the budget, and waits so long before. */
  readonly delayMs?: number;
}

/** As many attempts as SDKs make on their own: a caller's SDK that went to the provider directly would stop as well. */
const ATTEMPTS_OF_SDKS = 3;

/** The targets of one call: which comes next, and what is left when all have failed. */
class TargetRun<T> {
  readonly #deps: CallDeps;
  readonly #call: LiveCall;
  readonly #attempt: (target: Target) => Promise<T>;
  /** Those that were not tried, in order. */
  #remaining: readonly Target[];
  #overflow: Target | undefined;
  /** The target that may be tried a second time soonest. */
  #retry: Required<Step> | undefined;
  #wasRetried = false;
  #error: GatewayError | undefined;

  constructor(deps: CallDeps, call: LiveCall, attempt: (target: Target) => Promise<T>) {
    this.#deps = deps;
    this.#call = call;
    this.#attempt = attempt;
    this.#overflow = call.overflow;
    this.#remaining = call.targets.filter((target) => target !== call.overflow);
  }

  async run(): Promise<T> {
    let step = this.#nextTarget();
    while (step) {
      const tried = await this.#try(step);
      if ('response' in tried) return tried.response;
      step = tried.next;
    }
    throw this.#error ?? new GatewayError('unsupported_model', 'No target is left for this model.', { param: 'model' });
  }

  async #try(step: Step): Promise<{ readonly response: T } | { readonly next: Step | undefined }> {
    const { record, signal, stream } = this.#call;
    const { health, budget, sticky, waiting } = this.#deps.routing;
    const { target, delayMs } = step;
    try {
      if (delayMs !== undefined) await pause(delayMs, undefined, { signal });
      record.status = undefined;
      record.clocks = this.#clocksOf(target);
      health.begin(target);
      const startedMs = this.#call.elapsedMs;
      const end = waiting.begin(target, stream);
      try {
        const response = await this.#attempt(target);
        end(true);
        health.report(target, { kind: 'success', durationMs: this.#call.elapsedMs - startedMs, stream });
        if (this.#call.stickyKey !== undefined) sticky.set(this.#call.stickyKey, `${target.provider}/${target.model}`);
        this.#observe(step, startedMs, undefined, undefined);
        return { response };
      } catch (thrown) {
        // Whether it sent anything back: the attempt has noted the status meanwhile.
        end(this.#call.record.status !== undefined);
        return { next: this.#fail(step, startedMs, thrown) };
      }
    } finally {
      if (delayMs !== undefined) budget.release();
    }
  }

  /** Notes a failure; returns what is tried now. An abort is thrown on. */
  #fail(step: Step, startedMs: number, thrown: unknown): Step | undefined {
    const call = this.#call;
    const { target } = step;
    const { health } = this.#deps.routing;
    const { offers } = this.#deps.partsOf(call.operation);
    // Says nothing about the target, unless a failure is read from it.
    health.forget(target);
    if (call.signal.aborted) throw thrown;
    const failed = readFailedAttempt(thrown, target, offers.get(target.provider));
    reportFailure(health, target, failed, call.record.status);
    this.#noteRetry(target, failed, call.elapsedMs - startedMs);
    const next = this.#nextAfter(failed);
    this.#observe(step, startedMs, failed, next);
    if (failed.isRefusal) call.record.skipped.push(target.provider);
    // What a missing key or a refusal hides must not replace what a real attempt said; of refusals the first one counts.
    if (!this.#error || (failed.error.code !== 'provider_not_configured' && !failed.isRefusal))
      this.#error = failed.error;
    if (!next && failed.failover && call.record.attempts >= ATTEMPTS_OF_SDKS) this.#error = inVain(this.#error);
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
    const isFirst = this.#call.record.attempts === 0;
    const target =
      this.#remaining.find((each) => health.mayTry(each) && !this.#isStuck(each)) ??
      this.#remaining.find((each) => health.mayTry(each)) ??
      health.bestOf(this.#remaining.filter((each) => isFirst || MAY_HAVE_PASSED.has(health.causeOf(each))));
    if (!target) return undefined;
    this.#remaining = this.#remaining.filter((each) => each !== target);
    return { target };
  }

  #isStuck(target: Target): boolean {
    const { stream } = this.#call;
    const { health, waiting } = this.#deps.routing;
    return waiting.isStuck(target, stream, health.latencyMs(target, stream));
  }

  #noteRetry(target: Target, failed: FailedAttempt, durationMs: number): void {
    const { class: kind, phase, isSent = true, error } = failed;
    const { status } = this.#call.record;
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
      ...{ stream: call.stream, request: call.request },
      anotherWaits: this.#remaining.some((each) => health.mayTry(each)),
      isDoubtful: health.isDoubtful(target),
    });
  }

  /** Tells operators and observers what came of an attempt, and what is done now. */
  #observe({ target }: Step, startedMs: number, failed: FailedAttempt | undefined, then: Step | undefined): void {
    const call = this.#call;
    const next: AttemptReport['next'] = !failed
      ? 'respond'
      : !then
        ? 'end'
        : then.delayMs === undefined
          ? 'next target'
          : 'retry';
    const number = call.targets.indexOf(target) + 1;
    // A missing key would be a line for each call, and a plugin's error has one of its own.
    if (failed && isOfTarget(failed))
      this.#deps.log.warn(
        {
          request_id: call.requestId,
          target: `${target.provider}/${target.model.slice(0, 100)}`,
          status: call.record.status,
          class: failed.class,
          reason: redact(failed.message),
          ms: Math.round(call.elapsedMs - startedMs),
          next: next === 'next target' && then ? `${then.target.provider}/${then.target.model.slice(0, 100)}` : next,
        },
        'an attempt failed',
      );
    void call.hooks.attempt?.(
      call,
      attemptReport(call, { target, number, startedMs, failed, next, then: then?.target }),
    );
  }
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
