import { randomFillSync } from 'node:crypto';
import type { HedgeRule } from '../config/model-routes.ts';
import type {
  Call,
  CallClient,
  Operation,
  Outcome,
  OutcomeStatus,
  Principal,
  RequestOf,
  Target,
} from '../contract/call.ts';
import type { GatewayError } from '../contract/errors.ts';
import { deepFreeze } from '../contract/json.ts';
import type { Endpoint, ResponseHeaders, Timeouts } from '../contract/provider.ts';
import { formatUsd } from '../contract/units.ts';
import type { CompiledHooks } from '../plugins/hook-runner.ts';
import { type CallRecord, newRecord, owedBy, usageOfUnits } from './call-record.ts';
import type { Ingress } from './ingress.ts';

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

/** Who calls, and how: what every way into a call gives. */
export interface CallInit {
  readonly requestId: string;
  readonly principal: Principal;
  /** Fires when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** What the caller named its session: for what belongs together, never for limits or money. */
  readonly session?: string | undefined;
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
  /** The target that made the response which this one continues: it is asked first while it works. */
  readonly follows?: Target | undefined;
  /** The client's own format, for a chat that came in over HTTP. */
  readonly ingress?: Ingress;
}

const NOTHING: ReadonlySet<never> = new Set();

/** A call on its way. Plugins see it as a {@link Call}; only core writes to it. */
export class LiveCall implements Call {
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
  readonly alias: string | undefined;
  readonly follows: Target | undefined;
  readonly session: string | undefined;
  readonly tags: readonly string[];
  readonly isIdempotent: boolean;
  readonly hooks: CompiledHooks;
  #request: RequestOf<Operation>;
  #targets: readonly Target[];
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
  readonly #onOutcome: CallInit['onOutcome'];
  #hasFinished = false;

  constructor(callRequest: CallRequest, init: CallInit, hooks: CompiledHooks, of?: LiveCall) {
    this.id = of ? of.id : createOrderedId('call_');
    this.startedAt = of ? of.startedAt : Date.now();
    this.state = of ? of.state : new Map();
    this.#mark = of ? of.#mark : performance.now();
    this.operation = callRequest.operation;
    this.#request = deepFreeze(callRequest.request);
    this.stream = callRequest.stream;
    this.#targets = deepFreeze(callRequest.targets);
    this.requestId = init.requestId;
    this.principal = deepFreeze(init.principal);
    this.signal = init.signal;
    this.skip = init.skip ? new Set(init.skip) : NOTHING;
    this.alias = callRequest.alias;
    this.follows = callRequest.follows;
    this.session = init.session;
    this.tags = Object.freeze(init.tags ?? init.principal.tags ?? []);
    this.isIdempotent = init.isIdempotent ?? false;
    this.hooks = hooks;
    this.#ingress = callRequest.ingress;
    this.#onOutcome = init.onOutcome;
    this.ended =
      of?.ended ??
      new Promise((resolve) => {
        this.#end = resolve;
      });
    Object.freeze(this);
  }

  /** The same call for one of two attempts that run at once: with a record and a signal of its own. Only the call itself ends. */
  fork(signal: AbortSignal): LiveCall {
    const { operation, request, stream, targets, alias, ingress } = this;
    const { requestId, principal, session, tags } = this;
    const callRequest = { operation, request, stream, targets, alias, ...(ingress && { ingress }) };
    const init = { requestId, principal, signal, tags, session, skip: [...this.skip] };
    return new LiveCall(callRequest, init, this.hooks, this);
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
      this.#onOutcome?.(this, outcome);
    } catch (thrown) {
      // What a plugin's own listener throws is logged like any uncaught error; the books are written all the same.
      void Promise.reject(thrown);
    }
    const work = this.hooks.finish?.(this, outcome);
    if (work) void work.then(this.#end);
    else this.#end();
  }

  #outcome(status: OutcomeStatus, error: GatewayError | undefined): Outcome {
    const { target, attempts, lane, usage, saved, sentTo, firstByteMs, firstTokenMs, lastTokenMs, upstreamMs } =
      this.record;
    const metered = owedBy(this.record);
    const told = usage ?? (metered && usageOfUnits(metered.units));
    const outcome: { -readonly [Field in keyof Outcome]: Outcome[Field] } = {
      status,
      attempts,
      estimated: metered?.estimated ?? false,
      sent: sentTo.length > 0 || this.record.beside !== undefined,
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
    if (firstTokenMs !== undefined) outcome.firstTokenMs = firstTokenMs;
    if (lastTokenMs !== undefined) outcome.lastTokenMs = lastTokenMs;
    return deepFreeze(outcome);
  }
}

/** What HTTP tells about a response beside its body. */
export interface ResponseNotes {
  readonly call: LiveCall;
  /** The headers, as far as the call has come when they are asked for; names in lower case. */
  headers(): Record<string, string>;
}

interface NotesInput {
  /** Request fields that the provider does not have. */
  readonly dropped?: readonly string[];
  /** Whose rate limits are passed on. */
  readonly endpoint?: Endpoint;
  readonly upstream?: ResponseHeaders;
  /** What a plugin tells beside. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Tells how a response came about (docs/http.md lists the headers). */
export function responseNotes(call: LiveCall, target: Target | undefined, input: NotesInput): ResponseNotes {
  const { dropped = [], endpoint, upstream = {}, headers = {} } = input;
  return {
    call,
    headers() {
      const { attempts, upstreamMs, lane, skipped } = call.record;
      const metered = owedBy(call.record);
      const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
      const told = endpoint ? readRateLimits(endpoint, upstream) : {};
      if (target) {
        told['x-tollgate-provider'] = target.provider;
        told['x-tollgate-model'] = headerSafe(target.model);
      }
      told['x-tollgate-attempts'] = String(attempts);
      if (lane) told['x-tollgate-lane'] = lane;
      if (skipped.length > 0) told['x-tollgate-skipped'] = skipped.join(', ');
      told['server-timing'] = `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`;
      if (dropped.length > 0) told['x-tollgate-dropped'] = headerSafe(dropped.join(', '));
      if (metered) told['x-tollgate-cost-usd'] = metered.cost === undefined ? 'unknown' : formatUsd(metered.cost);
      for (const [name, value] of call.headers) if (HEADER.test(name)) told[name] = headerSafe(value);
      return Object.assign(told, headers);
    },
  };
}

/** What plugins may tell: headers of our own, so that none of HTTP's is replaced. */
const HEADER = /^x-[a-z0-9-]{1,60}$/;

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;

/** Numbers (`12`, `1.5`), spans (`6m0s`, `20ms`) and times (`2026-01-01T00:00:00Z`): nothing else is a limit, and words may be secrets. */
const RATE_VALUE =
  /^(?:-?\d{1,15}(?:\.\d{1,9})?|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|d|h|m|s))+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;

/** A vendor's own limits as `x-ratelimit-*`. Values that are none are left out. */
function readRateLimits(endpoint: Endpoint, headers: ResponseHeaders): Record<string, string> {
  const told = endpoint.rateLimits?.(headers) ?? headers;
  const limits: Record<string, string> = {};
  for (const name of Object.keys(told)) {
    const value = told[name];
    if (RATE_LIMIT.test(name) && value !== undefined && RATE_VALUE.test(value)) limits[name] = value;
  }
  return limits;
}
