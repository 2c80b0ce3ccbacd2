import { GatewayError } from '../../../contract/index.ts';

/**
 * A message as it came; throws `invalid_request` for one of spaces and invisible characters only, which would cost model
 * calls for nothing. A schema's pattern would not say what is wrong.
 */
export function readMessage(message: string, hint: string): string {
  if (/[^\s\p{Cc}\p{Cf}]/u.test(message)) return message;
  throw new GatewayError('invalid_request', `message is blank: ${hint}`, { param: 'message' });
}
