import type { BudgetHold, Call, CallFacts, CallHook, CallRow, Outcome, Target } from '../../../contract/index.ts';

/** Type of a field in a call's record: `ms` milliseconds, `time` Unix milliseconds, `usd` whole nano-dollars. */
export type CallFieldType =
  | 'text'
  | 'texts'
  | 'flag'
  | 'count'
  | 'ms'
  | 'time'
  | 'usd'
  | 'units'
  | 'attempts'
  | 'hooks'
  | 'times'
  | 'parts';

/** Field of a call's record, with its names in all outputs. */
export interface CallField {
  readonly type: CallFieldType;
  /** Name in the access log. */
  readonly log?: string;
  /** Name in lists of calls. */
  readonly shown?: string;
  /** Attribute name in a trace's span. */
  readonly trace?: string;
  /** Description in the OpenAPI document, if the name is not clear. */
  readonly about?: string;
}

/** Summary of a call: the facts that stores keep, and those that are only logged. */
export interface CallSummary extends CallFacts {
  readonly tokensIn?: number;
  readonly tokensOut?: number;
  /** Cost by price in nano-dollars; the store knows the amount charged. */
  readonly spent?: number;
}

/**
 * Record of a call, field by field, in the order of lists of calls. The line of the access log, stored facts, the
 * output of lists and `calls show`, and span attributes are derived from this table. To add a field, add it here and in
 * {@link summaryOf}.
 */
export const CALL_FIELDS: Readonly<Record<keyof CallRow | keyof CallSummary, CallField>> = Object.freeze({
  id: { type: 'text', shown: 'id' },
  requestId: { type: 'text', shown: 'request_id', trace: 'tollgate.request_id' },
  traceId: {
    type: 'text',
    shown: 'trace_id',
    log: 'trace_id',
    about: "Trace of the call: from the caller's `traceparent`, or a new one.",
  },
  at: { type: 'time', shown: 'at', about: 'Time of settlement.' },
  countedAt: {
    type: 'time',
    shown: 'counted_at',
    about: 'Time of the reservation, at which reports and budgets count the call.',
  },
  startedAt: { type: 'time', shown: 'started_at' },
  account: { type: 'text', shown: 'account' },
  userId: { type: 'text', shown: 'user_id', trace: 'user.id' },
  key: { type: 'text', shown: 'key' },
  address: { type: 'text', shown: 'address', about: 'Address of the caller.' },
  endUser: {
    type: 'text',
    shown: 'end_user',
    trace: 'tollgate.end_user',
    about: 'End user of the caller’s application, from a header or from the fields `user` and `metadata.user_id`.',
  },
  tags: { type: 'texts', shown: 'tags', trace: 'tollgate.tags' },
  session: { type: 'text', shown: 'session', trace: 'gen_ai.conversation.id' },
  operation: { type: 'text', shown: 'operation', log: 'operation' },
  provider: { type: 'text', shown: 'provider', log: 'provider' },
  model: { type: 'text', shown: 'model', log: 'model' },
  requested: { type: 'text', shown: 'requested', trace: 'tollgate.requested_model' },
  stream: { type: 'flag', shown: 'stream', log: 'stream', trace: 'gen_ai.request.stream' },
  outcome: {
    type: 'text',
    shown: 'outcome',
    log: 'outcome',
    trace: 'tollgate.outcome',
    about:
      '`refused`: rejected before any target was tried. `expired`: its end was not reported, so it was charged at its estimate.',
  },
  errorCode: { type: 'text', shown: 'error_code', trace: 'error.type' },
  errorMessage: { type: 'text', shown: 'error_message', log: 'error_message' },
  refusedBy: {
    type: 'text',
    shown: 'refused_by',
    log: 'refused_by',
    trace: 'tollgate.refused_by',
    about: 'For a refused call: the limit, budget, check or plugin that rejected it.',
  },
  attempts: {
    type: 'attempts',
    shown: 'attempts',
    log: 'attempts',
    about: 'Requests to providers, in order; at most 20 are stored.',
  },
  hooks: {
    type: 'hooks',
    shown: 'hooks',
    log: 'hooks',
    trace: 'tollgate.hooks',
    about: 'Actions of plugin hooks, in order: changed, answered, routed, refused or failed. At most 20 are stored.',
  },
  lane: { type: 'text', shown: 'lane' },
  serviceTier: {
    type: 'text',
    shown: 'service_tier',
    about: 'Service tier reported by the vendor, otherwise the requested one.',
  },
  dropped: {
    type: 'texts',
    shown: 'dropped',
    log: 'dropped',
    trace: 'tollgate.dropped',
    about: 'Dropped request fields, as in `x-tollgate-dropped`; at most 20 are stored.',
  },
  leftOut: {
    type: 'texts',
    shown: 'left_out',
    log: 'left_out',
    trace: 'tollgate.left_out',
    about: 'Parts of the response that the caller’s format does not support, such as `images`.',
  },
  durationMs: { type: 'ms', shown: 'duration_ms' },
  firstByteMs: { type: 'ms', shown: 'first_byte_ms', log: 'ttfb_ms' },
  upstreamMs: { type: 'ms', shown: 'upstream_ms', log: 'upstream_ms', about: 'Time of requests to providers.' },
  receiveMs: {
    type: 'ms',
    shown: 'receive_ms',
    about: 'Time from the arrival of the request to the start of the call: authentication, waiting, reading the body.',
  },
  queueMs: { type: 'ms', shown: 'queue_ms', about: 'Part of `receive_ms` in the line of the account.' },
  retryWaitMs: { type: 'ms', shown: 'retry_wait_ms', about: 'Pauses before retries.' },
  hookTimes: {
    type: 'times',
    shown: 'hook_times',
    about: 'Hooks that the call waited for more than a millisecond, in order; at most 20 are stored.',
  },
  units: { type: 'units', shown: 'units' },
  tokensIn: { type: 'count', log: 'tokens_in' },
  tokensOut: { type: 'count', log: 'tokens_out' },
  cost: { type: 'usd', shown: 'cost_usd' },
  costParts: {
    type: 'parts',
    shown: 'cost_parts',
    about: 'Parts of the cost by price, before the total is rounded up; null if unknown.',
  },
  spent: { type: 'usd', log: 'cost_usd', trace: 'tollgate.cost_usd' },
  saved: { type: 'usd', shown: 'saved_usd', log: 'saved_usd' },
  estimated: { type: 'flag', shown: 'estimated', about: 'True if the units are estimated.' },
  priced: {
    type: 'flag',
    shown: 'priced',
    about:
      'True if the cost is known. Otherwise `cost_usd` is the reserved amount, which was charged because a balance or budget applies, or null if nothing was charged.',
  },
});

