import { GatewayError, isGatewayError } from '../../../core/index.ts';

/** Runs a store operation; whatever it throws becomes `store_unavailable`: unknown is never absent. */
export async function withStore<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (isGatewayError(cause)) throw cause;
    throw unavailable(cause);
  }
}

/** As {@link withStore}, for writes that resolve with false when they were not done. */
export async function writeStore(operation: () => Promise<boolean>): Promise<void> {
  if (!(await withStore(operation))) throw unavailable(undefined);
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The store of API keys does not answer, so this key can be neither accepted nor refused. Try again shortly.',
    { retryAfterMs: 1000, cause },
  );
}
