import type { CallFacts, CallRow } from '../../../core/index.ts';
import type { Dimensions } from './call-sums.ts';

/** What of clean facts is neither a dimension nor a column to filter by, as JSON. */
export function packFacts(facts: CallFacts): string {
  const { requestId, requested, stream, errorCode, attempts, lane, startedAt, durationMs, firstByteMs } = facts;
  const { units, estimated, priced, saved } = facts;
  // One literal: spread together, the same costs five times as much for every call.
  return JSON.stringify({
    requestId,
    requested,
    stream,
    errorCode,
    attempts,
    lane,
    startedAt,
    durationMs,
    firstByteMs,
    units,
    estimated,
    priced,
    saved,
  });
}

/** A record as stores keep it. */
export interface PackedCall extends Pick<CallRow, 'id' | 'cost' | 'at' | 'outcome'> {
  readonly dimensions: Dimensions;
  readonly session: string | undefined;
  /** What {@link packFacts} made. */
  readonly packed: string;
}

/** The record of a call out of what the store kept of it. Throws when that is not what {@link packFacts} made. */
export function unpackCall({ id, cost, at, outcome, dimensions, session, packed }: PackedCall): CallRow {
  const [account = '-', userId = '-', key = '-', tags = '[]', operation = '-', provider = '-', model = '-'] =
    dimensions;
  const { requestId, ...rest } = JSON.parse(packed) as CallFacts;
  return {
    ...{ id, account, requestId, userId, key, tags: JSON.parse(tags) as readonly string[] },
    ...(session !== undefined && { session }),
    ...{ operation, provider, model, outcome },
    ...rest,
    cost,
    at,
  };
}