/**
 * Creates facts of a call without information; every other field may be absent. The object is one literal: on
 * Node 20, a field after a spread creates a hidden class, which keeps the call in memory until a full collection.
 */
function createFacts(): Mutable<CallFacts> {
  return {
    requestId: '-',
    userId: '-',
    key: '-',
    tags: [],
    operation: 'unknown',
    provider: '-',
    model: '-',
    stream: false,
    outcome: 'unknown',
    attempts: [],
    startedAt: 0,
    durationMs: 0,
    units: {},
    estimated: true,
    priced: true,
  };
}

/** Facts of a call without information. */
export const UNKNOWN_FACTS: CallFacts = createFacts();

const WRITTEN_BY_STORES: ReadonlySet<string> = new Set(['id', 'account', 'cost', 'at', 'countedAt']);

/** Fields of each call passed to stores: those in lists, except those that stores add themselves. */
export const FACT_NAMES: readonly (keyof CallFacts)[] = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof typeof CALL_FIELDS)[]).filter(isFactName),
);

function isFactName(name: keyof typeof CALL_FIELDS): name is keyof CallFacts {
  return CALL_FIELDS[name].shown !== undefined && !WRITTEN_BY_STORES.has(name);
}

const SUMMARY = Symbol('summary');

/** Summary of a call that has ended; computed once for all users. */
export function summaryOf(call: Call, outcome: Outcome): CallSummary {
  const known = call.state.get(SUMMARY) as CallSummary | undefined;
  if (known) return known;
  const { error, refusedBy, hooks, lane, serviceTier, firstByteMs, upstreamMs, usage, cost, costParts, saved } =
    outcome;
  const { units = {}, dropped, omitted, hookTimes, retryWaitMs } = outcome;
  const target = outcome.target ?? call.targets[0];
  const summary: Mutable<CallSummary> = collectPlanned(call, target);
  summary.outcome = refusedBy === undefined ? outcome.status : 'refused';
  summary.attempts = outcome.attempts;
  summary.durationMs = outcome.durationMs;
  summary.units = units;
  summary.estimated = outcome.estimated;
  summary.priced = cost !== undefined || outcome.units === undefined;
  summary.upstreamMs = upstreamMs;
  if (error) {
    summary.errorCode = error.code;
    summary.errorMessage = error.message;
  }
  if (refusedBy !== undefined) summary.refusedBy = refusedBy;
  if (hooks) summary.hooks = hooks;
  if (lane !== undefined) summary.lane = lane;
  if (serviceTier !== undefined) summary.serviceTier = serviceTier;
  if (dropped) summary.dropped = dropped;
  if (omitted) summary.leftOut = omitted;
  if (firstByteMs !== undefined) summary.firstByteMs = firstByteMs;
  if (cost !== undefined) summary.spent = cost;
  if (costParts) summary.costParts = costParts;
  if (saved !== undefined) summary.saved = saved;
  if (hookTimes) summary.hookTimes = hookTimes;
  if (retryWaitMs !== undefined) summary.retryWaitMs = retryWaitMs;
  if (usage) {
    summary.tokensIn = usage.prompt_tokens;
    summary.tokensOut = usage.completion_tokens;
    // Units that only the usage details list separately.
    const cached = usage.prompt_tokens_details?.cached_tokens;
    const reasoning = usage.completion_tokens_details?.reasoning_tokens;
    if (cached) summary.units = { ...summary.units, cached_tokens: cached };
    if (reasoning) summary.units = { ...summary.units, reasoning_tokens: reasoning };
  }
  call.state.set(SUMMARY, summary);
  return summary;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Planned facts of a call, for the record of a call that never ends. */
export function plannedFacts(call: Call, target: Target | undefined = call.targets[0]): CallFacts {
  return collectPlanned(call, target);
}

function collectPlanned(call: Call, target: Target | undefined): Mutable<CallFacts> {
  const { requestId, trace, principal, tags, session, operation, stream, startedAt, request, endUser } = call;
  const named = 'model' in request && typeof request.model === 'string' ? request.model : undefined;
  const model = target?.model ?? named ?? '-';
  const facts = createFacts();
  facts.requestId = requestId;
  facts.tags = tags;
  facts.operation = operation;
  facts.stream = stream;
  facts.startedAt = startedAt;
  facts.model = model;
  facts.traceId = trace.traceId;
  facts.userId = principal.userId;
  facts.key = principal.keyId ?? '-';
  facts.provider = target?.provider ?? '-';
  if (session !== undefined) facts.session = session;
  if (endUser !== undefined) facts.endUser = endUser;
  const { origin } = trace;
  if (origin) {
    facts.address = origin.ip;
    facts.receiveMs = origin.receiveMs;
    if (origin.queueMs > 0) facts.queueMs = origin.queueMs;
  }
  if (named !== undefined && named !== model) facts.requested = named;
  return facts;
}

const HELD = Symbol('held');

/** Reservation that remains after a call's end: the amount, and its budgets. */
interface Held {
  readonly amount: number;
  readonly budgets: readonly BudgetHold[];
}

/** Records the reservation of a call that does not settle it itself. */
export function recordHold(call: Call, held: Held): void {
  call.state.set(HELD, held);
}

/** Returns the reservation of {@link recordHold}; undefined without one, as without billing. */
export function heldOf(call: Call): Held | undefined {
  return call.state.get(HELD) as Held | undefined;
}

/** Formats hook actions, each as `guard prepare changed`. */
export function describeHooks(hooks: readonly CallHook[]): readonly string[] {
  return hooks.map(({ plugin, hook, action }) => `${plugin} ${hook} ${action}`);
}
