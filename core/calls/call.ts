import { randomFillSync } from 'node:crypto';
import type { HedgeRule } from '../config/model-routes.ts';
import type {
  CallAttempt,
  CallClient,
  Call as CallView,
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
import type { CallContext } from '../contract/plugin.ts';
import type { FailureClass, Timeouts } from '../contract/provider.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import type { RunningAttempt } from '../routing/health-book.ts';
import type { Ingress, Lane } from './ingress.ts';

const pool = Buffer.alloc(16 * 128);
let used = pool.length;

/** A prefix and 22 url-safe random characters (128 bits), such as `req_…`; random bytes are drawn 128 ids at a time. */
export function createId(prefix: string): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = pool.toString('base64url', used, used + 16);
  used += 16;
  return prefix + id;
}

let last = 0;

/**
 * An id as long as {@link createId}'s that is greater, as text, than those this process made before it and (but for clocks)
 * those that others did: what is stored under it lies beside what was stored just before. 72 bits of it are random.
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

/** Who a call is made for, and what its way in says of it. */
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

const NOTHING: ReadonlySet<never> = new Set();
const NO_ATTEMPTS: readonly CallAttempt[] = Object.freeze([]);

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
  readonly follows: Target | undefined;
  readonly session: string | undefined;
  readonly tags: readonly string[];
  readonly isIdempotent: boolean;
  readonly hooks: CompiledHooks;
  #request: RequestOf<Operation>;
  #targets: readonly Target[] = [];
  #alias: string | undefined;
  #overflow: Target | undefined;
  #stickyKey: string | undefined;
  #timeouts: Partial<Timeouts> | undefined;
  #ingress: Ingress | undefined;
  #record = newRecord();
  #hedge: HedgeRule | undefined;
  readonly #mark: number;
  /** Resolves when the call has ended and its `finish` hooks are done. */
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  readonly #input: CallInput;
  #hasFinished = false;

  /** `closing` ends a call whose caller cannot leave; `of` is the call that this one is a copy of. */
  constructor(input: CallInput, hooks: CompiledHooks, closing: AbortSignal, of?: Call) {
    const { caller } = input;
    this.#input = input;
    this.id = of ? of.id : createOrderedId('call_');
    this.startedAt = of ? of.startedAt : Date.now();
    this.state = of ? of.state : new Map();
    this.#mark = of ? of.#mark : performance.now();
    this.operation = input.operation;
    this.#request = deepFreeze(of ? of.#request : input.request);
    this.stream = input.stream;
    if (of) {
      this.#targets = of.#targets;
      this.#alias = of.#alias;
    }
    this.requestId = caller.requestId;
    this.principal = deepFreeze(caller.principal);
    this.signal = caller.signal ?? closing;
    this.skip = caller.skip ? new Set(caller.skip) : NOTHING;
    this.follows = input.follows;
    this.session = caller.session;
    this.tags = Object.freeze(caller.tags ?? caller.principal.tags ?? []);
    this.isIdempotent = caller.isIdempotent ?? false;
    this.hooks = hooks;
    this.#ingress = of ? of.#ingress : input.ingress;
    this.ended =
      of?.ended ??
      new Promise((resolve) => {
        this.#end = resolve;
      });
    Object.freeze(this);
  }

  /** The same call for one of two attempts that run at once: with a record and a signal of its own. Only the call itself ends. */
  fork(signal: AbortSignal): Call {
    return new Call({ ...this.#input, caller: { ...this.#input.caller, signal } }, this.hooks, signal, this);
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

  get targets(): readonly Target[] {
    return this.#targets;
  }

  get alias(): string | undefined {
    return this.#alias;
  }

  /** Where its request says that it goes; throws for a model that does not exist. */
  findTargets(): Destination {
    const found = this.#input.findTargets();
    this.#targets = deepFreeze(found.targets);
    this.#alias = found.alias;
    return found;
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

  /** When a second target is asked beside one that takes long; undefined for never. */
  get hedge(): HedgeRule | undefined {
    return this.#hedge;
  }

  hedgeBy(rule: HedgeRule | undefined): void {
    this.#hedge = rule;
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
    if (!this.#hasFinished) {
      this.#hasFinished = true;
      this.#finish(this.#outcome(status, error));
    }
    return this.ended;
  }

  #finish(outcome: Outcome): void {
    const { running } = this.#record;
    // A stream that the vendor broke off was reported already; one that the caller cut says nothing.
    if (outcome.status === 'ok') running?.report({ kind: 'success', stream: true });
    else running?.leave();
    try {
      this.#input.caller.onOutcome?.(this, outcome);
    } catch (thrown) {
      // What a plugin's own listener throws is logged like any uncaught error; the books are written all the same.
      void Promise.reject(thrown);
    }
    if (this.hooks.finish) this.hooks.finish(this, outcome, this.#end);
    else this.#end();
  }

  #outcome(status: OutcomeStatus, error: GatewayError | undefined): Outcome {
    const { target, attempts, refusedBy, lane, usage, saved, sentTo } = this.record;
    const { firstByteMs, firstTokenMs, lastTokenMs, upstreamMs } = this.record;
    const metered = owedBy(this.record);
    const told = usage ?? (metered && usageOfUnits(metered.units));
    const outcome: { -readonly [Field in keyof Outcome]: Outcome[Field] } = {
      status,
      attempts: attempts.length === 0 ? NO_ATTEMPTS : attempts.map(showAttempt),
      estimated: metered?.estimated ?? false,
      sent: sentTo.length > 0 || this.record.beside !== undefined,
      upstreamMs,
      durationMs: this.elapsedMs,
    };
    if (error) outcome.error = error;
    if (target) outcome.target = target;
    if (refusedBy !== undefined) outcome.refusedBy = refusedBy;
    if (lane) outcome.lane = lane;
    if (told) outcome.usage = told;
    if (metered) outcome.units = metered.units;
    if (metered?.cost !== undefined) outcome.cost = metered.cost;
    if (saved !== undefined) outcome.saved = saved;
    if (firstByteMs !== undefined) outcome.firstByteMs = firstByteMs;
    if (firstTokenMs !== undefined) outcome.firstTokenMs = firstTokenMs;
    if (lastTokenMs !== undefined) outcome.lastTokenMs = lastTokenMs;
    return deepFreeze(outcome);
  }
}

/** A {@link CallAttempt} that may still run. */
export interface NotedAttempt {
  readonly target: Target;
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
  /** Whether it was let through: a target was tried, or a hook responded. */
  isLetThrough: boolean;
  /** What refused it before that. */
  refusedBy: string | undefined;
  /** The attempt that nothing is known of yet, or whose stream goes on: the end of the call says how its target does. */
  running: RunningAttempt | undefined;
  /** The status of the last attempt; undefined when its provider sent none. */
  status: number | undefined;
  /** The targets that were sent the call and did not refuse it: what they did is owed even when no response came. */
  readonly sentTo: Target[];
  usage: Usage | undefined;
  /** The service tier that the last attempt was sent with, where it is not the standard one. */
  serviceTier: string | undefined;
  metered: Metered | undefined;
  /** What is owed to targets that were asked at the same time and left when another one responded. */
  beside: Metered | undefined;
  /** What a kept response has saved. */
  saved: number | undefined;
  firstByteMs: number | undefined;
  /** Of a stream: when its first and its last content came. */
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
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

/** Of a call of which nothing has come yet. */
function newRecord(): CallRecord {
  return {
    target: undefined,
    attempts: [],
    isLetThrough: false,
    refusedBy: undefined,
    running: undefined,
    status: undefined,
    sentTo: [],
    usage: undefined,
    serviceTier: undefined,
    metered: undefined,
    beside: undefined,
    saved: undefined,
    firstByteMs: undefined,
    firstTokenMs: undefined,
    lastTokenMs: undefined,
    upstreamMs: 0,
    attemptSignal: undefined,
    clocks: undefined,
    lane: undefined,
    skipped: [],
  };
}

/** The record of an attempt after those that ran before it or at the same time: what they did is not forgotten. */
export function joinRecords(before: readonly CallRecord[], last: CallRecord): CallRecord {
  const all = [...before, last];
  return Object.assign(last, {
    attempts: all.flatMap(({ attempts }) => attempts).sort((a, b) => a.startedMs - b.startedMs),
    upstreamMs: last.upstreamMs + (before[0]?.upstreamMs ?? 0),
    sentTo: all.flatMap(({ sentTo }) => sentTo),
    skipped: all.flatMap(({ skipped }) => skipped),
    firstByteMs: last.firstByteMs ?? all.find(({ firstByteMs }) => firstByteMs !== undefined)?.firstByteMs,
    target: last.target ?? all.findLast(({ target }) => target)?.target,
    beside: all.reduce<Metered | undefined>((sum, { beside }) => addMetered(sum, beside), undefined),
  });
}

/** Notes how the latest request to a target ended, unless it is known already. */
export function noteAttemptEnd(
  { record: { attempts }, elapsedMs }: Pick<Call, 'record' | 'elapsedMs'>,
  target: Target,
  failure: { readonly class?: FailureClass | undefined; readonly reason: string } | undefined,
): void {
  const last = attempts.at(-1);
  if (last?.target !== target || last.reason !== undefined) return;
  last.ms = elapsedMs - last.startedMs;
  last.class = failure?.class;
  last.reason = failure?.reason;
}

function showAttempt({ target, ms, status, class: kind, reason }: NotedAttempt): CallAttempt {
  return {
    target: `${target.provider}/${target.model}`,
    ms: Math.round(ms),
    ...(status !== undefined && { status }),
    ...(kind && { class: kind }),
    ...(reason !== undefined && { reason }),
  };
}

/** All that a call owes; undefined while nothing was metered. */
export function owedBy({ metered, beside }: Pick<CallRecord, 'metered' | 'beside'>): Metered | undefined {
  return addMetered(metered, beside);
}

/** The cost of both is not known when that of one is not. */
export function addMetered(one: Metered | undefined, other: Metered | undefined): Metered | undefined {
  if (!one || !other) return one ?? other;
  const units: Record<string, number> = { ...one.units };
  for (const [unit, amount] of Object.entries(other.units)) units[unit] = (units[unit] ?? 0) + amount;
  const cost = one.cost === undefined || other.cost === undefined ? undefined : one.cost + other.cost;
  return { units, cost, estimated: one.estimated === true || other.estimated === true };
}

/** Tokens among units as OpenAI counts them; undefined when there are none. */
export function usageOfUnits(units: Units): Usage | undefined {
  const { prompt_tokens, completion_tokens = 0 } = units;
  if (prompt_tokens === undefined) return undefined;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
