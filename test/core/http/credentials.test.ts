import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { GatewayError } from '../../../contract/errors.ts';
import { readCredential, withoutCredentials } from '../../../core/http/authenticate.ts';

/** Request with these headers, as Node parses them. */
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
      'an empty bearer next to a key',
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

  const RULES = {
    places: { headers: ['x-api-key', 'x-own-key'], query: ['key'] },
    isCredential: (text: string) => text.startsWith('tg_') || text.split('.').length === 3,
  };
  const CHOSEN: readonly (readonly [what: string, request: IncomingMessage, found: object | string])[] = [
    [
      'a placeholder bearer next to a key',
      request(['authorization', 'Bearer sk-x'], ['x-api-key', 'tg_1']),
      { credential: 'tg_1', bearer: false },
    ],
    [
      'a token next to a placeholder key',
      request(['authorization', 'Bearer a.b.c'], ['x-api-key', 'sk-x']),
      { credential: 'a.b.c', bearer: true },
    ],
    ['a header of the format', request(['X-Own-Key', 'tg_1']), { credential: 'tg_1', bearer: false }],
    [
      'placeholders alone, the bearer first',
      request(['x-api-key', 'a'], ['authorization', 'Bearer b']),
      { credential: 'b', bearer: true },
    ],
    ['a key and a token', request(['authorization', 'Bearer a.b.c'], ['x-api-key', 'tg_1']), 'ambiguous_credentials'],
    ['two keys', request(['x-own-key', 'tg_2'], ['x-api-key', 'tg_1']), 'ambiguous_credentials'],
    ['a header of the format twice', request(['x-own-key', 'tg_1'], ['X-Own-Key', 'tg_1']), 'ambiguous_credentials'],
  ];
  for (const [what, given, found] of CHOSEN)
    it(`is chosen by its shape from ${what}`, () => {
      if (typeof found !== 'string') expect(readCredential(given, RULES)).to.deep.equal(found);
      else
        expect(() => readCredential(given, RULES))
          .to.throw(GatewayError)
          .with.property('code', found);
    });

  it('is hidden from dialects, with all fields that may contain one', () => {
    const headers = { authorization: 'a', 'x-api-key': 'b', cookie: 'c', 'x-own-key': 'd', accept: 'e' };
    expect(withoutCredentials(headers, ['x-own-key'])).to.deep.equal({ accept: 'e' });
  });
});
