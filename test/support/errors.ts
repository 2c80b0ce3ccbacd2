/** Errors of rejected work. */
import { expect } from 'chai';
import { type GatewayError, isGatewayError, toGatewayError } from '../../contract/index.ts';

/** Code of the GatewayError that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (isGatewayError(error)) return error.code;
    throw error;
  }
  return expect.fail('it was let through');
}

/** Error thrown by some work, as a caller receives it. */
export function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    return toGatewayError(error);
  }
  return expect.fail('it was not refused');
}
