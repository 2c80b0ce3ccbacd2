import type { Call, Operation, Outcome, OutcomeStatus, Principal, RequestOf, Target, Units } from '../contract/call.ts';
import type { Usage } from '../contract/chat.ts';
import type { GatewayError } from '../contract/errors.ts';
import type { Metered } from '../contract/operation.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import { createOrderedId } from './ids.ts';

/** Who calls, and how: what every way into a call gives. */
export interface CallInit {
  readonly requestId: string;
  readonly principal: Principal;
  /** Fires when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** Receives the outcome before the `finish` hooks run. */
  onOutcome?(call: Call, outcome: Outcome): void;
}

/** What is asked, and of whom. */
export interface CallRequest<O extends Operation = Operation> {
  readonly operation: O;
  readonly request: RequestOf<O>;
  readonly stream: boolean;
  readonly targets: readonly Target[];
  /** The model as the caller wrote it, when that was an alias. */
  readonly requested?: string;
}

/** What came of a call so far; core fills it in as the call goes on. */
export interface CallRecord {
  /** The target that was tried last. */
  target: Target | undefined;
  attempts: number;
  /** The status of the last attempt; undefined when its provider sent none. */
  status: number | undefined;
  /** The targets that were sent the call and did not refuse it: what they did is owed even when no response came. */
  readonly sentTo: Target[];
  usage: Usage | undefined;
  metered: Metered | undefined;
  firstByteMs: number | undefined;
  upstreamMs: number;
}

/** A call on its way. Plugins see it as a {@link Call}; only core writes to it. */
export class LiveCall implements Call {
  readonly id = createOrderedId('call_');
  readonly requestId: string;
  readonly principal: Principal;
  readonly operation: Operation;
  readonly stream: boolean;
  readonly startedAt = Date.now();
  /** Fires when the caller has left, or the gateway drains. */
  readonly signal: AbortSignal;
  /** Ends the attempts: `signal`, unless a stream reads on for what it owes after its caller has left. */
  attemptSignal: AbortSignal;
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state = new Map<symbol, unknown>();
  readonly hooks: CompiledHooks;
  readonly record: CallRecord = {
    target: undefined,
    attempts: 0,
    status: undefined,
    sentTo: [],
    usage: undefined,
    metered: undefined,
    firstByteMs: undefined,
    upstreamMs: 0,
  };
  request: RequestOf<Operation>;
  targets: readonly Target[];
  readonly #mark = performance.now();
  readonly #onOutcome: CallInit['onOutcome'];
  #finished: Promise<void> | undefined;

  constructor(asked: CallRequest, init: CallInit, hooks: CompiledHooks) {
    this.operation = asked.operation;
    this.request = asked.request;
    this.stream = asked.stream;
    this.targets = asked.targets;
    this.requestId = init.requestId;
    this.principal = init.principal;
    this.signal = init.signal;
    this.attemptSignal = init.signal;
    this.skip = new Set(init.skip);
    this.hooks = hooks;
    this.#onOutcome = init.onOutcome;
  }

  get elapsedMs(): number {
    return performance.now() - this.#mark;
  }

  /**
   * Ends the call: the outcome is told and the `finish` hooks run, once however often this is called. Resolves when they are
   * done; they never reject.
   */
  finish(status: OutcomeStatus, error?: GatewayError): Promise<void> {
    this.#finished ??= this.#finish(this.#outcome(status, error));
    return this.#finished;
  }

  async #finish(outcome: Outcome): Promise<void> {
    this.#onOutcome?.(this, outcome);
    await this.hooks.finish?.(this, outcome);
  }

  #outcome(status: OutcomeStatus, error: GatewayError | undefined): Outcome {
    const { target, attempts, usage, metered, sentTo, firstByteMs, upstreamMs } = this.record;
    const told = usage ?? (metered && usageOfUnits(metered.units));
    return Object.freeze({
      status,
      attempts,
      estimated: metered?.estimated ?? false,
      sent: sentTo.length > 0,
      upstreamMs,
      durationMs: this.elapsedMs,
      ...(error && { error }),
      ...(target && { target }),
      ...(told && { usage: told }),
      ...(metered && { units: metered.units }),
      ...(metered?.cost !== undefined && { cost: metered.cost }),
      ...(firstByteMs !== undefined && { firstByteMs }),
    });
  }
}

/** Tokens among units as OpenAI counts them; undefined when there are none. */
function usageOfUnits(units: Units): Usage | undefined {
  const { prompt_tokens, completion_tokens = 0 } = units;
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
