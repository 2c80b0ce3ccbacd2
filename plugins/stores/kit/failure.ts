import { GatewayError, isGatewayError } from '../../../contract/index.ts';

/** Delay for callers before they retry after a store failure. */
const RETRY_AFTER_MS = 1000;

/**
 * Creates `store_unavailable`. `why` is one sentence without host, path or secret, because it reaches the caller. The
 * cause is for the log.
 */
export function storeUnavailable(why: string, cause?: unknown): GatewayError {
  const message = `${why} No decision was made. Try again shortly.`;
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/**
 * Creates `store_unavailable` for a store that rejects this gateway until the operator acts. `message` says what to
 * change.
 */
export function storeRefused(message: string, cause?: unknown): GatewayError {
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** Error of every operation after the store is closed. */
export function storeClosed(): GatewayError {
  return storeUnavailable('The store is closed: the gateway is stopping.');
}

/** Error for an unexpected stored value. The operation fails; the value never counts as absent. */
export function unreadable(what: string, cause?: unknown): GatewayError {
  return storeUnavailable(`The store contains a ${what} that cannot be read.`, cause);
}

/** Programming error of the store's caller, such as an amount that is not whole. */
export function misuse(message: string): GatewayError {
  return new GatewayError('internal_error', message);
}

/** Returns {@link GatewayError}s unchanged and wraps others in `store_unavailable`. */
export function asUnavailable(why: string, thrown: unknown): GatewayError {
  return isGatewayError(thrown) ? thrown : storeUnavailable(why, thrown);
}

/** Terms of one store kind in messages about another schema version. */
interface SchemaWords {
  readonly kind: string;
  /** Container of one store: `folder`, `database`. */
  readonly place: string;
  /** Setting that leaves the old store unchanged: `set store to a new folder`. */
  readonly remedy: string;
}

/** Explains why a gateway with schema `known` rejects a store with schema `found`; undefined if they are equal. */
export function explainSchemaVersion(words: SchemaWords, found: number, known: number): string | undefined {
  if (found === known) return undefined;
  const { kind, place, remedy } = words;
  const untouched = 'Nothing in it was changed.';
  return found < known
    ? `The ${kind} store was made by an earlier version of Tollgate (schema ${found}), which this version cannot read: keep its ${place} for that version, and ${remedy}. ${untouched}`
    : `The ${kind} store was written by a newer version of Tollgate (schema ${found}, this version knows ${known}): start that version, or ${remedy}. ${untouched}`;
}
