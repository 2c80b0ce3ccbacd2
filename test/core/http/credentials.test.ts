import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { GatewayError } from '../../../core/contract/errors.ts';
import { readCredential } from '../../../core/http/credentials.ts';

/** A request with these headers, as Node parses them. */
function request(...raw: readonly (readonly [name: string, value: string])[]): IncomingMessage {
  const headers: Record<string, string> = {};
  for (const [name, value] of raw) {
    const lower = name.toLowerCase();
    if (lower === 'authorization' && lower in headers) continue;
    headers[lower] = lower in headers ? `${headers[lower]}, ${value}` : value;
  }
  return { headers, rawHeaders: raw.flat() } as unknown as IncomingMessage;
}

describe('the credential of a request', () => {
  const READ: readonly (readonly [what: string, request: IncomingMessage, found: object | undefined])[] = [
    ['nothing', request(), undefined],
    ['a bearer token', request(['Authorization', 'Bearer tg_1']), { credential: 'tg_1', bearer: true }],
    ['any case of the scheme', request(['authorization', 'BEARER  tg_1 ']), { credential: 'tg_1', bearer: true }],
    ['an x-api-key', request(['X-API-Key', ' tg_1 ']), { credential: 'tg_1', bearer: false }],
    [
      'the same key twice',
      request(['authorization', 'Bearer tg_1'], ['x-api-key', 'tg_1']),
      { credential: 'tg_1', bearer: true },
    ],
    [
      'an empty bearer beside a key',
      request(['authorization', 'Bearer '], ['x-api-key', 'tg_1']),
      { credential: 'tg_1', bearer: false },
    ],
    ['an empty authorization', request(['authorization', '']), undefined],
    ['an empty bearer', request(['authorization', 'Bearer']), undefined],
    ['an empty key', request(['x-api-key', ' ']), undefined],
  ];
  for (const [what, given, found] of READ)
    it(`is read from ${what}`, () => expect(readCredential(given)).to.deep.equal(found));

  const REFUSED: readonly (readonly [what: string, request: IncomingMessage, code: string])[] = [
    ['two different ones', request(['authorization', 'Bearer a'], ['x-api-key', 'b']), 'ambiguous_credentials'],
    [
      'a header sent twice',
      request(['authorization', 'Bearer a'], ['Authorization', 'Bearer a']),
      'ambiguous_credentials',
    ],
    ['two x-api-key headers', request(['x-api-key', 'a'], ['X-Api-Key', 'b']), 'ambiguous_credentials'],
    ['another scheme', request(['authorization', 'Basic YTpi']), 'invalid_api_key'],
    ['a scheme that only begins like it', request(['authorization', 'Bearertg_1']), 'invalid_api_key'],
    ['9000 characters', request(['x-api-key', 'x'.repeat(9000)]), 'invalid_api_key'],
  ];
  for (const [what, given, code] of REFUSED)
    it(`is refused when there is ${what}, without repeating it`, () => {
      expect(() => readCredential(given))
        .to.throw(GatewayError)
        .that.satisfies((error: GatewayError) => error.code === code && !error.message.includes('xxx'));
    });
});
