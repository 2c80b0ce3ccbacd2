import type { Call, CallFacts, Outcome, Units } from '../../../core/index.ts';

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * What the ledger records of a call: what is planned, while it has no outcome. One literal, and what not every call has put after
 * it: spread together, the same is a hash table, which costs ten times as much here and wherever it goes.
 */
export function factsOf(call: Call, outcome: Outcome | undefined): CallFacts {
  const { requestId, principal, tags, session, operation, stream, startedAt } = call;
  const target = outcome?.target ?? call.targets[0];
  const requested = requestedModel(call);
  const facts: Mutable<CallFacts> = {
    requestId,
    userId: principal.userId,
    key: principal.keyId ?? '-',
    tags,
    operation,
    provider: target?.provider ?? '-',
    model: target?.model ?? '-',
    stream,
    outcome: outcome?.status ?? 'unknown',
    attempts: outcome?.attempts ?? 0,
    startedAt,
    durationMs: outcome?.durationMs ?? 0,
    units: outcome ? unitsOf(outcome) : {},
    estimated: outcome?.estimated ?? true,
    priced: !outcome || outcome.cost !== undefined || outcome.units === undefined,
  };
  if (session !== undefined) facts.session = session;
  if (requested !== undefined && requested !== facts.model) facts.requested = requested;
  if (outcome) addEnd(facts, outcome);
  return facts;
}

function addEnd(facts: Mutable<CallFacts>, { error, lane, firstByteMs, saved }: Outcome): void {
  if (error) facts.errorCode = error.code;
  if (lane !== undefined) facts.lane = lane;
  if (firstByteMs !== undefined) facts.firstByteMs = firstByteMs;
  if (saved !== undefined) facts.saved = saved;
}

/** What the request named: an alias, a route, or a target itself. */
function requestedModel({ request }: Call): string | undefined {
  return 'model' in request && typeof request.model === 'string' ? request.model : undefined;
}

/** What was used, with those tokens that only the details of the usage tell. */
function unitsOf({ units = {}, usage }: Outcome): Units {
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens;
  if (!cached && !reasoning) return units;
  return {
    ...units,
    ...(cached && { cached_tokens: cached }),
    ...(reasoning && { reasoning_tokens: reasoning }),
  };
}
