import type { HedgeRule, ModelRoute } from '../../config/model-routes.ts';
import {
  type CallAttempt,
  type CallHook,
  type Call as CallView,
  COUNT,
  type Operation,
  type OperationTexts,
  type Outcome,
  type OutcomeStatus,
  type Principal,
  type RequestOf,
  type Target,
  type TraceContext,
  type Units,
} from '../../contract/call.ts';
import type { Usage } from '../../contract/chat.ts';
import type { GatewayError } from '../../contract/errors.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { Metered } from '../../contract/operation.ts';
import type { OperationContext } from '../../contract/plugin.ts';
import type { Endpoint, ResponseHeaders, Timeouts } from '../../contract/provider.ts';
import { END_USER_TAG } from '../../contract/units.ts';
import type { TargetAttempt } from '../../routing/health-book.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import type { Rejected } from './added-fields.ts';
import type { CallDeps, OperationParts } from './call-deps.ts';
import { readEndUser } from './end-user.ts';
import { createOrderedId } from './ids.ts';
import type { InboundChat } from './inbound-chat.ts';
import type { Route, RouteTarget } from './routes.ts';
import { readTrace } from './trace.ts';

const NOTHING: ReadonlySet<never> = new Set();
const NONE: readonly never[] = Object.freeze([]);
const NO_OPTIONS: Pick<OperationContext, 'skip' | 'tags' | 'targets' | 'requested'> = Object.freeze({});

/** Running call. Plugins see it as the contract's `Call`; only core writes to it. */
export class Call implements CallView {
  readonly id: string;
  readonly requestId: string;
  readonly principal: Principal;
  readonly operation: Operation;
  readonly stream: boolean;
  readonly startedAt: number;
  /** Fires when the caller has disconnected, or the gateway drains. */
  readonly signal: AbortSignal;
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state: Map<symbol, unknown>;
  readonly headers: Map<string, string>;
  readonly session: string | undefined;
  readonly trace: TraceContext;
  readonly endUser: string | undefined;
  readonly tags: readonly string[];
  /** Parts of its operation. */
  readonly parts: OperationParts;
  readonly hooks: CompiledHooks;
  /** Caller's side of a chat that came over HTTP. */
  readonly client: InboundChat | undefined;
  /** Targets that a plugin named in place of a model. */
  readonly given: Pick<OperationContext, 'targets' | 'requested'>;
  /** Resolves when the call has ended and its `finish` hooks are done. */
  readonly ended: Promise<void>;
  #request: RequestOf<Operation>;
  #targets: readonly Target[];
  #record: CallRecord;
  #route: Route | undefined;
  #hasFinished = false;
  #onEnded: () => void = () => {};
  readonly #deps: CallDeps;
  readonly #context: OperationContext;
  readonly #mark: number;

