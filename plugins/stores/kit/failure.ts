import { GatewayError, isGatewayError } from '../../../contract/index.ts';

/** When a caller may try again after a store failure. */
const RETRY_AFTER_MS = 1000;

/** `store_unavailable` with one sentence of `why` (no host, path or secret: it reaches the caller) and the cause for the log. */
export function storeUnavailable(why: string, cause?: unknown): GatewayError {
  const message = `${why} No decision was made. Try again shortly.`;
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** `store_unavailable` of a store that refuses this gateway until the operator changes something, which `message` says. */
export function storeRefused(message: string, cause?: unknown): GatewayError {
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** What every operation of a closed store rejects with. */
export function storeClosed(): GatewayError {
  return storeUnavailable('The store is closed: the gateway is stopping.');
}

/** A stored value that is not what this gateway writes: denied, never taken for absent. */
export function unreadable(what: string, cause?: unknown): GatewayError {
  return storeUnavailable(`The store contains a ${what} that cannot be read.`, cause);
}

/** An error in the program that calls the store, such as an amount that is not whole. */
export function misuse(message: string): GatewayError {
  return new GatewayError('internal_error', message);
}

/** Passes {@link GatewayError}s on and makes anything else `store_unavailable`. */
export function asUnavailable(why: string, thrown: unknown): GatewayError {
  return isGatewayError(thrown) ? thrown : storeUnavailable(why, thrown);
}

/** The words of one kind of store for another schema version. */
interface SchemaWords {
  readonly kind: string;
  /** What holds one store: `folder`, `database`. */
  readonly place: string;
  /** What the operator sets to leave that store alone: `set store to a new folder`. */
  readonly remedy: string;
}

/** Why a store with the schema version `found` is refused by a gateway that knows `known`; undefined when it is that one. */
export function explainSchemaVersion(words: SchemaWords, found: number, known: number): string | undefined {
  if (found === known) return undefined;
  const { kind, place, remedy } = words;
  const untouched = 'Nothing in it was changed.';
  return found < known
    ? `The ${kind} store was made by an earlier version of Tollgate (schema ${found}), which this version cannot read: keep its ${place} for that version, and ${remedy}. ${untouched}`
    : `The ${kind} store was written by a newer version of Tollgate (schema ${found}, this version knows ${known}): start that version, or ${remedy}. ${untouched}`;
}
