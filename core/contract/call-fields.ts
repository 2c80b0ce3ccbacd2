import type { Call, CallAttempt, Outcome } from './call.ts';
import type { CallFacts, CallRow } from './store.ts';

/** What a field of a call's record holds: `ms` milliseconds, `time` Unix milliseconds, `usd` whole micro-dollars. */
export type CallFieldType = 'text' | 'texts' | 'flag' | 'count' | 'ms' | 'time' | 'usd' | 'units' | 'attempts';

/** One field of the record of a call, and every place that it goes to. */
export interface CallField<T = unknown> {
  readonly type: CallFieldType;
  /** Its name in the access log. */
  readonly log?: string;
  /** Its name in lists of calls. */
  readonly shown?: string;
  /** What the OpenAPI document says of it, where its name does not. */
  readonly about?: string;
  /** Its value, without an outcome what is planned; undefined where the call has none, or where only the store knows it. */
  read(call: Call, outcome: Outcome | undefined): T | undefined;
}

type FactName = keyof CallFacts;

type CallFields = { readonly [N in keyof CallRow]-?: CallField<CallRow[N]> } & {
  /** These are only logged. */
  readonly [N in 'tokensIn' | 'tokensOut' | 'spent' | 'upstreamMs']: CallField<number>;
};

const ofStore = (): undefined => undefined;

/**
 * The record of a call, field by field, in the order of lists of calls. The line of the access log, what stores keep, and what
 * lists and `calls show` print all come from this table: a field is added here and in {@link CallFacts}.
 */
export const CALL_FIELDS: CallFields = Object.freeze({
  id: { type: 'text', shown: 'id', read: ofStore },
  requestId: { type: 'text', shown: 'request_id', read: ({ requestId }) => requestId },
  at: {
    type: 'time',
    shown: 'at',
    about: 'When it was settled: reports count it then.',
    read: ofStore,
  },
  startedAt: { type: 'time', shown: 'started_at', read: ({ startedAt }) => startedAt },
  account: { type: 'text', shown: 'account', read: ofStore },
  userId: { type: 'text', shown: 'user_id', read: ({ principal }) => principal.userId },
  key: { type: 'text', shown: 'key', read: ({ principal }) => principal.keyId },
  tags: { type: 'texts', shown: 'tags', read: ({ tags }) => tags },
  session: { type: 'text', shown: 'session', read: ({ session }) => session },
  operation: { type: 'text', shown: 'operation', log: 'operation', read: ({ operation }) => operation },
  provider: {
    type: 'text',
    shown: 'provider',
    log: 'provider',
    read: ({ targets }, outcome) => (outcome?.target ?? targets[0])?.provider,
  },
  model: {
    type: 'text',
    shown: 'model',
    log: 'model',
    read: (call, outcome) => (outcome?.target ?? call.targets[0])?.model ?? requestedModel(call),
  },
  requested: {
    type: 'text',
    shown: 'requested',
    read(call, outcome) {
      const requested = requestedModel(call);
      return requested === CALL_FIELDS.model.read(call, outcome) ? undefined : requested;
    },
  },
  stream: { type: 'flag', shown: 'stream', log: 'stream', read: ({ stream }) => stream },
  outcome: {
    type: 'text',
    shown: 'outcome',
    log: 'outcome',
    about:
      '`refused`: before any target was tried; `expired`: its end was never reported, and it was charged at its estimate.',
    read: (_call, outcome) => (outcome?.refusedBy === undefined ? outcome?.status : 'refused'),
  },
  errorCode: { type: 'text', shown: 'error_code', read: (_call, outcome) => outcome?.error?.code },
  errorMessage: {
    type: 'text',
    shown: 'error_message',
    log: 'error_message',
    read: (_call, outcome) => outcome?.error?.message,
  },
  refusedBy: {
    type: 'text',
    shown: 'refused_by',
    log: 'refused_by',
    about: 'Of a refused call: the limit, budget, check or plugin that refused it.',
    read: (_call, outcome) => outcome?.refusedBy,
  },
  attempts: {
    type: 'attempts',
    shown: 'attempts',
    log: 'attempts',
    about: 'The requests to providers that it took, in order; at most 20 are kept.',
    read: (_call, outcome) => outcome?.attempts,
  },
  lane: { type: 'text', shown: 'lane', read: (_call, outcome) => outcome?.lane },
  durationMs: { type: 'ms', shown: 'duration_ms', read: (_call, outcome) => outcome?.durationMs },
  firstByteMs: {
    type: 'ms',
    shown: 'first_byte_ms',
    log: 'ttfb_ms',
    read: (_call, outcome) => outcome?.firstByteMs,
  },
  upstreamMs: { type: 'ms', log: 'upstream_ms', read: (_call, outcome) => outcome?.upstreamMs },
  units: { type: 'units', shown: 'units', read: (_call, outcome) => outcome && unitsOf(outcome) },
  tokensIn: { type: 'count', log: 'tokens_in', read: (_call, outcome) => outcome?.usage?.prompt_tokens },
  tokensOut: { type: 'count', log: 'tokens_out', read: (_call, outcome) => outcome?.usage?.completion_tokens },
  /** What was charged, which only the store knows. */
  cost: { type: 'usd', shown: 'cost_usd', read: ofStore },
  /** What it comes to by the price. */
  spent: { type: 'usd', log: 'cost_usd', read: (_call, outcome) => outcome?.cost },
  saved: { type: 'usd', shown: 'saved_usd', log: 'saved_usd', read: (_call, outcome) => outcome?.saved },
  estimated: {
    type: 'flag',
    shown: 'estimated',
    about: 'Whether the units are an estimate.',
    read: (_call, outcome) => outcome?.estimated,
  },
  priced: {
    type: 'flag',
    shown: 'priced',
    about: 'Whether the price was known; otherwise nothing was charged.',
    read: (_call, outcome) => !outcome || outcome.cost !== undefined || outcome.units === undefined,
  },
});

