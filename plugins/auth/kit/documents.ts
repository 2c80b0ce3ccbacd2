import type Keyv from 'keyv';
import { GatewayError, isGatewayError } from '../../../core/index.ts';

/** Documents that end by themselves, on a store whose failures are never taken for absence. */
export interface Documents<T> {
  get(key: string): Promise<T | undefined>;
  set(key: string, value: T, ttlMs: number): Promise<void>;
  delete(key: string): Promise<void>;
}

/** Whatever the store throws becomes `store_unavailable`; so does a write that it did not make. */
export function createDocuments<T>(keyv: Keyv<T>): Documents<T> {
  return {
    get: (key) => withStore(() => keyv.get(key)),
    async set(key, value, ttlMs) {
      if (!(await withStore(() => keyv.set(key, value, Math.max(ttlMs, 1))))) throw unavailable(undefined);
    },
    async delete(key) {
      await withStore(() => keyv.delete(key));
    },
  };
}

/** Runs a store operation; whatever it throws becomes `store_unavailable`. */
export async function withStore<R>(operation: () => Promise<R>): Promise<R> {
  try {
    return await operation();
  } catch (error) {
    throw isGatewayError(error) ? error : unavailable(error);
  }
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The store of sessions does not answer, so this one cannot be checked. Try again shortly.',
    { retryAfterMs: 1000, cause },
  );
}
