import { GatewayError, isGatewayError } from '../../../core/index.ts';

/** When a caller may try again after a store failure. */
const RETRY_AFTER_MS = 1000;

/** `store_unavailable` with one sentence of `why` (no host, path or secret: it reaches the caller) and the cause for the log. */
export function storeUnavailable(why: string, cause?: unknown): GatewayError {
  const message = `${why} Nothing was decided; try again shortly.`;
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** `store_unavailable` of a store that refuses this gateway until the operator changes something, which `message` says. */
export function storeRefused(message: string, cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** What every operation of a closed store rejects with. */
export function storeClosed(): GatewayError {
  return storeUnavailable('The store is closed: the gateway is stopping.');
}

/** A stored value that is not what this gateway writes: denied, never taken for absent. */
export function unreadable(what: string, cause?: unknown): GatewayError {
  return storeUnavailable(`The store holds a ${what} that cannot be read.`, cause);
}

/** An error in the program that calls the store, such as an amount that is not whole. */
export function misuse(message: string): GatewayError {
  return new GatewayError('internal_error', message);
}

/** Passes {@link GatewayError}s on and makes anything else `store_unavailable`. */
export function asUnavailable(why: string, thrown: unknown): GatewayError {
  return isGatewayError(thrown) ? thrown : storeUnavailable(why, thrown);
}
