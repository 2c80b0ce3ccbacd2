import { randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { HedgeRule } from '../../config/model-routes.ts';
import type {
  CallAttempt,
  CallHook,
  Call as CallView,
  Operation,
  Outcome,
  OutcomeStatus,
  Principal,
  RequestOf,
  Target,
  TraceContext,
  Units,
} from '../../contract/call.ts';
import type { Usage } from '../../contract/chat.ts';
import type { GatewayError } from '../../contract/errors.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { Metered } from '../../contract/operation.ts';
import type { CallContext } from '../../contract/plugin.ts';
import type { Endpoint, FailureClass, HttpRequest, Timeouts } from '../../contract/provider.ts';
import type { TargetAttempt } from '../../routing/health-book.ts';
import type { CompiledHooks } from '../plugins/compile-hooks.ts';
import type { CallDeps } from './call-deps.ts';
import type { Ingress, Lane } from './ingress.ts';

const pool = Buffer.alloc(16 * 128);
let used = pool.length;

/** 128 random bits as text, drawn 128 times at once: the system takes as long for a few bytes as for many. */
function randomText(encoding: 'base64url' | 'hex'): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += 16;
  return pool.toString(encoding, used - 16, used);
}

/** A prefix and 22 url-safe random characters (128 bits), such as `req_…`. */
export function createId(prefix: string): string {
  return prefix + randomText('base64url');
}

let last = 0;

/**
 * An id as long as {@link createId}'s that is greater, as text, than those this process made before it and, as far as clocks agree,
 * those that others did: what is stored under it lies next to what was stored just before. 72 bits of it are random.
 */
export function createOrderedId(prefix: string): string {
  // Room for a thousand ids a millisecond; ten digits until the year 2083.
  last = Math.max(last + 1, Date.now() * 1024);
  return prefix + last.toString(36) + createId('').slice(0, 12);
}

const INBOUND = /^[\w.-]{8,128}$/;

/** The inbound `x-request-id` when it has the form that is kept, else a new one. */
export function requestIdOf(inbound: string | string[] | undefined): string {
  return typeof inbound === 'string' && INBOUND.test(inbound) ? inbound : createId('req_');
}

/** Caller identity and options. */
export interface Caller extends CallContext {
  /** Whether the caller says that doing it twice does no harm (`idempotency-key`). */
  readonly isIdempotent?: boolean;
}

/** Where a call goes. */
export interface Destination {
  readonly targets: readonly Target[];
  /** The model as the caller wrote it, when that was an alias. */
  readonly requested?: string | undefined;
  /** The alias of the configuration that the targets came by: its rules choose between them. */
  readonly alias?: string | undefined;
}

/** What a call is made of. */
export interface CallInput<O extends Operation = Operation> {
  readonly operation: O;
  readonly request: RequestOf<O>;
  readonly stream: boolean;
  readonly caller: Caller;
  /** Finds where it goes; what it throws refuses the call. */
  findTargets(): Destination;
  /** The target that made the response which this one continues: it is asked first while it works. */
  readonly follows?: Target | undefined;
  /** The client's own format, for a chat that came in over HTTP. */
  readonly ingress?: Ingress;
}

/** What the rules of its alias decide about a call; core fills it in before the first attempt. */
interface CallRoute {
  alias: string | undefined;
  /** What the calls of one conversation have in common. */
  stickyKey: string | undefined;
  timeouts: Partial<Timeouts> | undefined;
  /** When a second target is asked concurrently with one that takes long; undefined for never. */
  hedge: HedgeRule | undefined;
  /** The target for prompts that are too long for the others. */
  overflow: Target | undefined;
  /** Whether another target may say the rest of a stream that its vendor broke off. */
  mayResume: boolean;
  /** Whether one does so now: it is sent the request with a begun answer, as its codec writes it. */
  isResumed: boolean;
  /** Whether the caller's own body may go to no vendor, as a hook changed what the canonical request does not have of it. */
  isTranslated: boolean;
  /** Places of optional parts of the request that this caller may not have. */
  without: readonly string[];
}

const NOTHING: ReadonlySet<never> = new Set();
const NONE: readonly never[] = Object.freeze([]);

