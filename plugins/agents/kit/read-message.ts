import { GatewayError } from '../../../contract/index.ts';

/**
 * Returns a message unchanged; throws `invalid_request` if it has only spaces and invisible characters, which would
 * waste model calls. The error of a schema pattern would not explain the problem.
 */
export function readMessage(message: string, hint: string): string {
  if (/[^\s\p{Cc}\p{Cf}]/u.test(message)) return message;
  throw new GatewayError('invalid_request', `message is blank: ${hint}`, { param: 'message' });
}
