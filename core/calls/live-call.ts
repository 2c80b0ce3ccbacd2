import type {
  Call,
  CallClient,
  Operation,
  Outcome,
  OutcomeStatus,
  Principal,
  RequestOf,
  Target,
  Units,
} from '../contract/call.ts';
import type { Usage } from '../contract/chat.ts';
import type { GatewayError } from '../contract/errors.ts';
import { deepFreeze } from '../contract/json.ts';
import type { Metered } from '../contract/operation.ts';
import type { Timeouts } from '../contract/provider.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import { createOrderedId } from './ids.ts';
import type { Ingress, Lane } from './ingress.ts';

/** Who calls, and how: what every way into a call gives. */
export interface CallInit {
  readonly requestId: string;
  readonly principal: Principal;
  /** Fires when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** What the caller named its session: for what belongs together, never for limits or money. */
  readonly session?: string;
  /** What the call is booked under; the principal's own unless set. */
  readonly tags?: readonly string[];
  /** Whether the caller says that doing it twice does no harm (`idempotency-key`). */
  readonly isIdempotent?: boolean;
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
  readonly requested?: string | undefined;
  /** The alias of the configuration that the targets came by: its rules choose between them. */
  readonly alias?: string | undefined;
  /** The client's own format, for a chat that came in over HTTP. */
  readonly ingress?: Ingress;
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
  /** The service tier that the last attempt was sent with, where it is not the standard one. */
  serviceTier: string | undefined;
  metered: Metered | undefined;
  /** What a kept response has saved. */
  saved: number | undefined;
  firstByteMs: number | undefined;
  upstreamMs: number;
  /** Ends the attempts in place of the call's signal: a stream reads on for what it owes after its caller has left. */
  attemptSignal: AbortSignal | undefined;
  /** The clocks of the attempt that runs. */
  clocks: Partial<Timeouts> | undefined;
  /** How the last attempt was sent, and its response goes out. */
  lane: Lane | undefined;
  /** Providers that could not be sent this request at all. */
  readonly skipped: string[];
}

const NOTHING: ReadonlySet<never> = new Set();

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
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state = new Map<symbol, unknown>();
  readonly headers = new Map<string, string>();
  readonly alias: string | undefined;
  readonly session: string | undefined;
  readonly tags: readonly string[];
  readonly isIdempotent: boolean;
  readonly hooks: CompiledHooks;
  readonly record: CallRecord = {
    target: undefined,
    attempts: 0,
    status: undefined,
    sentTo: [],
    usage: undefined,
    serviceTier: undefined,
    metered: undefined,
    saved: undefined,
    firstByteMs: undefined,
    upstreamMs: 0,
    attemptSignal: undefined,
    clocks: undefined,
    lane: undefined,
    skipped: [],
  };
  #request: RequestOf<Operation>;
  #targets: readonly Target[];
  #overflow: Target | undefined;
  #stickyKey: string | undefined;
  #timeouts: Partial<Timeouts> | undefined;
  #ingress: Ingress | undefined;
  readonly #mark = performance.now();
  /** Resolves when the call has ended and its `finish` hooks are done. */
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  readonly #onOutcome: CallInit['onOutcome'];
  #finished: Promise<void> | undefined;

  constructor(callRequest: CallRequest, init: CallInit, hooks: CompiledHooks) {
    this.operation = callRequest.operation;
    this.#request = deepFreeze(callRequest.request);
    this.stream = callRequest.stream;
    this.#targets = deepFreeze(callRequest.targets);
    this.requestId = init.requestId;
    this.principal = deepFreeze(init.principal);
    this.signal = init.signal;
    this.skip = init.skip ? new Set(init.skip) : NOTHING;
    this.alias = callRequest.alias;
    this.session = init.session;
    this.tags = Object.freeze(init.tags ?? init.principal.tags ?? []);
    this.isIdempotent = init.isIdempotent ?? false;
    this.hooks = hooks;
    this.#ingress = callRequest.ingress;
    this.#onOutcome = init.onOutcome;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    Object.freeze(this);
  }

  get request(): RequestOf<Operation> {
    return this.#request;
  }

  get targets(): readonly Target[] {
    return this.#targets;
  }

  get client(): CallClient | undefined {
    return this.#ingress;
  }

  get ingress(): Ingress | undefined {
    return this.#ingress;
  }

  /** Notes the places of optional things that this caller may not have. */
  withhold(without: readonly string[]): void {
    if (this.#ingress && without.length > 0) this.#ingress = { ...this.#ingress, without };
  }

  /** What the `prepare` hooks made of the request. */
  replaceRequest(request: RequestOf<Operation>): void {
    this.#request = deepFreeze(request);
  }

  /** Where a `route` hook or an alias sends the call; `overflow` is the one of them for prompts that are too long for the others. */
  replaceTargets(targets: readonly Target[], overflow?: Target): void {
    this.#targets = deepFreeze(targets);
    this.#overflow = overflow;
  }

  get overflow(): Target | undefined {
    return this.#overflow;
  }

  /** What an alias says of its calls: what they have in common, and their clocks. */
  routeBy(stickyKey: string | undefined, timeouts: Partial<Timeouts>): void {
    this.#stickyKey = stickyKey;
    this.#timeouts = timeouts;
  }

  get stickyKey(): string | undefined {
    return this.#stickyKey;
  }

  get timeouts(): Partial<Timeouts> | undefined {
    return this.#timeouts;
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
    // What a plugin's own listener throws is logged as what nobody caught; the books are written all the same.
    void (async () => this.#onOutcome?.(this, outcome))();
    await this.hooks.finish?.(this, outcome);
    this.#end();
  }

  #outcome(status: OutcomeStatus, error: GatewayError | undefined): Outcome {
    const { target, attempts, lane, usage, metered, saved, sentTo, firstByteMs, upstreamMs } = this.record;
    const told = usage ?? (metered && usageOfUnits(metered.units));
    const outcome: { -readonly [Field in keyof Outcome]: Outcome[Field] } = {
      status,
      attempts,
      estimated: metered?.estimated ?? false,
      sent: sentTo.length > 0,
      upstreamMs,
      durationMs: this.elapsedMs,
    };
    if (error) outcome.error = error;
    if (target) outcome.target = target;
    if (lane) outcome.lane = lane;
    if (told) outcome.usage = told;
    if (metered) outcome.units = metered.units;
    if (metered?.cost !== undefined) outcome.cost = metered.cost;
    if (saved !== undefined) outcome.saved = saved;
    if (firstByteMs !== undefined) outcome.firstByteMs = firstByteMs;
    return deepFreeze(outcome);
  }
}

/** Tokens among units as OpenAI counts them; undefined when there are none. */
function usageOfUnits(units: Units): Usage | undefined {
  const { prompt_tokens, completion_tokens = 0 } = units;
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
