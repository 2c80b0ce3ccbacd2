import { GatewayError } from '../../../contract/index.ts';

const MAX_ID = 300;
/** Control characters and lone surrogates. */
export const CONTROL = /\p{Cc}|\p{Cs}/u;

/** Throws `invalid_request` for an invalid account id. */
export function checkAccountId(id: string): void {
  if (id !== '' && id.length <= MAX_ID && !CONTROL.test(id)) return;
  throw new GatewayError(
    'invalid_request',
    `An account id has 1 to ${MAX_ID} characters without control characters. It is a user id or a value of the token's claim.`,
    { param: 'id' },
  );
}
