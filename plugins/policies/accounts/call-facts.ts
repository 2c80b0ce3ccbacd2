import type { Call, CallFacts, Outcome, Units } from '../../../core/index.ts';

/** What the ledger records of a call: what is planned, while it has no outcome. */
export function factsOf(call: Call, outcome: Outcome | undefined): CallFacts {
  const { requestId, principal, tags, session, operation, stream, startedAt } = call;
  const target = outcome?.target ?? call.targets[0];
  const requested = requestedModel(call);
  const base = {
    requestId,
    userId: principal.userId,
    key: principal.keyId ?? '-',
    tags,
    ...(session !== undefined && { session }),
    operation,
    provider: target?.provider ?? '-',
    model: target?.model ?? '-',
    ...(requested !== undefined && requested !== target?.model && { requested }),
    stream,
    startedAt,
  };
  if (!outcome)
    return { ...base, outcome: 'unknown', attempts: 0, durationMs: 0, units: {}, estimated: true, priced: true };
  const { lane, firstByteMs, saved } = outcome;
  return {
    ...base,
    outcome: outcome.status,
    ...(outcome.error && { errorCode: outcome.error.code }),
    attempts: outcome.attempts,
    ...(lane !== undefined && { lane }),
    durationMs: outcome.durationMs,
    ...(firstByteMs !== undefined && { firstByteMs }),
    units: unitsOf(outcome),
    estimated: outcome.estimated,
    priced: outcome.cost !== undefined || outcome.units === undefined,
    ...(saved !== undefined && { saved }),
  };
}

/** What the request named: an alias, a route, or a target itself. */
function requestedModel({ request }: Call): string | undefined {
  return 'model' in request && typeof request.model === 'string' ? request.model : undefined;
}

/** What was used, with those tokens that only the details of the usage tell. */
function unitsOf({ units = {}, usage }: Outcome): Units {
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens;
  return {
    ...units,
    ...(cached && { cached_tokens: cached }),
    ...(reasoning && { reasoning_tokens: reasoning }),
  };
}
