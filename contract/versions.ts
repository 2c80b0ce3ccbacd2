import { GatewayError } from './errors.ts';

/** Returns the error for a change whose `If-Match` names another version. */
export function changedMeanwhile(): GatewayError {
  return new GatewayError(
    'precondition_failed',
    'The object changed since it was read. Read it again and send its new ETag in "If-Match"; without that header, the change is always applied.',
  );
}
