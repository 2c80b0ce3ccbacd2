import { isGatewayError } from '../../../core/index.ts';

/** Whether the store did not answer, so that what it did is unknown: each policy says what then happens to a call. */
export function isStoreFailure(error: unknown): boolean {
  return isGatewayError(error) && error.code === 'store_unavailable';
}