/** The facts of a call of which nothing is known; every other field is absent where a call has none. */
export const UNKNOWN_FACTS: CallFacts = Object.freeze({
  requestId: '-',
  userId: '-',
  key: '-',
  tags: Object.freeze([]),
  operation: 'unknown',
  provider: '-',
  model: '-',
  stream: false,
  outcome: 'unknown',
  attempts: Object.freeze<CallAttempt[]>([]),
  startedAt: 0,
  durationMs: 0,
  units: Object.freeze({}),
  estimated: true,
  priced: true,
});

/** The fields that stores are given of each call. */
export const FACT_NAMES: readonly FactName[] = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof typeof CALL_FIELDS)[]).filter(isFactName),
);

function isFactName(name: keyof typeof CALL_FIELDS): name is keyof CallFacts {
  return CALL_FIELDS[name].shown !== undefined && CALL_FIELDS[name].read !== ofStore;
}

/** Those of the table, typed one by one. */
const OF_FACTS: { readonly [N in FactName]: CallField<CallFacts[N]> } = CALL_FIELDS;

/** What stores are given of a call: without an outcome, what is planned. */
export function factsOf(call: Call, outcome: Outcome | undefined): CallFacts {
  return makeFacts((name) => OF_FACTS[name].read(call, outcome));
}

/** Facts out of values that are read by name; what is undefined is unknown, or left out where it may be. */
export function makeFacts(read: <N extends keyof CallFacts>(name: N) => CallFacts[N] | undefined): CallFacts {
  // A copy keeps the shape of the literal: fields added one by one would make a hash table of it, which costs ten times as much.
  const facts: { -readonly [N in keyof CallFacts]: CallFacts[N] } = { ...UNKNOWN_FACTS };
  for (const name of FACT_NAMES) put(facts, name, read(name));
  return facts;
}

function put<N extends keyof CallFacts>(
  facts: { -readonly [Name in keyof CallFacts]: CallFacts[Name] },
  name: N,
  value: CallFacts[N] | undefined,
): void {
  if (value !== undefined) facts[name] = value;
}

/** What the request named: an alias, a route, or a target itself. */
function requestedModel({ request }: Call): string | undefined {
  return 'model' in request && typeof request.model === 'string' ? request.model : undefined;
}

/** What was used, with those tokens that only the details of the usage have. */
function unitsOf({ units = {}, usage }: Outcome): CallFacts['units'] {
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens;
  if (!cached && !reasoning) return units;
  return {
    ...units,
    ...(cached && { cached_tokens: cached }),
    ...(reasoning && { reasoning_tokens: reasoning }),
  };
}
