import { GatewayError } from './errors.ts';

/** Returns the error for a change whose `If-Match` names another version. */
export function changedMeanwhile(): GatewayError {
  return new GatewayError(
    'precondition_failed',
    'This was changed since it was read. Read it again, and send its new ETag in "If-Match"; without that header the change is made on top.',
  );
}