/** A call on its way. Plugins see it as the contract's `Call`; only core writes to it. */
export class Call implements CallView {
  readonly id: string;
  readonly requestId: string;
  readonly principal: Principal;
  readonly operation: Operation;
  readonly stream: boolean;
  readonly startedAt: number;
  /** Fires when the caller has left, or the gateway drains. */
  readonly signal: AbortSignal;
  readonly skip: ReadonlySet<'rpm' | 'concurrency'>;
  readonly state: Map<symbol, unknown>;
  readonly headers = new Map<string, string>();
  readonly session: string | undefined;
  readonly trace: TraceContext;
  readonly tags: readonly string[];
  readonly hooks: CompiledHooks;
  readonly client: Ingress | undefined;
  readonly follows: Target | undefined;
  readonly isIdempotent: boolean;
  readonly route: CallRoute;
  /** Resolves when the call has ended and its `finish` hooks are done. */
  readonly ended: Promise<void>;
  #request: RequestOf<Operation>;
  #targets: readonly Target[];
  #record: CallRecord = { ...EMPTY, attempts: [], hooks: [], sentTo: [], skipped: [] };
  #hasFinished = false;
  #onEnded: () => void = () => {};
  readonly #deps: CallDeps;
  readonly #input: CallInput;
  readonly #mark: number;

