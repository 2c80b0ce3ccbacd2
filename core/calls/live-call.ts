import type { Call, Operation, OperationRequest, Outcome, OutcomeStatus, Principal, Target } from '../contract/call.ts';
import type { Usage } from '../contract/chat.ts';
import type { GatewayError } from '../contract/errors.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import { createOrderedId } from './ids.ts';

/** Who asks, and how: what every way into the pipeline gives. */
export interface CallInit {
  readonly requestId: string;
  readonly principal: Principal;
  /** Fires when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** Receives the outcome before the `finish` hooks run. */
  onOutcome?(call: Call, outcome: Outcome): void;
}

const NOTHING_SKIPPED: ReadonlySet<'rpm' | 'concurrency'> = new Set();

/** What the answer measured, filled in by core as the call goes on. */
export interface Measures {
  target: Target | undefined;
  attempts: number;
  usage: Usage | undefined;
  estimated: boolean;
  characters: number | undefined;
  cost: number | undefined;
  /** The targets that were sent the call and did not refuse it: what they did is owed even when no answer came. */
  readonly unanswered: Target[];
  firstByteAt: number | undefined;
  upstreamMs: number;
}

/** A call on its way. Plugins see it as a {@link Call}; only core writes to it. */
export class LiveCall<O extends Operation = Operation> implements Call<O> {
  readonly id = createOrderedId('call_');
  readonly requestId: string;
  readonly principal: Principal;
  readonly operation: O;
  readonly stream: boolean;
  readonly startedAt = Date.now();
  /** Fires when the caller has left, or the gateway drains. */
  readonly signal: AbortSignal;
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state = new Map<symbol, unknown>();
  readonly measures: Measures = {
    target: undefined,
    attempts: 0,
    usage: undefined,
    estimated: false,
    characters: undefined,
    cost: undefined,
    unanswered: [],
    firstByteAt: undefined,
    upstreamMs: 0,
  };
  request: OperationRequest[O];
  targets: readonly Target[];
  readonly #mark = performance.now();
  readonly #hooks: CompiledHooks;
  readonly #init: CallInit;
  #finished: { readonly hooks: Promise<void> | undefined } | undefined;

  constructor(
    operation: O,
    request: OperationRequest[O],
    stream: boolean,
    targets: readonly Target[],
    init: CallInit,
    hooks: CompiledHooks,
  ) {
    this.operation = operation;
    this.request = request;
    this.stream = stream;
    this.targets = targets;
    this.requestId = init.requestId;
    this.principal = init.principal;
    this.signal = init.signal;
    this.skip = init.skip ? new Set(init.skip) : NOTHING_SKIPPED;
    this.#init = init;
    this.#hooks = hooks;
  }

  get elapsedMs(): number {
    return performance.now() - this.#mark;
  }

  /**
   * Ends the call: the outcome is told and the `finish` hooks run, once however often this is called. Answers the hooks that
   * are still at work, undefined when none is.
   */
  finish(status: OutcomeStatus, error?: GatewayError): Promise<void> | undefined {
    this.#finished ??= { hooks: this.#finish(status, error) };
    return this.#finished.hooks;
  }

  #finish(status: OutcomeStatus, error: GatewayError | undefined): Promise<void> | undefined {
    const { target, attempts, usage, estimated, characters, cost, unanswered, firstByteAt, upstreamMs } = this.measures;
    const outcome: Outcome = Object.freeze({
      status,
      attempts,
      estimated,
      sent: unanswered.length > 0,
      upstreamMs,
      durationMs: this.elapsedMs,
      ...(error && { error }),
      ...(target && { target }),
      ...(usage && { usage }),
      ...(characters !== undefined && { characters }),
      ...(cost !== undefined && { cost }),
      ...(firstByteAt !== undefined && { firstByteMs: firstByteAt }),
    });
    this.#init.onOutcome?.(this, outcome);
    return this.#hooks.finish?.(this, outcome) ?? undefined;
  }
}