  /** `original`: the call that this one is a copy of, with its own `signal`. */
  constructor(
    deps: CallDeps,
    operation: Operation,
    request: RequestOf<Operation>,
    context: OperationContext,
    client?: InboundChat,
    original?: Call,
    signal?: AbortSignal,
  ) {
    const { principal } = context;
    // The state of an HTTP request may have fields of other middleware.
    const options = client ? NO_OPTIONS : context;
    this.#deps = deps;
    this.#context = context;
    this.given = options;
    this.id = original?.id ?? createOrderedId('call_');
    this.startedAt = original?.startedAt ?? Date.now();
    this.state = original?.state ?? new Map();
    this.headers = original?.headers ?? new Map();
    this.#record = new CallRecord(original?.record);
    this.#route = original?.route;
    this.#mark = original ? original.#mark : performance.now();
    this.#request = original ? original.#request : deepFreeze(request);
    this.#targets = original ? original.#targets : NONE;
    this.operation = operation;
    this.stream = operation !== COUNT && 'stream' in request && request.stream === true;
    this.requestId = context.requestId;
    this.principal = deepFreeze(principal);
    // Calls without a signal are aborted when the generation closes.
    this.signal = signal ?? context.signal ?? deps.closing;
    this.skip = options.skip ? new Set(options.skip) : NOTHING;
    this.session = context.session;
    this.trace = context.trace ?? readTrace({});
    this.endUser = original ? original.endUser : (this.trace.origin?.endUser ?? endUserOf(request));
    const tags = options.tags ?? principal.tags ?? NONE;
    this.tags = Object.freeze(deps.tagsEndUsers ? withEndUser(tags, this.endUser) : tags);
    this.parts = deps.partsOf(operation);
    this.hooks = this.parts.hooks;
    this.client = client;
    this.ended = original?.ended ?? new Promise((resolve) => (this.#onEnded = resolve));
    Object.freeze(this);
  }

  /** Counts the call as running until {@link finish}. */
  begin(): void {
    this.#deps.pending.begin('a call');
    this.#deps.routing.budget.live += 1;
  }

  /**
   * Copies the call for one of two concurrent attempts, with a separate record and signal. Only the original call is
   * finished.
   */
  fork(signal: AbortSignal): Call {
    return new Call(this.#deps, this.operation, this.#request, this.#context, this.client, this, signal);
  }

  get record(): CallRecord {
    return this.#record;
  }

  /** Takes over the record of an attempt that ran on a {@link fork}. */
  adopt(record: CallRecord): void {
    this.#record = record;
  }

  /** Texts of its operation that guardrails check. */
  get texts(): OperationTexts | undefined {
    return this.parts.definition?.texts;
  }

  get request(): RequestOf<Operation> {
    return this.#request;
  }

  /** Replaces the request, for example by the result of the `prepare` hooks. */
  replaceRequest(request: RequestOf<Operation>): void {
    this.#record.estimate = undefined;
    this.#request = deepFreeze(request);
  }

  get targets(): readonly Target[] {
    return this.#targets;
  }

  /** Meaning of its model name, once known. */
  get route(): Route | undefined {
    return this.#route;
  }

  useRoute(route: Route): void {
    this.#route = route;
    this.replaceTargets(route.targets);
  }

  /** Returns one of its targets with its offer, model and prices. */
  at(target: Target): RouteTarget {
    return this.parts.routes.at(target);
  }

  replaceTargets(targets: readonly Target[]): void {
    this.#record.estimate = undefined;
    this.#targets = deepFreeze(targets);
  }

  get elapsedMs(): number {
    return performance.now() - this.#mark;
  }

  /** Ends the call and reports its outcome to its caller and the `finish` hooks. Has no effect after the first time. */
  finish(status: OutcomeStatus, error?: GatewayError): void {
    if (this.#hasFinished) return;
    this.#hasFinished = true;
    const { running } = this.#record;
    const { pending, routing } = this.#deps;
    // Interrupted streams were reported already. A stream that the caller aborted says nothing about the target.
    if (running && status === 'ok')
      routing.health.report(running.target, { kind: 'success', stream: true }, 'model', running);
    else if (running) routing.health.leave(running);
    const outcome = outcomeOf(this, status, error);
    try {
      this.#context.onOutcome?.(this, outcome);
    } catch (thrown) {
      // Errors of a plugin's listener are logged like any uncaught error. The call is charged all the same.
      void Promise.reject(thrown);
    }
    const end = (): void => {
      pending.end('a call');
      routing.budget.live -= 1;
      this.#onEnded();
    };
    if (this.hooks.finish) this.hooks.finish(this, outcome, end);
    else end();
  }
}

/** Returns the end user that the fields of a request name. */
function endUserOf(request: object): string | undefined {
  return readEndUser(
    ('user' in request && request.user) || ('safety_identifier' in request && request.safety_identifier),
  );
}

/** Adds the end user to the tags of a call, by which reports group and filter. */
function withEndUser(tags: readonly string[], endUser: string | undefined): readonly string[] {
  return endUser === undefined ? tags : [...tags, `${END_USER_TAG}=${endUser}`];
}

/** Outcome of a call that ends, with its cost to the caller. */
function outcomeOf(call: Call, status: OutcomeStatus, error: GatewayError | undefined): Outcome {
  const { record } = call;
  const { target, attempts, hooks, refusedBy, lane, serviceTier, saved, hedged, upstreamMs } = record;
  const { firstByteMs, firstTokenMs, lastTokenMs, dropped, hookTimes } = record;
  const metered = owedBy(record);
  const usage = record.usage ?? (metered && usageOfUnits(metered.units));
  const outcome: Mutable<Outcome> = {
    status,
    attempts: attempts.length === 0 ? NONE : attempts.map((attempt) => ({ ...attempt })),
    estimated: metered?.estimated ?? false,
    sent: record.sentTo.length > 0 || hedged !== undefined,
    upstreamMs,
    durationMs: call.elapsedMs,
  };
  if (error) outcome.error = error;
  if (target) outcome.target = target;
  if (refusedBy !== undefined) outcome.refusedBy = refusedBy;
  if (hooks.length > 0) outcome.hooks = hooks.slice(0, MAX_HOOKS);
  if (hookTimes) outcome.hookTimes = hookTimes.slice(0, MAX_HOOKS);
  if (lane) outcome.lane = lane;
  if (serviceTier !== undefined) outcome.serviceTier = serviceTier;
  if (dropped) outcome.dropped = dropped;
  if (record.unmappedFinish !== undefined) outcome.unmappedFinish = record.unmappedFinish;
  if (call.client && call.client.omitted.length > 0) outcome.omitted = call.client.omitted;
  if (usage) outcome.usage = usage;
  if (metered) outcome.units = metered.units;
  if (metered?.cost !== undefined) outcome.cost = metered.cost;
  if (metered?.parts) outcome.costParts = metered.parts;
  if (saved !== undefined) outcome.saved = saved;
  if (firstByteMs !== undefined) outcome.firstByteMs = firstByteMs;
  if (firstTokenMs !== undefined) outcome.firstTokenMs = firstTokenMs;
  if (lastTokenMs !== undefined) outcome.lastTokenMs = lastTokenMs;
  if (record.retryWaitMs > 0) outcome.retryWaitMs = record.retryWaitMs;
  return deepFreeze(outcome);
}

/** Maximum number of hook actions, and of hook times, in an outcome. */
const MAX_HOOKS = 20;

/** Key that an attempt is sent with, if its provider has several. */
interface KeyInUse {
  readonly name: string;
  /** Provider's endpoint with that key alone. */
  readonly endpoint: Endpoint;
  /** Attempt whose result determines the health of the key. */
  readonly attempt: TargetAttempt;
}

/**
 * State of a call: decisions of its alias's rules, and results of its attempts. Core writes it and builds
 * the {@link Outcome} from it.
 */
export class CallRecord {
  /** Rules of the alias that chose between the targets; undefined if a plugin chose. */
  rule: ModelRoute | undefined = undefined;
  /** Key that the calls of one conversation share. */
  stickyKey: string | undefined = undefined;
  /** Rule for a second target concurrently with one that takes long; undefined for never. */
  hedge: HedgeRule | undefined = undefined;
  /** Target for prompts that are too long for the others. */
  overflow: Target | undefined = undefined;
  /** True while another target resumes a stream: it gets the request with a begun response. */
  isResumed = false;
  /** True if no vendor may get the caller's own body, because a hook changed texts that only this body has. */
  isTranslated = false;
  /** Paths of optional parts of the request that this caller may not have. */
  without: readonly string[] = NONE;
  /** Target that was tried last, or is owed what was metered. */
  target: Target | undefined = undefined;
  /** Every request that was sent to a provider. */
  attempts: Mutable<CallAttempt>[] = [];
  /** Start of the last of them, in milliseconds from the start of the call. */
  attemptedMs = 0;
  /** Hook actions, and hooks that took over a millisecond. */
  hooks: CallHook[] = [];
  hookTimes: NonNullable<Outcome['hookTimes']>[number][] | undefined = undefined;
  /** True once it was let through: a target was tried, or a hook responded. */
  isLetThrough = false;
  /** Check that rejected it before that. */
  refusedBy: string | undefined = undefined;
  /** Attempt that has not ended, or whose stream is still running. The end of the call reports its target's health. */
  running: TargetAttempt | undefined = undefined;
  /** Key that the attempt is sent with, if its provider has several. */
  key: KeyInUse | undefined = undefined;
  /** HTTP status of the last attempt; undefined if its provider sent none. */
  status: number | undefined = undefined;
  /** Targets that were sent the call and did not reject it. Their work is owed even without a response. */
  sentTo: Target[] = [];
  usage: Usage | undefined = undefined;
  /** Set if the last attempt failed at fields that the gateway had added. The next one omits them. */
  rejected: Rejected | undefined = undefined;
  /** Fields that the last attempt omitted since its target had rejected them. Later calls omit them if it succeeds. */
  omitted: Rejected | undefined = undefined;
  /** Service tier that served the last attempt, if reported, else the one that was requested. */
  serviceTier: string | undefined = undefined;
  metered: Metered | undefined = undefined;
  /**
   * Owed for other requests: of the slower one of two concurrent targets, of a target that broke off a stream which another one
   * resumed, or of a response without a required tool call.
   */
  hedged: Metered | undefined = undefined;
  /** Cost that a cached response has saved. */
  saved: number | undefined = undefined;
  /** Target that resumed a stream which broke off. */
  resumedAt: Target | undefined = undefined;
  firstByteMs: number | undefined = undefined;
  firstTokenMs: number | undefined = undefined;
  lastTokenMs: number | undefined = undefined;
  upstreamMs = 0;
  /** Pauses before retries. */
  retryWaitMs = 0;
  /**
   * Aborts the attempts in place of the call's signal. A stream is read on for its usage after its caller has
   * disconnected.
   */
  attemptSignal: AbortSignal | undefined = undefined;
  timeouts: Partial<Timeouts> | undefined = undefined;
  /** Lane of the last attempt's request and response. */
  lane: Outcome['lane'] = undefined;
  /** Fields of the request that the last target was not sent. */
  dropped: readonly string[] | undefined = undefined;
  /**
   * True if the response continues after its target was tried, as a stream does. Its end determines the target's
   * health.
   */
  goesOn = false;
  /** Vendor's own response, parsed, if the caller gets it. */
  native: unknown = undefined;
  /** Headers of the vendor's response. */
  providerHeaders: ResponseHeaders | undefined = undefined;
  /** Headers of a hook that has responded in place of a target. */
  hookHeaders: Readonly<Record<string, string>> | undefined = undefined;
  /** Vendor's unknown finish reason of a response that counts as incomplete. */
  unmappedFinish: string | undefined = undefined;
  /** Providers that cannot do what the request asks for. */
  skipped: string[] = [];
  /** Most that the call may cost, for its current request and targets. */
  estimate: Metered | undefined = undefined;

  /** `original`: the record of a call with two concurrent attempts, each with a separate record. */
  constructor(original?: CallRecord) {
    if (!original) return;
    const { rule, stickyKey, hedge, overflow, isResumed, isTranslated, without, rejected } = original;
    Object.assign(this, { rule, stickyKey, hedge, overflow, isResumed, isTranslated, without, rejected });
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Merges the records of earlier and concurrent attempts into the record of the last one. */
export function joinRecords(before: readonly CallRecord[], last: CallRecord): CallRecord {
  const all = [...before, last];
  return Object.assign(last, {
    attempts: all.toSorted((a, b) => a.attemptedMs - b.attemptedMs).flatMap(({ attempts }) => attempts),
    attemptedMs: Math.max(...all.map(({ attemptedMs }) => attemptedMs)),
    hooks: all.flatMap(({ hooks }) => hooks),
    hookTimes: all.some(({ hookTimes }) => hookTimes) ? all.flatMap(({ hookTimes = [] }) => hookTimes) : undefined,
    upstreamMs: last.upstreamMs + (before[0]?.upstreamMs ?? 0),
    retryWaitMs: all.reduce((sum, { retryWaitMs }) => sum + retryWaitMs, 0),
    sentTo: all.flatMap(({ sentTo }) => sentTo),
    skipped: all.flatMap(({ skipped }) => skipped),
    firstByteMs: last.firstByteMs ?? all.find(({ firstByteMs }) => firstByteMs !== undefined)?.firstByteMs,
    target: last.target ?? all.findLast(({ target }) => target)?.target,
    hedged: all.reduce<Metered | undefined>((metered, { hedged }) => owedBy({ metered, hedged }), undefined),
  });
}

/** Total that a call owes; undefined while nothing was metered. */
export function owedBy({ metered, hedged }: Pick<CallRecord, 'metered' | 'hedged'>): Metered | undefined {
  return metered && hedged ? addMetered(metered, hedged) : (metered ?? hedged);
}

/** Keeps what was metered as owed, since a further request of the call is metered next. */
export function oweMetered(record: CallRecord): void {
  Object.assign(record, { hedged: owedBy(record), metered: undefined, usage: undefined });
  record.sentTo.length = 0;
}

/** Adds two metered amounts. The cost is undefined if either one is. */
function addMetered(one: Metered, other: Metered): Metered {
  const units: Record<string, number> = { ...one.units };
  for (const [unit, amount] of Object.entries(other.units)) units[unit] = (units[unit] ?? 0) + amount;
  const cost = one.cost === undefined || other.cost === undefined ? undefined : one.cost + other.cost;
  const parts = one.parts && other.parts && [...one.parts, ...other.parts];
  return { units, cost, ...(parts && { parts }), estimated: one.estimated === true || other.estimated === true };
}

/** Converts units to usage as OpenAI counts it; undefined without tokens. */
function usageOfUnits({ prompt_tokens, completion_tokens = 0 }: Units): Usage | undefined {
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

/** Maximum number of ignored fields that are recorded, and maximum length of their names. */
const MAX_DROPPED = 32;
const MAX_DROPPED_NAME = 64;

/** Adds fields that a vendor ignored to those that its request did not have. */
export function recordDropped({ record }: Call, dropped: readonly string[]): void {
  if (dropped.length === 0) return;
  const names = dropped.slice(0, MAX_DROPPED).map((name) => name.slice(0, MAX_DROPPED_NAME));
  record.dropped = [...new Set([...(record.dropped ?? []), ...names])];
}