  /** `original`: the call that this one is a copy of, with an own `signal`. */
  constructor(deps: CallDeps, input: CallInput, original?: Call, signal?: AbortSignal) {
    const { caller, operation } = input;
    this.#deps = deps;
    this.#input = input;
    this.id = original?.id ?? createOrderedId('call_');
    this.startedAt = original?.startedAt ?? Date.now();
    this.state = original?.state ?? new Map();
    this.route = original?.route ?? {
      alias: undefined,
      stickyKey: undefined,
      timeouts: undefined,
      hedge: undefined,
      overflow: undefined,
      mayResume: false,
      isResumed: false,
      isTranslated: false,
      without: NONE,
    };
    this.#mark = original ? original.#mark : performance.now();
    this.#request = original ? original.#request : deepFreeze(input.request);
    this.#targets = original ? original.#targets : NONE;
    this.operation = operation;
    this.stream = input.stream;
    this.requestId = caller.requestId;
    this.principal = deepFreeze(caller.principal);
    // A caller that cannot leave is cut when the generation closes.
    this.signal = signal ?? caller.signal ?? deps.closing;
    this.skip = caller.skip ? new Set(caller.skip) : NOTHING;
    this.session = caller.session;
    this.trace = caller.trace ?? readTrace({});
    this.tags = Object.freeze(caller.tags ?? caller.principal.tags ?? []);
    this.hooks = deps.partsOf(operation).hooks;
    this.client = input.ingress;
    this.follows = input.follows;
    this.isIdempotent = caller.isIdempotent ?? false;
    this.ended = original?.ended ?? new Promise((resolve) => (this.#onEnded = resolve));
    Object.freeze(this);
    if (original) return;
    deps.pending.begin('a call');
    deps.routing.budget.live += 1;
  }

  /** The same call for one of two attempts that run at once: with a record and a signal of its own. Only the call itself ends. */
  fork(signal: AbortSignal): Call {
    return new Call(this.#deps, this.#input, this, signal);
  }

  get record(): CallRecord {
    return this.#record;
  }

  /** Goes on with what came of an attempt that ran on a {@link fork}. */
  adopt(record: CallRecord): void {
    this.#record = record;
  }

  get request(): RequestOf<Operation> {
    return this.#request;
  }

  /** What the `prepare` hooks made of the request. */
  replaceRequest(request: RequestOf<Operation>): void {
    this.#request = deepFreeze(request);
  }

  get targets(): readonly Target[] {
    return this.#targets;
  }

  replaceTargets(targets: readonly Target[]): void {
    this.#targets = deepFreeze(targets);
  }

  get elapsedMs(): number {
    return performance.now() - this.#mark;
  }

  /** Ends the call, once however often this is called: its caller and the `finish` hooks get the outcome. */
  finish(status: OutcomeStatus, error?: GatewayError): void {
    if (this.#hasFinished) return;
    this.#hasFinished = true;
    const { running } = this.#record;
    const { pending, routing } = this.#deps;
    // A stream that the vendor broke off was reported already; one that the caller cut says nothing.
    if (running && status === 'ok')
      routing.health.report(running.target, { kind: 'success', stream: true }, 'model', running);
    else if (running) routing.health.leave(running);
    const outcome = outcomeOf(this, status, error);
    try {
      this.#input.caller.onOutcome?.(this, outcome);
    } catch (thrown) {
      // What a plugin's own listener throws is logged like any uncaught error; the call is charged all the same.
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

/** What came of a call that ends, with its cost to the caller. */
function outcomeOf(call: Call, status: OutcomeStatus, error: GatewayError | undefined): Outcome {
  const { record } = call;
  const { target, attempts, hooks, refusedBy, lane, serviceTier, saved, hedged, upstreamMs } = record;
  const { firstByteMs, firstTokenMs, lastTokenMs, dropped, hookTimes } = record;
  const metered = owedBy(record);
  const usage = record.usage ?? (metered && usageOfUnits(metered.units));
  const outcome: { -readonly [Field in keyof Outcome]: Outcome[Field] } = {
    status,
    attempts: attempts.length === 0 ? NONE : attempts.map(showAttempt),
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
  if (call.client?.leftOut.size) outcome.leftOut = [...call.client.leftOut];
  if (usage) outcome.usage = usage;
  if (metered) outcome.units = metered.units;
  if (metered?.cost !== undefined) outcome.cost = metered.cost;
  if (metered?.parts) outcome.costParts = metered.parts;
  if (saved !== undefined) outcome.saved = saved;
  if (firstByteMs !== undefined) outcome.firstByteMs = firstByteMs;
  if (firstTokenMs !== undefined) outcome.firstTokenMs = firstTokenMs;
  if (lastTokenMs !== undefined) outcome.lastTokenMs = lastTokenMs;
  return deepFreeze(outcome);
}

/** How many of the things that hooks did a record has. */
const MAX_HOOKS = 20;

/** The key of a provider that an attempt is sent with, where there are several. */
interface KeyInUse {
  readonly name: string;
  /** The provider's endpoint with that key alone. */
  readonly endpoint: Endpoint;
  /** What comes of it tells how the key is. */
  readonly attempt: TargetAttempt;
}

/** A {@link CallAttempt} that may still run. */
export interface NotedAttempt {
  readonly target: Target;
  key?: string;
  /** Milliseconds from the start of the call. */
  readonly startedMs: number;
  ms: number;
  status?: number;
  class?: FailureClass | undefined;
  reason?: string | undefined;
}

/** What came of a call so far; core fills it in as the call goes on, and its {@link Outcome} is made of it. */
export interface CallRecord {
  /** The target that was tried last, or is owed what was metered. */
  target: Target | undefined;
  /** Every request that was sent to a provider. */
  readonly attempts: NotedAttempt[];
  /** What hooks did, and which of them took over a millisecond. */
  readonly hooks: CallHook[];
  hookTimes?: NonNullable<Outcome['hookTimes']>[number][] | undefined;
  /** Whether it was let through: a target was tried, or a hook responded. */
  isLetThrough: boolean;
  /** What refused it before that. */
  refusedBy: string | undefined;
  /** The attempt that has not ended yet, or whose stream goes on: the end of the call reports its target's health. */
  running: TargetAttempt | undefined;
  /** What the attempt is sent with where its provider has several keys. */
  key: KeyInUse | undefined;
  /** The status of the last attempt; undefined when its provider sent none. */
  status: number | undefined;
  /** The targets that were sent the call and did not refuse it: what they did is owed even when no response came. */
  readonly sentTo: Target[];
  usage: Usage | undefined;
  /** The service tier that served the last attempt, as far as was told; else the one it was sent with. */
  serviceTier: string | undefined;
  metered: Metered | undefined;
  /** What is owed to other targets: asked at the same time and left when this one responded, or broken off in a stream that this one goes on with. */
  hedged: Metered | undefined;
  /** What a kept response has saved. */
  saved: number | undefined;
  /** The target that said the rest of a stream which broke off. */
  resumedAt: Target | undefined;
  firstByteMs: number | undefined;
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
  upstreamMs: number;
  /** Ends the attempts in place of the call's signal: a stream reads on for what it owes after its caller has left. */
  attemptSignal: AbortSignal | undefined;
  timeouts: Partial<Timeouts> | undefined;
  /** How the last attempt was sent, and its response goes out. */
  lane: Lane | undefined;
  /** Fields of the request that the last target was not sent. */
  dropped: readonly string[] | undefined;
  /** The vendor's word for the end of an answer that was kept as incomplete. */
  unmappedFinish: string | undefined;
  /** Providers that could not be sent this request at all. */
  readonly skipped: string[];
}

/** Of a call that has not come to anything yet. */
const EMPTY = Object.freeze({
  target: undefined,
  isLetThrough: false,
  refusedBy: undefined,
  running: undefined,
  key: undefined,
  status: undefined,
  usage: undefined,
  serviceTier: undefined,
  metered: undefined,
  hedged: undefined,
  saved: undefined,
  resumedAt: undefined,
  firstByteMs: undefined,
  firstTokenMs: undefined,
  lastTokenMs: undefined,
  upstreamMs: 0,
  attemptSignal: undefined,
  timeouts: undefined,
  lane: undefined,
  dropped: undefined,
  unmappedFinish: undefined,
});

/** The record of an attempt after those that ran before it or at the same time: what they did is not forgotten. */
export function joinRecords(before: readonly CallRecord[], last: CallRecord): CallRecord {
  const all = [...before, last];
  return Object.assign(last, {
    attempts: all.flatMap(({ attempts }) => attempts).sort((a, b) => a.startedMs - b.startedMs),
    hooks: all.flatMap(({ hooks }) => hooks),
    hookTimes: all.some(({ hookTimes }) => hookTimes) ? all.flatMap(({ hookTimes = [] }) => hookTimes) : undefined,
    upstreamMs: last.upstreamMs + (before[0]?.upstreamMs ?? 0),
    sentTo: all.flatMap(({ sentTo }) => sentTo),
    skipped: all.flatMap(({ skipped }) => skipped),
    firstByteMs: last.firstByteMs ?? all.find(({ firstByteMs }) => firstByteMs !== undefined)?.firstByteMs,
    target: last.target ?? all.findLast(({ target }) => target)?.target,
    hedged: all.reduce<Metered | undefined>((metered, { hedged }) => owedBy({ metered, hedged }), undefined),
  });
}

function showAttempt({ target, key, ms, status, class: kind, reason }: NotedAttempt): CallAttempt {
  const name = `${target.provider}/${target.model}`;
  const shown: { -readonly [Field in keyof CallAttempt]: CallAttempt[Field] } =
    key === undefined ? { target: name, ms: Math.round(ms) } : { target: name, key, ms: Math.round(ms) };
  if (status !== undefined) shown.status = status;
  if (kind) shown.class = kind;
  if (reason !== undefined) shown.reason = reason;
  return shown;
}

/** All that a call owes; undefined while nothing was metered. */
export function owedBy({ metered, hedged }: Pick<CallRecord, 'metered' | 'hedged'>): Metered | undefined {
  return metered && hedged ? addMetered(metered, hedged) : (metered ?? hedged);
}

/** The cost of both is not known when that of one is not. */
function addMetered(one: Metered, other: Metered): Metered {
  const units: Record<string, number> = { ...one.units };
  for (const [unit, amount] of Object.entries(other.units)) units[unit] = (units[unit] ?? 0) + amount;
  const cost = one.cost === undefined || other.cost === undefined ? undefined : one.cost + other.cost;
  const parts = one.parts && other.parts && [...one.parts, ...other.parts];
  return { units, cost, ...(parts && { parts }), estimated: one.estimated === true || other.estimated === true };
}

/** Tokens among units as OpenAI counts them; undefined when there are none. */
function usageOfUnits({ prompt_tokens, completion_tokens = 0 }: Units): Usage | undefined {
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

/** `traceparent` of W3C Trace Context: version, trace id, parent id, flags. What a later version appends is not read. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const NO_ID = /^0+$/;

/** `tracestate` is passed on as it came, as far as W3C asks a system to carry it. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace that a request belongs to: the caller's, or a new one. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): TraceContext {
  const [, version, traceId = '', parentId = '', flags = '', more] =
    (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || [];
  if (NO_ID.test(traceId) || NO_ID.test(parentId) || traceId === '' || (version === '00' && more !== undefined))
    return { traceId: randomText('hex') };
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? { state: tracestate } : {};
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, ...state };
}

/** The same request with the trace of a caller who sent one, unless a plugin has written its own. */
export function withTrace(request: HttpRequest, { traceId, parentId, isSampled, state }: TraceContext): HttpRequest {
  if (parentId === undefined || request.headers?.['traceparent'] !== undefined) return request;
  const traceparent = `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}`;
  const headers = { ...request.headers, traceparent, ...(state !== undefined && { tracestate: state }) };
  return { ...request, headers };
}
